"""Arguments that a kernel reads and PROGRAM.toml does not give."""

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

from bhemu.errors import Where
from bhemu.launch.session import placed_tiles
from bhemu.machine.error_text import where_core
from bhemu.machine.resolve import resolve
from bhemu.machine.tile import Tile
from bhemu.memmap import CORE_NAMES
from bhemu.program import toml
from bhemu.program.coordinates import values_of
from bhemu.program.input_files import encode_values
from bhemu.program.specs import TileSpec
from bhemu.why.check import Context
from bhemu.why.findings import Finding, place

_BASE = "rta_l1_base"  # the word in a core's local memory that says where its arguments are
_ALIGNMENT = 16  # of the arguments of each core


class _Args(NamedTuple):
    """The arguments of a core in L1: the first byte, the one after the last."""

    core: str
    low: int
    end: int


def missing(context: Context) -> Iterator[Finding]:
    """The first load after the arguments of each core, of a run that went wrong.

    Looked at are the bytes up to the end of the last core's arguments: nothing else lies there that
    a kernel of this core may load. Programs under firmware have their arguments elsewhere.
    """
    program, path = context.program, context.program.path
    alone = program.firmware is not None or program.kind != "tt-metal"
    if context.symptom.fine or path is None or alone:
        return
    machine, seen = context.launch(**context.alone), dict[str, tuple[int, int, int]]()
    parts: dict[str, tuple[Tile, int, int]] = {}
    for number, part in enumerate(program.placed()):
        tile = next(one for one, held in placed_tiles(machine, program) if held is part)
        given = [*_arguments(tile, part)]
        end = max((-(-one.end // _ALIGNMENT) * _ALIGNMENT for one in given), default=0)
        for one in (one for one in given if one.end < end):
            key = f"{number} {one.core}"
            parts[key] = tile, number, one.low
            note = partial(_note, seen, key)
            machine.on_access((one.end, end), note, access="r", core=one.core, tile=tile.xy)
    if parts:
        context.finish(machine, limit=context.most)
    for key, (pc, address, clock) in seen.items():
        tile, number, low = parts[key]
        name = key.partition(" ")[2]
        line = toml.line_of_key(path, "tile.cores" if program.tiles else "cores", number, name)
        held = len(program.placed()[number].cores[name].args)
        text = f"PROGRAM.toml:{line}: {name} has {held} arguments, and its kernel reads the word"
        text += f" at {address - low:#x} from the first, which is none of them"
        who = place(Where(file=path.name, line=line), None)
        victim = place(where_core(tile, CORE_NAMES.index(name), pc), clock)
        advice = f"give {name} in args every word that the kernel reads, in its order"
        yield Finding("program", "error", text, who, victim, (), advice)


def _arguments(tile: Tile, part: TileSpec) -> Iterator[_Args]:
    """Of each core that has some."""
    values = values_of(tile.xy, part.at)
    for name, spec in part.cores.items():
        data = encode_values(spec.args, f"{part.origin}: {name}", values)
        if data:
            low = tile.core[name].read32(resolve(tile, _BASE, name))
            yield _Args(name, low, low + len(data))


def _note(seen: dict[str, tuple[int, int, int]], key: str, access: Any) -> None:
    """Keep the first load of a core."""
    seen.setdefault(key, (access.pc, access.address, access.clock))
