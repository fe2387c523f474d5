"""PROGRAM.toml: what to load, set, feed, run and compare, read into frozen records.

The schema is the one in the interface chapter of the documentation: an unknown key is an error,
paths are relative to the file, and everything that can be checked without running is checked here.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bhemu import arguments
from bhemu.errors import InputError, NotModelled
from bhemu.memmap import CORE_NAMES, L1_SIZE
from bhemu.program import files, tensor, toml
from bhemu.program.address import At, check_l1, read_at
from bhemu.program.codecs import DTYPES
from bhemu.program.datafiles import encode_values, read_array, read_image
from bhemu.program.loader import LOCAL_MODES, Local
from bhemu.program.table import REQUIRED, Table
from bhemu.text import printable

SCHEMA = 1
KINDS = ("elf", "image", "llk")
LATER_KINDS = ("tt-metal",)
LOCAL_OF_KIND: dict[str, Local] = {"elf": "direct", "image": "direct", "llk": "loader_init"}
UB = ("error", "warn", "silicon")
POISON = ("off", "zero", "ff", "random")
REFERENCES = ("ttsim", "llk")
STOCHASTIC = ("off", "up", "down")  # or a seed
ENGINES = ("unicorn", "compiled")


@dataclass(frozen=True)
class CoreSpec:
    """One core to start: the ELF it loads, where its local RAM segments go, its start address.

    `pc` None means the ELF's entry. With `release` False another core releases it.
    """

    name: str
    elf: Path | None = None
    local: Local = "direct"
    release: bool = True
    pc: int | None = None


@dataclass(frozen=True)
class SetSpec:
    """Bytes written before the run; `core` names the ELF whose symbol `at` is, and who writes."""

    at: At
    data: bytes
    core: str | None = None
    origin: str = field(default="set", compare=False)


@dataclass(frozen=True)
class InputSpec:
    """A tensor placed in L1 before the run."""

    at: At
    file: Path
    dtype: str
    layout: str
    shape: tuple[int, ...]
    convert: str = "exact"
    origin: str = field(default="input", compare=False)

    @property
    def size(self) -> int:
        """Bytes in L1."""
        return tensor.encoded_size(self.shape, self.dtype, self.layout)

    def data(self) -> bytes:
        """The L1 bytes; InputError naming the first value that `convert` refuses."""
        array = read_array(self.file, self.dtype, self.origin)
        try:
            return tensor.encode(array, self.dtype, self.layout, self.convert)
        except InputError as error:
            raise InputError(f"{self.origin}: {error.message}", hint=error.hint) from error


@dataclass(frozen=True)
class OutputSpec:
    """A tensor read from L1 after the run: saved, compared, or both."""

    name: str
    at: At
    dtype: str
    layout: str
    shape: tuple[int, ...]
    save: Path | None = None
    expect: Path | None = None
    compare: str = "bits"
    max_ulp: int = 1
    rtol: float = 0.05
    atol: float = 0.05
    origin: str = field(default="output", compare=False)

    @property
    def size(self) -> int:
        """Bytes in L1."""
        return tensor.encoded_size(self.shape, self.dtype, self.layout)

    def check(self, data: bytes) -> tensor.Report | None:
        """Compare the L1 bytes with the expected file; None when the program names none."""
        if self.expect is None:
            return None
        return tensor.compare(
            read_array(self.expect, self.dtype, self.origin),
            data,
            self.dtype,
            self.compare,
            layout=self.layout,
            name=self.name,
            max_ulp=self.max_ulp,
            rtol=self.rtol,
            atol=self.atol,
        )


@dataclass(frozen=True)
class Until:
    """The run ends when the 32-bit word of L1 at `word` equals `equals`."""

    word: At
    equals: int


@dataclass(frozen=True)
class RunSpec:
    """How to run. `until` empty: until idle; `limit` is in clock units, `livelock` in rounds.

    `engine` None: what BHEMU_ENGINE says, else the first of ENGINES.
    """

    until: tuple[Until, ...] = ()
    limit: int | None = None
    timeout_s: float | None = None
    livelock: int = 2000
    seed: int = 0
    ub: str = "error"
    poison: str = "off"
    reference: str = "ttsim"
    stochastic: int | str = "off"
    engine: str | None = None


@dataclass(frozen=True)
class Program:
    """A whole program; `path` is the file it came from, None when made from flags alone.

    `inside`: the files that the file names lie in its folder.

    kind "elf": every core names its ELF. kind "image": `image` is a picture of L1 and cores name
    the address they start at. kind "llk": brisc and the TRISCs, run as tt-llk does (docs/llk.md).
    """

    name: str
    kind: str
    cores: Mapping[str, CoreSpec]
    path: Path | None = None
    inside: bool = True
    image: Path | None = None
    sets: tuple[SetSpec, ...] = ()
    inputs: tuple[InputSpec, ...] = ()
    outputs: tuple[OutputSpec, ...] = ()
    run: RunSpec = field(default_factory=RunSpec)

    @property
    def home(self) -> Path | None:
        """The folder that the program must not leave, None when it may."""
        return self.path.parent if self.inside and self.path is not None else None

    def files(self) -> Iterator[Path]:
        """Every file the program is made of or reads."""
        named = [self.path, self.image, *(core.elf for core in self.cores.values())]
        named += [source.file for source in self.inputs]
        named += [output.expect for output in self.outputs]
        return (path for path in named if path is not None)


def load_program(path: str | Path, *, allow_outside: bool = False) -> Program:
    """Read a PROGRAM.toml (or the one in a directory).

    Its files lie in its folder, and a link that leads out of it is no file of the program, unless
    `allow_outside`.

    InputError for everything wrong that shows without running: syntax, unknown keys, wrong types,
    missing files, shapes that do not match, addresses outside L1. NotModelled for kind "tt-metal".
    """
    path = arguments.path(path)
    if files.is_folder(path):
        path /= "PROGRAM.toml"
    top = Table(_parse(path), str(path), path.parent, inside=not allow_outside)
    version = top.integer("bhemu", lo=1)
    if version != SCHEMA:
        top.fail(f"bhemu = {version}", hint=f"this is schema version {SCHEMA}")
    kind = _kind(top)
    program = Program(
        name=printable(top.text("name", path.resolve().parent.name)),
        kind=kind,
        cores=_cores(top, kind),
        path=path,
        inside=not allow_outside,
        image=_image(top, kind),
        sets=tuple(set_from(table) for table in top.tables("set")),
        inputs=tuple(input_from(table) for table in top.tables("input")),
        outputs=tuple(output_from(table) for table in top.tables("output")),
        run=_run(top.table("run")),
    )
    top.finish()
    check_cores(program, str(path))
    return program


def _parse(path: Path) -> dict[str, Any]:
    if files.is_missing(path):
        raise InputError(f"{path}: no such file", hint="bhemu new writes one")
    data = files.read_bytes(path, "PROGRAM_BYTES")
    try:
        text = data.decode("utf-8")
        toml.check_depth(text, str(path))
        return tomllib.loads(text)
    except ValueError as error:  # TOMLDecodeError and UnicodeDecodeError
        raise InputError(f"{path}: not TOML: {error}") from error


def _kind(top: Table) -> str:
    kind = top.text("kind", "elf", choices=(*KINDS, *LATER_KINDS))
    if kind in LATER_KINDS:
        raise NotModelled(
            f'{top.origin}: kind = "{kind}" is not implemented yet',
            category="Unimplemented",
            hint=f"implemented: {', '.join(KINDS)}",
        )
    return kind


def _cores(top: Table, kind: str) -> dict[str, CoreSpec]:
    cores = top.table("cores")
    tables = {name: cores.table(name) for name in CORE_NAMES}
    cores.finish()
    local = LOCAL_OF_KIND[kind]
    return {name: core_from(name, tables[name], local) for name in CORE_NAMES if name in cores}


def core_from(name: str, table: Table, default: Local = "direct") -> CoreSpec:
    """The core called `name` from its table; the ELF must exist. `default` is that of `local`."""
    local = table.take("local", default, (str, int))
    if isinstance(local, str) and local not in LOCAL_MODES:
        table.fail(f'local = "{local}"', hint=f"{', '.join(LOCAL_MODES)} or a staging address")
    if isinstance(local, int) and not 0 <= local < L1_SIZE:
        table.fail(f"local = {local:#x}: a staging address lies in L1 (below 0x{L1_SIZE:X})")
    pc = table.integer("pc", None, lo=0, hi=L1_SIZE - 4)
    spec = CoreSpec(name, table.file("elf"), local, table.flag("release", True), pc)
    table.finish()
    if spec.elf is None and pc is None and spec.release:
        table.fail("neither elf nor pc: there is no address to start at")
    return spec


def check_cores(program: Program, origin: str) -> None:
    """InputError when nothing would ever run, or no ELF is named where the kind needs one."""
    if not any(core.release for core in program.cores.values()):
        hint = 'for example [cores] trisc0 = { elf = "kernel.elf" }'
        raise InputError(f"{origin}: no core is released, so nothing would run", hint=hint)
    if program.kind == "elf" and not any(core.elf for core in program.cores.values()):
        raise InputError(f'{origin}: kind = "elf", but no core has an elf')
    if program.kind == "llk":
        named = {name for name, core in program.cores.items() if core.elf and core.pc is None}
        if named != set(CORE_NAMES) - {"ncrisc"} or "ncrisc" in program.cores:
            raise InputError(f'{origin}: kind = "llk" wants an elf for brisc and each TRISC, no pc')


def _image(top: Table, kind: str) -> Path | None:
    table = top.table("image")
    path = table.file("file")
    table.finish()
    if kind != "image":
        if "image" in top:
            table.fail(f'an image belongs to kind = "image", not "{kind}"')
        return None
    if path is None:
        table.fail('missing key file: kind = "image" starts from a picture of L1')
    read_image(path)
    return path


def set_from(table: Table) -> SetSpec:
    """One [[set]]."""
    at, core = read_at(table, "at"), table.text("core", None, choices=CORE_NAMES)
    values = table.take("values", REQUIRED, (list,))
    table.finish()
    if not values:
        table.fail("values is empty", hint='for example ["u32:4", "f32:1.0"]')
    return SetSpec(at, encode_values(values, table.origin), core, table.origin)


def input_from(table: Table) -> InputSpec:
    """One [[input]]: the file must exist and hold the shape."""
    at, (dtype, layout) = read_at(table, "at"), _format(table)
    file, shape = table.file("file"), table.shape("shape")
    convert = table.text("convert", "exact", choices=tensor.CONVERTS)
    table.finish()
    if file is None:
        table.fail("missing key file")
    shape = _file_shape(table, file, dtype, shape)
    _check_extent(table, at, shape, dtype, layout)
    return InputSpec(at, file, dtype, layout, shape, convert, table.origin)


def output_from(table: Table) -> OutputSpec:
    """One [[output]]: an expected file must exist and hold the shape."""
    at, (dtype, layout) = read_at(table, "at"), _format(table)
    shape, expect = table.shape("shape"), table.file("expect")
    if expect is not None:
        shape = _file_shape(table, expect, dtype, shape)
    if shape is None:
        table.fail("missing key shape", hint="or give expect, whose shape it takes")
    spec = OutputSpec(
        name=printable(table.text("name", "output" if expect is None else expect.stem)),
        at=at,
        dtype=dtype,
        layout=layout,
        shape=shape,
        save=table.new_file("save"),
        expect=expect,
        compare=table.text("compare", "bits", choices=tensor.COMPARES),
        max_ulp=table.integer("max_ulp", 1),
        rtol=table.number("rtol", 0.05),
        atol=table.number("atol", 0.05),
        origin=table.origin,
    )
    table.finish()
    _check_extent(table, at, shape, dtype, layout)
    return spec


def _run(table: Table) -> RunSpec:
    until = table.take("until", "idle", (str, list))
    if isinstance(until, str) and until != "idle":
        table.fail(f'until = "{until}"', hint='"idle", or [{ word = 0x100, equals = 0xD0E0 }]')
    conditions = [] if isinstance(until, str) else list(table.tables("until"))
    spec = RunSpec(
        until=tuple(until_from(condition) for condition in conditions),
        limit=table.integer("limit", None, lo=1),
        timeout_s=table.number("timeout_s", None),
        livelock=table.integer("livelock", 2000),
        seed=table.integer("seed", 0),
        ub=table.text("ub", "error", choices=UB),
        poison=table.text("poison", "off", choices=POISON),
        reference=table.text("reference", "ttsim", choices=REFERENCES),
        stochastic=table.word("stochastic", "off", STOCHASTIC, 0xFFFF_FFFF),
        engine=table.text("engine", None, choices=ENGINES),
    )
    table.finish()
    return spec


def until_from(table: Table) -> Until:
    """One condition of `until`: a word of L1 and the value it must have."""
    word, equals = read_at(table, "word"), table.integer("equals", hi=0xFFFF_FFFF)
    table.finish()
    if isinstance(word, int) and (word % 4 or word > L1_SIZE - 4):
        table.fail(f"word = 0x{word:X} is not the address of a 32-bit word of L1")
    return Until(word, equals)


def _format(table: Table) -> tuple[str, str]:
    """(dtype, layout); tile32 is what kernels use, raw bytes have no other layout than raw."""
    dtype = table.text("dtype", choices=DTYPES)
    default = "raw" if dtype == "raw" else "tile32"
    return dtype, table.text("layout", default, choices=tensor.LAYOUTS)


def _check_extent(table: Table, at: At, shape: tuple[int, ...], dtype: str, layout: str) -> None:
    try:
        size = tensor.encoded_size(shape, dtype, layout)
    except InputError as error:
        table.fail(error.message, hint=error.hint)
    if isinstance(at, int):
        check_l1(table.origin, at, size)


def _file_shape(
    table: Table, file: Path, dtype: str, shape: tuple[int, ...] | None
) -> tuple[int, ...]:
    """The shape of the file's array (bytes for "raw"); it must be `shape` where that is given."""
    array = read_array(file, dtype, table.origin)
    held = (array.nbytes,) if dtype == "raw" else array.shape
    if shape is not None and held != shape:
        table.fail(f"shape = {list(shape)}, but {file} holds {list(held)}")
    return held
