"""Parts of fp32 numbers, as patterns."""

import numpy as np

SIGN = np.uint32(0x80000000)
EXPONENT = np.uint32(0x7F800000)
FRACTION = np.uint32(0x7FFFFF)
HIDDEN = np.uint32(0x800000)
BIAS = 127
