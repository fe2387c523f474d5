"""Places a user asks about: those that can be watched, and elements of a program's outputs."""

import re

from bhemu.debug.value_origin import datum
from bhemu.errors import InputError
from bhemu.machine.resolve import resolve
from bhemu.machine.tile import Tile
from bhemu.machine.watchpoints import Span, spans
from bhemu.program.schema import Program
from bhemu.program.toml import suggestion

_ELEMENT = re.compile(r"(.+)\[([\d,\s]*)\]", re.DOTALL)


def find(tile: Tile, program: Program, core: str, text: str) -> tuple[Span, ...]:
    """The bytes of the record that `text` names: `y[3,5]`, or what watch takes."""
    found = _ELEMENT.fullmatch(text.strip())
    if found is None:
        return spans(tile, core, text)
    name, numbers = found.groups()
    spec = next((spec for spec in program.outputs if spec.name == name), None)
    if spec is None:
        names = [spec.name for spec in program.outputs]
        raise InputError(f"no output is called {name!r}", hint=suggestion(name, names))
    if spec.dram is not None or spec.tile not in (None, tile.xy):
        raise InputError(f"{text}: {name} does not lie in the L1 of this tile", hint="--tile x,y")
    index = tuple(int(number) for number in numbers.split(",") if number.strip())
    inside = all(i < n for i, n in zip(index, spec.shape, strict=False))
    if len(index) != len(spec.shape) or not inside:
        shape = " x ".join(str(n) for n in spec.shape)
        raise InputError(
            f"{text}: {name} is {shape}", hint=f"{name}[{', '.join('0' * len(shape))}]"
        )
    address, mask = datum(resolve(tile, spec.at), spec, index)
    return (Span(address & ~3, 4, mask),)
