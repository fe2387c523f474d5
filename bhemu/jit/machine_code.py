"""Machine code that loads without the tools that made it.

An image is a piece of memory as it will run: read-only code and constants, then (from `writable`
on) the rest, with the places where an address must be filled in.  Everything else in it is relative
to where it stands.
"""

import ctypes
import functools
import json
import mmap
from typing import Any, NamedTuple

from bhemu.errors import Internal

libraries: list[str] = []  # paths of shared libraries whose functions compiled code calls
_raised = False
_LINE = 64  # bytes of a cache line
_next_start = 0
_alive: list[Any] = []  # what is loaded stays
# What numba's code calls to raise an exception of Python, for an index or a division by zero.
_RAISING = ("numba_", "NRT_", "Py")
_READ_EXECUTE = mmap.PROT_READ | mmap.PROT_EXEC


class Fix(NamedTuple):
    """The 8 bytes at `place` become the address of `symbol`, or of the image if that is "",
    plus `addend`.
    """

    place: int
    symbol: str
    addend: int


class Image(NamedTuple):
    """`content` is loaded at a multiple of 64 bytes; `entry` is where it is called.

    With an `object_of` it is an object file that defines the function of this name and refers to
    the symbols of `fixes`: LLVM loads it, on processors whose objects link.py does not know.
    """

    entry: int
    writable: int
    fixes: tuple[Fix, ...]
    content: bytes
    object_of: str = ""

    def packed(self) -> bytes:
        """As bytes for `unpacked`."""
        head = json.dumps([self.entry, self.writable, self.fixes, self.object_of]).encode()
        return len(head).to_bytes(4, "little") + head + self.content


def unpacked(data: bytes) -> Image:
    """The image that `packed` gave."""
    end = 4 + int.from_bytes(data[:4], "little")
    entry, writable, fixes, object_of = json.loads(data[4:end])
    return Image(entry, writable, tuple(Fix(*fix) for fix in fixes), data[end:], object_of)


@ctypes.CFUNCTYPE(ctypes.c_void_p)
def _raise() -> None:
    """Stands for all of _RAISING: the function that raises then returns 0."""
    global _raised
    _raised = True


def surface() -> None:
    """Raise an error if compiled code wanted to raise one since the last call."""
    global _raised
    if _raised:
        _raised = False
        raise Internal("compiled code used an index out of range or divided by zero")


@functools.cache
def _library(path: str | None) -> ctypes.CDLL:
    return ctypes.CDLL(path)


def address(symbol: str) -> int:
    """Where a function of this process, the mathematics library or `libraries` stands."""
    if symbol.startswith(_RAISING):
        return ctypes.cast(_raise, ctypes.c_void_p).value or 0
    for path in (None, *libraries):
        try:
            function = getattr(_library(path), symbol)
        except AttributeError:
            continue
        return ctypes.cast(function, ctypes.c_void_p).value or 0
    raise Internal(f"compiled code calls {symbol}, which is nowhere")


def _load_object(image: Image) -> int:
    """Address of the function of an object file."""
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    builder = binding.JITLibraryBuilder().add_object_img(image.content).add_current_process()
    for fix in image.fixes:
        builder.import_symbol(fix.symbol, address(fix.symbol))
    builder.export_symbol(image.object_of)
    library = builder.link(binding.create_lljit_compiler(), image.object_of)
    _alive.append(library)
    return int(library[image.object_of])


def load(image: Image) -> int:
    """Address of the function of an image, which stays in memory as long as the process."""
    if image.object_of:
        return _load_object(image)
    size = len(image.content)
    start = _start(image)
    memory = mmap.mmap(-1, size + (mmap.PAGESIZE if start else 0))
    page = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    base = page + start
    memory[start : start + size] = image.content
    for fix in image.fixes:
        target = (address(fix.symbol) if fix.symbol else base) + fix.addend
        memory[start + fix.place : start + fix.place + 8] = target.to_bytes(8, "little")
    length = len(memory) if start else image.writable or size
    if _library(None).mprotect(ctypes.c_void_p(page), ctypes.c_size_t(length), _READ_EXECUTE):
        raise Internal("the system does not let compiled code execute")
    _alive.append(memory)
    return base + image.entry


def _start(image: Image) -> int:
    """Where in its first page an image begins: behind the one before, if that were on the page.

    Entries that all began at the start of a page would share the few lines of the processor's
    instruction cache that belong to it. What is written needs pages of its own.
    """
    global _next_start
    if image.writable < len(image.content):
        return 0
    start = _next_start
    _next_start += -(-len(image.content.rstrip(b"\0")) // _LINE) * _LINE
    _next_start %= mmap.PAGESIZE
    return start
