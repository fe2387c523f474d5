"""Arguments that a kernel reads and PROGRAM.toml does not give."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bhemu.errors import Where
from bhemu.jit.subset import JIT
from bhemu.machine.resolve import resolve
from bhemu.machine.tile import Tile
from bhemu.memmap import CORE_NAMES
from bhemu.program import toml
from bhemu.program.coordinates import values_of
from bhemu.program.input_files import encode_values
from bhemu.program.specs import Program, TileSpec
from bhemu.why.check import Context
from bhemu.why.findings import Finding, place
from bhemu.why.order.conflicts import observed
from bhemu.why.steps import Act

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
    if context.symptom.fine or path is None or alone or not JIT:
        return
    for number, part in enumerate(program.placed()):
        for seen in (one for one in observed(context) if one.tile.xy == part.at[0]):
            given = [*_arguments(seen.tile, part)]
            end = max((-(-one.end // _ALIGNMENT) * _ALIGNMENT for one in given), default=0)
            for one in given:
                core = CORE_NAMES.index(one.core)
                places = range(one.end, max(end, one.end), 4)
                loads = ((at, seen.loads(core, at)) for at in places)
                first = next(((at, by) for at, by in loads if by is not None), None)
                if first is not None:
                    at, by = first
                    yield _finding(program, path, number, one, at, Act(seen.tile, by))


def _finding(
    program: Program, path: Path, number: int, args: _Args, address: int, load: Act
) -> Finding:
    """The finding of a core that loads a word after its arguments."""
    name = args.core
    line = toml.line_of_key(path, "tile.cores" if program.tiles else "cores", number, name)
    held = len(program.placed()[number].cores[name].args)
    text = f"PROGRAM.toml:{line}: {name} has {held} arguments, and its kernel reads the word"
    text += f" at {address - args.low:#x} from the first, which is none of them"
    who = place(Where(file=path.name, line=line), None)
    advice = f"give {name} in args every word that the kernel reads, in its order"
    return Finding("program", "error", text, who, place(load.where, load.step.clock), (), advice)


def _arguments(tile: Tile, part: TileSpec) -> Iterator[_Args]:
    """Of each core that has some."""
    values = values_of(tile.xy, part.at)
    for name, spec in part.cores.items():
        data = encode_values(spec.args, f"{part.origin}: {name}", values)
        if data:
            low = tile.core[name].read32(resolve(tile, _BASE, name))
            yield _Args(name, low, low + len(data))
