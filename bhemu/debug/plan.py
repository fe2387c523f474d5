"""What a launched program put where, and what of it lies on top of what: the report of a check."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from bhemu.errors import InputError
from bhemu.launch import word_name
from bhemu.memmap import L1_SIZE, LOCAL_BASE, LOCAL_SIZES
from bhemu.names import resolve
from bhemu.program import loader
from bhemu.program.schema import CoreSpec, OutputSpec, Program
from bhemu.text import printable
from bhemu.tile import Tile


@dataclass(frozen=True)
class Part:
    """Bytes of a program: where (`space` "l1", a core's name for local RAM, or "device").

    kind: "code", "data", "jump", "set", "input" or "output"; `what` says which.
    """

    space: str
    low: int
    high: int
    kind: str
    what: str

    def __str__(self) -> str:
        space = {"l1": "L1"}.get(self.space, self.space)
        place = f"{space:<7} 0x{self.low:08X}..0x{self.high:08X}"
        return f"{place}  {self.kind:<6}  {printable(self.what)}"

    def overlaps(self, other: "Part") -> bool:
        """Whether some byte belongs to both."""
        return self.space == other.space and self.low < other.high and other.low < self.high


def parts(tile: Tile, program: Program) -> list[Part]:
    """Everything that `launch` placed on `tile` and what will be read after the run, by address."""
    found = [part for spec in program.cores.values() for part in _elf(spec)]
    for low, high, name in tile.ranges:
        if name.startswith("the jump"):
            found.append(Part("l1", low, high, "jump", name))
    if program.image is not None:
        found.append(Part("l1", 0, L1_SIZE, "image", program.image.name))
    for number, entry in enumerate(program.sets, start=1):
        low = resolve(tile, entry.at, entry.core)
        space = "l1" if low < L1_SIZE else "device"
        if space == "device" and low < LOCAL_BASE + max(LOCAL_SIZES):
            space = entry.core or space
        what = f"[[set]] {number}" + (f" {entry.at}" if isinstance(entry.at, str) else "")
        found.append(Part(space, low, low + len(entry.data), "set", what))
    for source in program.inputs:
        low = resolve(tile, source.at)
        what = f"{source.file.name} {_form(source.shape, source.dtype, source.layout)}"
        found.append(Part("l1", low, low + source.size, "input", f"{what} {source.convert}"))
    for output in program.outputs:
        low = resolve(tile, output.at)
        found.append(Part("l1", low, low + output.size, "output", _output(output)))
    return sorted(found, key=lambda part: (part.space != "l1", part.space, part.low))


def _elf(spec: CoreSpec) -> Iterator[Part]:
    if spec.elf is None:
        return
    image = loader.read_elf(spec.elf)
    code = {str(s) for s in image.segments if s.executable}
    for placed in loader.place(image, local=spec.local, core=spec.name):
        base, space = (LOCAL_BASE, spec.name) if placed.space == "local" else (0, "l1")
        is_code = placed.name.removeprefix(f"{image.path.name} ") in code
        low, high = base + placed.address, base + placed.end
        yield Part(space, low, high, "code" if is_code else "data", f"{spec.elf.name} {spec.name}")


def _form(shape: tuple[int, ...], dtype: str, layout: str) -> str:
    return f"{'x'.join(str(n) for n in shape)} {dtype} {layout}"


def _output(spec: OutputSpec) -> str:
    text = f"{spec.name} {_form(spec.shape, spec.dtype, spec.layout)}"
    if spec.expect is not None:
        text += f", {spec.compare} against {spec.expect.name}"
    return text if spec.save is None else f"{text}, saved to {spec.save.name}"


def warnings(found: list[Part]) -> list[str]:
    """What lies on top of something else in a way that is allowed and hardly ever meant."""
    texts = []
    for one, other in combinations(found, 2):
        if not one.overlaps(other):
            continue
        kinds = {one.kind, other.kind}
        hidden = kinds <= {"input", "set"} or kinds == {"input", "output"}
        if hidden or (kinds & {"input", "set", "output"} and "code" in kinds):
            at = max(one.low, other.low)
            both = f"{one.kind} {one.what} and {other.kind} {other.what}"
            texts.append(printable(f"{both} overlap at 0x{at:X}"))
    return texts


def starts(program: Program) -> Iterator[tuple[str, int | None, bool]]:
    """(core, address it starts at, whether bhemu releases it) of the cores that are named.

    None: the core that releases it sets the address. brisc has no choice: it starts at 0.
    """
    for name, spec in program.cores.items():
        start = spec.pc
        if start is None and spec.elf is not None:
            start = loader.read_elf(spec.elf).entry
        yield name, 0 if name == "brisc" else start, spec.release


def ends(tile: Tile, program: Program) -> str:
    """The end condition, limit and time-out in words."""
    words = tile.machine.end.words
    until = " and ".join(f"{word_name(program, at)} is {want:#x}" for at, want in words)
    texts = [f"ends when {until or 'everything is idle'}"]
    if program.run.limit is not None:
        texts.append(f"limit {program.run.limit}")
    if program.run.timeout_s is not None:
        texts.append(f"time-out {program.run.timeout_s:g} s")
    return ", ".join(texts)


def check_expected(program: Program) -> None:
    """InputError when an expected file holds what its output can never equal."""
    for spec in program.outputs:
        try:
            spec.check(bytes(spec.size))
        except InputError as error:
            raise InputError(f"{spec.origin}: {error.message}", hint=error.hint) from error
