"""Members of the state record read as arrays of another element type, without a copy.

`s.l1.view(...)` does the same in compiled code, but costs 10 ns a call and 60 ms of compile time
for each element type.  Interpreted, these functions are that view.
"""

from typing import Any

import numpy as np

from bhemu.jit.subset import JIT, intrinsic
from bhemu.tensix.state import DTYPE, OFFSET

WORD = 0xFFFFFFFF  # all bits of one


def _member_as(member: str, dtype: Any) -> Any:
    """A function of the state that gives `member` as array of `dtype`."""
    if not JIT:
        return lambda s: getattr(s, member).view(dtype)
    assert DTYPE.fields is not None
    width = np.dtype(dtype).itemsize
    count, offset = DTYPE.fields[member][0].itemsize // width, OFFSET[member]

    def member_as(typing: Any, s: Any) -> Any:
        from numba import from_dtype, types
        from numba.core import cgutils
        from numba.np.arrayobj import make_array, populate_array

        element = from_dtype(np.dtype(dtype))
        array = types.Array(element, 1, "C")

        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            kind = context.get_data_type(element)
            view = make_array(array)(context, builder)
            populate_array(
                view,
                data=cgutils.get_record_member(builder, args[0], offset, kind),
                shape=[context.get_constant(types.intp, count)],
                strides=[context.get_constant(types.intp, width)],
                itemsize=context.get_constant(types.intp, width),
                meminfo=None,
            )
            return view._getvalue()

        return array(s), emit

    return intrinsic(member_as)


l1_halves: Any = _member_as("l1", np.uint16)  # uint16[0xC0000]
l1_words: Any = _member_as("l1", np.uint32)  # uint32[0x60000]
weights: Any = _member_as("unpack_weight", np.float32)  # float32[1024]
