"""Whose code an edit changes: own code first, then what a kernel calls of a library."""

from types import SimpleNamespace
from typing import Any

from bhemu.errors import Call
from bhemu.memmap import CORE_NAMES
from bhemu.program.schema import Program
from bhemu.why.repair.edits import NOP, Edit
from bhemu.why.repair.origins import Origins

LIBRARY = frozenset({"api.h", "inner.h"})
PLACES = {
    0x10: ("inner.h", ("api.h", "kernel.cpp")),
    0x14: ("api.h", ("kernel.cpp",)),
    0x18: ("kernel.cpp", ()),
    0x1C: ("own.h", ("api.h", "kernel.cpp")),
    0x20: ("api.h", ()),
}


class Core:
    images = (SimpleNamespace(library=LIBRARY),)

    def locate(self, pc: int) -> tuple[str, str | None, int | None]:
        return ("f", PLACES[pc][0], 1) if pc in PLACES else ("f", None, None)

    def inlined(self, pc: int) -> tuple[str, tuple[Call, ...]]:
        return "f", tuple(Call("g", file, 2) for file in PLACES[pc][1])


def origins(kind: str = "tt-metal") -> Origins:
    tile: Any = SimpleNamespace(core={name: Core() for name in CORE_NAMES})
    program: Any = SimpleNamespace(kind=kind, spec=Program)
    return Origins(tile, program)


def edit(pc: int) -> Edit:
    return Edit(1, ((pc, (NOP,)),), "", 1.0)


def test_depths() -> None:
    known = origins()
    depths = [known.depth(edit(pc)) for pc in PLACES]
    assert depths == [2, 1, 0, 0, 1]
    assert known.depth(edit(0x40)) == 1  # a place without a line is nobody's own


def test_own_code_and_what_it_calls() -> None:
    known, every = origins(), [edit(pc) for pc in (*PLACES, 0x40)]
    assert [one.at for one in known.own(every)] == [0x18, 0x1C]
    assert [one.at for one in known.others(every)] == [0x14, 0x20, 0x40, 0x10]


def test_a_program_that_tests_the_library_has_none() -> None:
    assert origins("llk").library == frozenset()
    assert origins().library == LIBRARY
