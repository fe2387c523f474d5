"""A contiguous array as one row of elements, without the cost of `ravel` in compiled code.

`ravel` and `reshape` of compiled code walk over the shape at run time: 10 ns a call, and a good
part of a second to compile.
"""

from typing import Any

from bhemu.jit.subset import JIT, intrinsic

if JIT:

    @intrinsic
    def flat(typing: Any, array: Any) -> Any:
        """View of a C-contiguous array of the state as (size,)."""
        from llvmlite import ir
        from numba import types
        from numba.core import cgutils
        from numba.np.arrayobj import make_array, populate_array

        assert array.layout == "C", array
        row = types.Array(array.dtype, 1, "C")

        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            source = make_array(signature.args[0])(context, builder, args[0])
            view = make_array(row)(context, builder)
            size = ir.Constant(source.nitems.type, 1)
            for extent in cgutils.unpack_tuple(builder, source.shape):
                size = builder.mul(size, extent)
            populate_array(
                view,
                data=source.data,
                shape=cgutils.pack_array(builder, [size]),
                strides=cgutils.pack_array(builder, [source.itemsize]),
                itemsize=source.itemsize,
                meminfo=None,
            )
            return view._getvalue()

        return row(array), emit

else:

    def flat(array: Any) -> Any:
        """Interpreted twin: (size,)."""
        view = array.reshape(-1)
        assert view.base is not None
        return view
