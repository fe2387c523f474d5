"""What every test of why does after itself."""

import ctypes
from collections.abc import Iterator

import pytest

_LIBC = ctypes.CDLL(None)


@pytest.fixture(autouse=True)
def _give_memory_back() -> Iterator[None]:
    """glibc keeps what the pasts of chips took, hundreds of megabytes; each worker does so."""
    yield
    if hasattr(_LIBC, "malloc_trim"):
        _LIBC.malloc_trim(0)
