"""A place of another tensor or buffer in what a line gives away."""

from types import SimpleNamespace
from typing import Any

from bhemu.errors import Call, Where
from bhemu.memmap import TENSIX_CFG_BASE
from bhemu.program.specs import BufferSpec, TileSpec
from bhemu.riscv.assembly import sw
from bhemu.why.repair import tensors
from bhemu.why.repair.edits import Code, Site

A5, T0 = 15, 5
CALL = Call("kernel_main", "kernel.cpp", 29)
STORES = {0x100: 304, 0x104: 496, 0x200: 308, 0x204: 500}  # of both operands, of both contexts


class Lines:
    """Each of them has a line of its own in a header; one line of a kernel calls them."""

    def where(self, core: int, pc: int) -> Where:
        return Where(core="trisc0", pc=pc, file="api.h", line=pc, inlined=(CALL,))


def program(*places: int) -> Any:
    buffers = tuple(BufferSpec(n, at, 2, 0x800) for n, at in enumerate(places))
    part = TileSpec(at=((1, 2),), cores={}, buffers=buffers)

    return SimpleNamespace(inputs=(), placed=lambda: [part])


def edits(*places: int) -> list[Any]:
    words = {pc: sw(T0, A5, offset) for pc, offset in STORES.items()}
    sites = [Site(1, pc, TENSIX_CFG_BASE + by, None, [0x5FFF]) for pc, by in STORES.items()]
    lines: Any = Lines()
    return list(tensors.edits(Code({1: words}), sites, lines, program(*places)))


def test_one_operand_of_a_call_in_both_contexts() -> None:
    found = edits(0x60000, 0x61000)
    moved = {tuple(pc for pc, _ in one.code) for one in found}
    assert {(0x100, 0x200), (0x104, 0x204)} <= moved
    texts = {one.text for one in found if len(one.code) == 2}
    assert texts == {
        "what is stored is to lie +0x1000 bytes on, as of buffer 1, not buffer 0",
        "what is stored is to lie -0x1000 bytes on, as of buffer 0, not buffer 1",
    }


def test_nothing_is_moved_where_there_is_one_buffer() -> None:
    assert edits(0x60000) == []
