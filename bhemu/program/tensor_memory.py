"""A memory that tensors are read from and written to."""

from collections.abc import Sequence
from typing import Any

from numpy.typing import ArrayLike, NDArray

from bhemu import arguments
from bhemu.program import tensor


class Tensors:
    """A memory that holds tensors."""

    def read(self, at: Any, n: int) -> bytes:
        """`n` bytes."""
        raise NotImplementedError

    def write(self, at: Any, data: bytes | bytearray | memoryview) -> None:
        """Store bytes."""
        raise NotImplementedError

    def tensor(
        self, at: int | str, shape: Sequence[int], dtype: str, layout: str = "tile32"
    ) -> NDArray[Any]:
        """The tensor at an address, decoded (float32, or int32 for integer formats)."""
        shape = arguments.shape_of(shape)
        size = tensor.encoded_size(shape, dtype, layout)
        return tensor.decode(self.read(at, size), shape, dtype, layout)

    def put_tensor(
        self,
        at: int | str,
        array: ArrayLike,
        dtype: str,
        layout: str = "tile32",
        convert: str = "exact",
    ) -> None:
        """Encode an array into the memory."""
        self.write(at, tensor.encode(array, dtype, layout, convert))
