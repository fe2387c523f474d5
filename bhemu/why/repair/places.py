"""The source line of an instruction: the caller's where the compiler inlined a library."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any

from bhemu.errors import Where
from bhemu.machine.error_text import instruction, where_core
from bhemu.machine.tile import Tile
from bhemu.memmap import CORE_NAMES
from bhemu.riscv.assembly import SP
from bhemu.riscv.formats import Branch, IndirectJump, Jump, Load, Pushed, Store
from bhemu.riscv.isa import decode
from bhemu.why.repair.edits import Edit
from bhemu.why.repair.sites import Code
from bhemu.why.repair.uses import computed_for

_AHEAD, _CLOSE = 16, 6  # instructions
_OVER_ONE = 8  # bytes that a branch goes on which leaves out one instruction
_SHARED = 0.02  # cost of a change in several cores
_HEADERS = (".h", ".hpp", ".hh", ".inc")


def _at(where: Where, other: Where) -> Where:
    """An instruction with the source of another one."""
    return replace(
        where, function=other.function, file=other.file, line=other.line, inlined=other.inlined
    )


def other_lines(where: Where, used: Where) -> bool:
    """Whether a place stands at none of the lines from which an inlined one was called."""
    return all((call.file, call.line) != (where.file, where.line) for call in used.inlined)


class Lines:
    """The places of a tile's code; a header that several cores use is a library."""

    def __init__(self, tile: Tile, code: Code) -> None:
        self.tile, self._code = tile, code
        self._known: dict[tuple[int, int], Where] = {}

    @cached_property
    def _library(self) -> frozenset[str]:
        users: dict[str, set[int]] = {}
        for core, words in self._code.words.items():
            for pc in words:
                where = where_core(self.tile, core, pc)
                for file in (where.file, *(call.file for call in where.inlined)):
                    if file is not None and file.endswith(_HEADERS):
                        users.setdefault(file, set()).add(core)
        return frozenset(file for file, cores in users.items() if len(cores) > 1)

    def in_all_cores(self, edit: Edit) -> Edit | None:
        """The same change in each core whose code has that line of a header; None: in one only.

        Of several instructions, as those of a loop, where all of them are as far apart there.
        """
        places = self._copies(edit.core, edit.at)
        if len(edit.code) > 1:
            places = [at for at in places if self._is_alike(edit, at - edit.at)]
        if not places or min(places) < edit.at:
            return None
        moved = ((pc + at - edit.at, instead) for at in places for pc, instead in edit.code)
        return replace(edit, code=(*edit.code, *moved), cost=edit.cost + _SHARED, common=True)

    def _is_alike(self, edit: Edit, far: int) -> bool:
        """Whether all instructions of an edit stand `far` further on as well, in one core."""
        held = self._code.words[edit.core]
        return any(
            all(pc in held and words.get(pc + far) == held[pc] for pc, _ in edit.code)
            for core, words in self._code.words.items()
            if core != edit.core
        )

    def _copies(self, core: int, pc: int) -> list[int]:
        """Where other cores have the same instruction of the same line of a header."""
        mine = where_core(self.tile, core, pc)
        if mine.file not in self._library:
            return []
        word = self._code.words[core][pc]
        return [
            at
            for other, words in self._code.words.items()
            for at, held in words.items()
            if other != core and held == word
            for one in [where_core(self.tile, other, at)]
            if (one.file, one.line) == (mine.file, mine.line)
        ]

    def where(self, core: int, pc: int) -> Where:
        """The place of an instruction, the line of the program's own code first."""
        key = core, pc
        if key not in self._known:
            self._known[key] = self._outward(self.inner(core, pc))
        return self._known[key]

    def inner(self, core: int, pc: int) -> Where:
        """The place of an instruction, in a header too."""
        where = where_core(self.tile, core, pc, **instruction(self.tile, pc))
        if where.line == 0:
            return self._near(where, core, pc)
        return self._chosen(self._accessed(where, core, pc), core, pc)

    def _near(self, where: Where, core: int, pc: int) -> Where:
        """The place of what the compiler names no line for: of who uses its result, or nearby."""
        user = self._user(core, pc)
        if user is not None:
            return _at(where, where_core(self.tile, core, user))
        if (place := self._used_for(where, core, pc)) is not None:
            return place
        near, before = where, pc
        while near.line == 0 and before - 4 in self._code.words.get(core, {}):
            before -= 4
            near = where_core(self.tile, core, before)
        behind = pc
        while near.line == 0 and behind + 4 in self._code.words.get(core, {}):
            behind += 4
            near = where_core(self.tile, core, behind)
        file, line, function = near.file, near.line, near.function
        if near.inlined:
            function, file, line = near.inlined[-1]
        return replace(where, file=file, line=line, function=function, inlined=())

    def _user(self, core: int, pc: int) -> int | None:
        """The next instruction with a line that uses the result of one."""
        found = (
            other for other in self._users(core, pc) if where_core(self.tile, core, other).line
        )
        return next(found, None)

    def _used_for(self, where: Where, core: int, pc: int) -> Where | None:
        """The one line of its function for which a result is computed, as in front of a loop."""
        words = self._code.words.get(core, {})
        if pc not in words:
            return None
        found = set()
        for at in computed_for(words, pc, lambda at: where_core(self.tile, core, at).line):
            used, outer = where_core(self.tile, core, at), len(where.inlined)
            calls = [(used.function, used.file, used.line)]
            calls += [(call.function, call.file, call.line) for call in used.inlined]
            inside = used.inlined[len(used.inlined) - outer :] == where.inlined
            found.add(calls[-1 - outer] if inside and len(calls) > outer else None)
        if len(found) != 1 or None in found:
            return None
        ((function, file, line),) = (one for one in found if one is not None)
        return replace(where, function=function, file=file, line=line)

    def _users(self, core: int, pc: int) -> Iterator[int]:
        """Instructions behind one that use its result, and what the last of them makes of it."""
        words = self._code.words.get(core, {})
        result = words.get(pc, 0) >> 7 & 31
        for other in range(pc + 4, pc + 4 * _AHEAD, 4):
            cls: Any = decode(words.get(other, 0))
            if cls is None or not result or other not in words:
                return
            reads = [getattr(cls, name, None) for name in ("rs1", "rs2")]
            writes = not issubclass(cls, Store | Branch)
            if result in [field.get(words[other]) for field in reads if field is not None]:
                yield other
                result = words[other] >> 7 & 31 if writes else 0
            elif writes and words[other] >> 7 & 31 == result:
                return

    def _accessed(self, where: Where, core: int, pc: int) -> Where:
        """The place of the load or store whose address an instruction of a caller computes."""
        word = self._code.words.get(core, {}).get(pc, 0)
        cls: Any = decode(word)
        if cls is None or issubclass(cls, Load | Store | Branch | Jump | IndirectJump | Pushed):
            return where
        if (inside := self._used_inside(where, core, pc)) is not None:
            return inside
        for other in self._users(core, pc):
            kind: Any = decode(self._code.words[core][other])
            used = where_core(self.tile, core, other)
            if issubclass(kind, Load | Store) and used.inlined[-1:] != where.inlined[-1:]:
                if len(used.inlined) > len(where.inlined):
                    return _at(where, used)
        return where

    def store_of(self, core: int, pc: int) -> int | None:
        """The store that gives away what an instruction close before it computes."""
        words = self._code.words.get(core, {})
        for other in self._users(core, pc):
            cls: Any = decode(words[other])
            if issubclass(cls, Store):
                return other
        return None

    def _used_inside(self, where: Where, core: int, pc: int) -> Where | None:
        """The line of an inlined call for whose loop a value is computed in front of it.

        The compiler does so with what a loop does not change; the value is used by that line alone.
        """
        words = self._code.words.get(core, {})
        result = words.get(pc, 0) >> 7 & 31
        if where.symbol is None:
            return None
        _, low, high = self.tile.core[CORE_NAMES[core]].function(pc)
        found: set[tuple[Any, ...]] = set()
        used = where
        for other in range(low, high, 4):
            cls: Any = decode(words[other]) if other in words else None
            if cls is None or other == pc:
                continue
            names = [name for name in ("rs1", "rs2") if name in (cls.text or "")]
            reads = [getattr(cls, name).get(words[other]) for name in names]
            writes = not issubclass(cls, Store | Branch) and words[other] >> 7 & 31 == result
            if writes and not (issubclass(cls, Load) and cls.rs1.get(words[other]) == SP):
                return None
            if result in reads and not (issubclass(cls, Store) and reads[0] == SP):
                used = where_core(self.tile, core, other)
                found.add((used.file, used.line, used.inlined))
        if len(found) != 1 or not used.line or len(used.inlined) <= len(where.inlined):
            return None
        return _at(where, used) if other_lines(where, used) else None

    def _chosen(self, where: Where, core: int, pc: int) -> Where:
        """Of one of two values between which a branch chooses, the place of the branch."""
        words = self._code.words.get(core, {})
        result = words.get(pc, 0) >> 7 & 31
        for other in range(pc + 4, pc + 4 * _CLOSE, 4):
            cls: Any = decode(words.get(other, 0))
            if cls is None or not issubclass(cls, Branch):
                continue
            used = where_core(self.tile, core, other)
            same = words.get(other + 4, 0) >> 7 & 31 == result and result != 0
            if same and cls.offset.get(words[other]) == _OVER_ONE and used.line:
                return _at(where, used) if len(used.inlined) > len(where.inlined) else where
        return where

    def _outward(self, where: Where) -> Where:
        inner = where
        while inner.file in self._library and inner.inlined:
            call = inner.inlined[0]
            inner = replace(
                inner,
                function=call.function,
                file=call.file,
                line=call.line,
                inlined=inner.inlined[1:],
            )
        return where if inner.file in self._library else inner
