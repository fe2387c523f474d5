"""The record's type in compiled code, and the signatures of what is called through pointers."""

import numba
from numba import types

from bhemu.tensix.state import DTYPE

REC = numba.from_dtype(DTYPE)
ENTRY = types.int64(REC, types.int64, types.uint32)  # execute one word of thread t
STEP = types.int64(REC, types.int64)  # run a core, or the coprocessor for n words
ACCESS = types.int64(REC, types.int64, types.int64, types.int64, types.int64)
