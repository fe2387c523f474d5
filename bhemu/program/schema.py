"""PROGRAM.toml: what to load, set, feed, run and compare, read into frozen records.

The schema is the one in the interface chapter of the documentation: an unknown key is an error,
paths are relative to the file, and everything that can be checked without running is checked here.
"""

from __future__ import annotations

import json
from pathlib import Path

from bhemu import arguments, memmap
from bhemu.errors import InputError, naming
from bhemu.program import coordinates, files, input_files, options, outputs, recorded, tensor, toml
from bhemu.program.loader import LOCAL_MODES, Local
from bhemu.program.options import BANKS, CHIPS
from bhemu.program.options import ENGINES as ENGINES
from bhemu.program.specs import PAGE_ALIGNMENT, build_from, elf_file
from bhemu.program.specs import XY as XY
from bhemu.program.specs import BufferSpec as BufferSpec
from bhemu.program.specs import ChipSpec as ChipSpec
from bhemu.program.specs import CoreSpec as CoreSpec
from bhemu.program.specs import Dram as Dram
from bhemu.program.specs import FirmwareSpec as FirmwareSpec
from bhemu.program.specs import InputSpec as InputSpec
from bhemu.program.specs import OutputSpec as OutputSpec
from bhemu.program.specs import Program as Program
from bhemu.program.specs import RunSpec as RunSpec
from bhemu.program.specs import SetSpec as SetSpec
from bhemu.program.specs import TileSpec as TileSpec
from bhemu.program.specs import Until as Until
from bhemu.program.toml import REQUIRED, Table
from bhemu.text import printable

BANK_SIZE = 1 << 32
_MOST_PAGES = 1 << 20
HARVESTED_MOST = len(coordinates.COLUMNS) - 1
_DRAM_HINT = "for example dram = { address = 0x100080, page = 2048 }"


def tiles_at(table: Table, key: str) -> tuple[XY, ...]:
    """The tiles that a table names: "1,2", "1-4,2-5", or an array of those."""
    value = table.take(key, REQUIRED, (str, list))
    return coordinates.parse([value] if isinstance(value, str) else value, table.origin)


def one_tile(table: Table) -> XY:
    """The one tile that a table names."""
    found = tiles_at(table, "tile")
    if len(found) > 1:
        table.fail(f"tile stands for {len(found)} tiles, an output is read from one")
    return found[0]


def chip_from(table: Table) -> ChipSpec:
    """[chip]: harvested columns, number of banks, when transfers are delivered, threads, caches."""
    harvest = table.take("harvest", [], (list,))
    if len(harvest) > HARVESTED_MOST or any(
        type(x) is not int or x not in coordinates.COLUMNS for x in harvest
    ):
        table.fail(f"harvest = {harvest} is no list of Tensix columns", hint="1-7 and 10-16")
    given = options.read(table, "chip")
    table.finish()
    return ChipSpec(tuple(harvest), given.pop("dram_banks", BANKS), given)


def dram_from(table: Table, dtype: str, layout: str, shape: tuple[int, ...]) -> Dram | None:
    """`dram` of a tensor, None without; a page is a tile or a row unless the table says it."""
    if "dram" not in table:
        return None
    for key in ("at", "tile"):
        if key in table:
            table.fail(f"{key} beside dram: a tensor lies in L1 or in DRAM", hint=_DRAM_HINT)
    own = table.table("dram")
    # All banks, the first n of them, or those that are listed
    value = own.take("banks", BANKS, (int, list))
    banks = value if isinstance(value, list) else [*range(value if value <= BANKS else 0)]
    known = all(type(n) is int and 0 <= n < BANKS for n in banks)
    if not banks or not known or len(set(banks)) != len(banks):
        own.fail(f"banks = {value} is neither a number of banks nor a list of banks 0-7")
    place = Dram(
        address=own.integer("address", hi=BANK_SIZE - 1),
        page=own.integer("page", _page(own, dtype, layout, shape), lo=1, hi=BANK_SIZE),
        banks=tuple(banks),
    )
    own.finish()
    if place.address % PAGE_ALIGNMENT:
        own.fail(f"address = {place.address:#x} is not a multiple of {PAGE_ALIGNMENT}")
    return place


def _page(table: Table, dtype: str, layout: str, shape: tuple[int, ...]) -> int:
    """Bytes of one tile (tile32), face (faces16) or row (rows); raw bytes have no such unit."""
    edge = tensor.EDGE.get(layout)
    row = shape if edge is None else (edge, edge)
    if "page" in table:
        return 0
    if layout == "raw" or (edge is None and tensor.FORMATS[dtype].kind == "bfp"):
        table.fail("missing key page", hint="bytes that lie together in one bank")
    return tensor.encoded_size(row[-1:] if edge is None else row, dtype, layout)


def check_extent(table: Table, at: coordinates.At, size: int, dram: Dram | None = None) -> None:
    """InputError when `size` bytes at `at`, or over banks, do not fit into memory."""
    if dram is not None:
        files.check_limit("ARRAY_BYTES", size, f"{table.origin}: bytes of the tensor")
        if size > _MOST_PAGES * dram.page:
            table.fail(f"{size} bytes in pages of {dram.page} are more than {_MOST_PAGES} pages")
        last = dram.end(size)
        if last > BANK_SIZE:
            table.fail(f"{size} bytes at {dram.address:#x} end beyond the bank ({last:#x})")
    elif isinstance(at, int):
        coordinates.check_l1(table.origin, at, size)


def check_tensors(program: Program) -> None:
    """InputError for tensors that share bytes, or lie where the program has no bank and no tile."""
    dram = [(spec.origin, spec.dram, spec.size) for spec in program.inputs if spec.dram]
    # InputError when two tensors, as (name, place, size), share bytes of a bank
    for number, (name, place, size) in enumerate(dram):
        for other, its, its_size in dram[:number]:
            both = sorted(set(place.banks) & set(its.banks))
            low = max(place.address, its.address)
            if both and low < min(place.end(size), its.end(its_size)):
                raise InputError(f"{name} and {other} overlap in DRAM bank {both[0]} at {low:#x}")
    banks = (program.chip or ChipSpec()).dram_banks
    places = [*dram, *((spec.origin, spec.dram, 0) for spec in program.outputs if spec.dram)]
    for origin, place, _ in places:
        if max(place.banks) >= banks:
            text = f"{origin}: bank {max(place.banks)} of a chip with {banks} banks"
            raise InputError(text, hint="name the banks: dram = { address = ..., banks = 7 }")
    lie: list[tuple[str, object]] = [(one.origin, one.tiles or one.dram) for one in program.inputs]
    lie += [(one.origin, one.tile or one.dram) for one in program.outputs]
    for origin, at in lie if program.tiles else ():
        if not at:
            hint = 'tile = "1,2", or dram = { address = ... }'
            raise InputError(f"{origin}: in L1 of which tile?", hint=hint)


SAVED_STATE = "state"
_META_BYTES = 16 << 20
_HINT = "written by bhemu run --save, bhemu simulator --keep, or snapshot().save()"


def saved_program(path: Path) -> Program:
    """What begins at the state in `path`, of a tile or of a chip; InputError for no such file."""
    if files.is_missing(path):
        raise InputError(f"{path}: no such file", hint=_HINT)
    try:
        with input_files.Archive(files.read_bytes(path, "ARCHIVE_BYTES")) as archive:
            about = json.loads(str(archive.array("meta", _META_BYTES)))
        if "tiles" not in about:
            return Program(path.stem, SAVED_STATE, {}, path=path, image=path)
        placed = [tuple(int(n) for n in tile["tile"]) for tile in about["tiles"].values()]
        tensix = coordinates.tensix()
        tiles = tuple(TileSpec(((x, y),), {}) for x, y in sorted(placed) if (x, y) in tensix)
        number, chips = about.get("place", (0, 1))
        chip = ChipSpec(tuple(about["harvested"]), int(about["banks"]), {}, (number, chips))
        return Program(path.stem, SAVED_STATE, {}, path=path, image=path, tiles=tiles, chip=chip)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{path}: not a saved state: {error}", hint=_HINT) from error


SESSION = "session"
_RESET = memmap.DEBUG_BASE + memmap.RISCV_DEBUG_REG_SOFT_RESET_0
_HELD = memmap.SOFT_RESET_ALL.to_bytes(4, "little")


def session_program(path: Path) -> Program:
    """What a host did, on the chip that it was done to; InputError for no session."""
    session = recorded.read(path)
    begun = {
        act.xy
        for act in session.acts
        if act.kind == recorded.WRITE and act.address == _RESET and act.data != _HELD
    }
    tiles = tuple(TileSpec((xy,), {}) for xy in sorted(begun & set(coordinates.tensix())))
    given = dict(session.options)
    try:
        harvest, banks = tuple(given.pop("harvest", ())), given.pop("dram_banks", BANKS)
        checked = {
            name: options.OPTIONS[name].kind.check(name, value) for name, value in given.items()
        }
    except (LookupError, TypeError) as problem:
        raise InputError(f"{path}: options of a chip: {problem}") from problem
    if not tiles:
        raise InputError(f"{path}: no core runs in this session", hint="it ended too early")
    number, chips = session.place
    if chips not in CHIPS or not 0 <= number < chips:
        raise InputError(f"{path}: chip {number} of {chips} linked ones")
    chip = ChipSpec(harvest, banks, checked, session.place)
    return Program(path.stem, SESSION, {}, path=path, image=path, tiles=tiles, chip=chip)


SCHEMA = 1
LOCAL_OF_KIND: dict[str, Local] = {"llk": "loader_init", "tt-metal": "lma"}  # else "direct"
BUFFERS, SEMAPHORES = 64, 16


def load_program(path: str | Path, *, allow_outside: bool = False) -> Program:
    """Read a PROGRAM.toml (or the one in a directory), or take a saved state (.npz) as a program.

    Its files lie in its folder, and a link that leads out of it is no file of the program, unless
    `allow_outside`.

    InputError for everything wrong that shows without running: syntax, unknown keys, wrong types,
    missing files, shapes that do not match, addresses outside of memory.
    """
    path = arguments.path(path)
    if path.suffix == ".npz":
        return saved_program(path)
    if files.begins_with(path, recorded.MAGIC):
        return session_program(path)
    if files.is_folder(path):
        path /= "PROGRAM.toml"
    data = toml.read(path, "bhemu new writes one")
    top = Table(data, str(path), path.parent, inside=not allow_outside)
    toml.check_schema(top, "bhemu", SCHEMA)
    kind = top.text("kind", "elf", choices=options.KINDS)
    # Every [[tile]]; no two have a tile in common
    found: list[TileSpec] = []
    for table in top.tables("tile"):
        if kind == "llk":
            table.fail('kind = "llk" is of one tile', hint="[cores] names its ELFs")
        at = tiles_at(table, "at")
        for other in found:
            if shared := set(at) & set(other.at):
                x, y = min(shared)
                table.fail(f"tile {x},{y} is also one of {other.origin.rpartition(': ')[2]}")
        found.append(_tile(table, kind, at))
        table.finish()
    for key in ("cores", "image", "set", "buffer", "semaphores") if found else ():
        if key in top:
            top.fail(f"{key} beside [[tile]]: which tile is meant?", hint=f"[tile.{key}]")
    tiles = tuple(found)
    own = TileSpec((), {}) if tiles else _tile(top, kind, ((1, 2),))
    program = Program(
        name=printable(top.text("name", path.resolve().parent.name)),
        kind=kind,
        path=path,
        inside=not allow_outside,
        cores=own.cores,
        image=own.image,
        sets=own.sets,
        buffers=own.buffers,
        semaphores=own.semaphores,
        tiles=tiles,
        firmware=_firmware(top, kind),
        chip=chip_from(top.table("chip")) if "chip" in top or tiles else None,
        inputs=tuple(input_from(table) for table in top.tables("input")),
        outputs=tuple(output_from(table) for table in top.tables("output")),
        run=_run(top.table("run")),
    )
    build_from(top)  # `bhemu build` reads it again: it needs no ELF to be there
    top.finish()
    check_cores(program, str(path))
    check_tensors(program)
    return program


def _tile(table: Table, kind: str, at: tuple[XY, ...]) -> TileSpec:
    """What a program has on each tile of `at`: of a [[tile]], or of the whole file."""
    buffers = tuple(_buffer(each) for each in table.tables("buffer"))
    numbers = [buffer.index for buffer in buffers]
    if len(set(numbers)) != len(numbers):
        table.fail(f"two circular buffers have index {max(numbers, key=numbers.count)}")
    values = table.take("semaphores", [], (list,))
    if len(values) > SEMAPHORES or any(
        type(n) is not int or not 0 <= n <= 0xFFFF_FFFF for n in values
    ):
        table.fail("semaphores is not an array of at most 16 initial values", hint="[0, 0]")
    semaphores = tuple(values)
    if kind != "tt-metal" and (buffers or semaphores):
        table.fail(f'circular buffers and semaphores belong to kind = "tt-metal", not "{kind}"')
    sets = tuple(set_from(each) for each in table.tables("set"))
    own = table.table("cores")
    tables = {name: own.table(name) for name in memmap.CORE_NAMES}
    own.finish()
    read = kernel_from if kind == "tt-metal" else core_from
    local = LOCAL_OF_KIND.get(kind, "direct")
    cores = {name: read(name, tables[name], local) for name in memmap.CORE_NAMES if name in own}
    return TileSpec(at, cores, _image(table, kind), sets, buffers, semaphores, table.origin)


def _buffer(table: Table) -> BufferSpec:
    spec = BufferSpec(
        index=table.integer("index", hi=BUFFERS - 1),
        at=table.integer("at", hi=memmap.L1_SIZE - 1),
        pages=table.integer("pages", lo=1, hi=0xFFFF),
        page=table.integer("page", lo=16, hi=memmap.L1_SIZE),
    )
    table.finish()
    if spec.at % 16 or spec.page % 16:
        table.fail("at and page are multiples of 16: compute cores count in units of 16 bytes")
    check_extent(table, spec.at, spec.size)
    return spec


def _firmware(top: Table, kind: str) -> FirmwareSpec | None:
    table = top.table("firmware")
    if "firmware" not in top:
        return None
    if kind != "tt-metal":
        table.fail(f'firmware belongs to kind = "tt-metal", not "{kind}"')
    elfs = {name: table.file(name) for name in memmap.CORE_NAMES}
    base = table.integer("base", None, hi=memmap.L1_SIZE - 16)
    table.finish()
    named = {name: path for name, path in elfs.items() if path is not None}
    for name in memmap.CORE_NAMES:
        if name not in named:
            table.fail(f"missing key {name}", hint="all five ELFs of one build belong together")
    if base is not None and base % 16:
        table.fail(f"base = {base:#x} is not a multiple of 16")
    return FirmwareSpec(named, base)


def kernel_from(name: str, table: Table, default: Local = "lma") -> CoreSpec:
    """The kernel of the core called `name`: its ELF and runtime arguments."""
    elf, args, common = elf_file(table), _arguments(table, "args"), _arguments(table, "common")
    table.finish()
    if elf is None:
        table.fail("missing key elf: which kernel runs here?")
    return CoreSpec(name, elf, default, args=args, common=common)


def _arguments(table: Table, key: str) -> tuple[str, ...]:
    values = table.take(key, [], (list,))
    if len(input_files.encode_values(values, table.origin)) % 4:
        table.fail(f"{key} is not a whole number of words")
    return tuple(values)


def core_from(name: str, table: Table, default: Local = "direct") -> CoreSpec:
    """The core called `name` from its table; the ELF must exist. `default` is that of `local`."""
    local = table.take("local", default, (str, int))
    if isinstance(local, str) and local not in LOCAL_MODES:
        table.fail(f'local = "{local}"', hint=f"{', '.join(LOCAL_MODES)} or a staging address")
    if isinstance(local, int) and not 0 <= local < memmap.L1_SIZE:
        table.fail(f"local = {local:#x}: a staging address lies in L1 (below 0x{memmap.L1_SIZE:X})")
    pc = table.integer("pc", None, lo=0, hi=memmap.L1_SIZE - 4)
    spec = CoreSpec(name, elf_file(table), local, table.flag("release", True), pc)
    table.finish()
    if spec.elf is None and pc is None and spec.release:
        table.fail("neither elf nor pc: there is no address to start at")
    return spec


def check_cores(program: Program, origin: str) -> None:
    """InputError when nothing would ever run, or no ELF is named where the kind needs one."""
    cores = [core for part in program.placed() for core in part.cores.values()]
    if program.kind not in (SAVED_STATE, SESSION) and not any(core.release for core in cores):
        hint = 'for example [cores] trisc0 = { elf = "kernel.elf" }'
        raise InputError(f"{origin}: no core is released, so nothing would run", hint=hint)
    if program.kind == "elf" and not any(core.elf for core in cores):
        raise InputError(f'{origin}: kind = "elf", but no core has an elf')
    if program.kind == "llk":
        named = {name for name, core in program.cores.items() if core.elf and core.pc is None}
        if named != set(memmap.CORE_NAMES) - {"ncrisc"} or "ncrisc" in program.cores:
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
    input_files.read_image(path)
    return path


def set_from(table: Table) -> SetSpec:
    """One [[set]]."""
    at, core = coordinates.read_at(table, "at"), table.text("core", None, choices=memmap.CORE_NAMES)
    values = table.take("values", REQUIRED, (list,))
    table.finish()
    if not values:
        table.fail("values is empty", hint='for example ["u32:4", "f32:1.0"]')
    data = input_files.encode_values(values, table.origin)
    kept = tuple(values) if any(value.startswith("tile:") for value in values) else ()
    return SetSpec(at, data, core, table.origin, kept)


def input_from(table: Table) -> InputSpec:
    """One [[input]]: the file must exist and hold the shape."""
    at = 0 if "dram" in table else coordinates.read_at(table, "at")
    dtype, layout = _format(table)
    file, shape = table.file("file"), table.shape("shape")
    convert = table.text("convert", "exact", choices=tensor.CONVERTS)
    if file is None:
        table.fail("missing key file")
    shape = _file_shape(table, file, dtype, shape)
    dram = dram_from(table, dtype, layout, shape)
    tiles = tiles_at(table, "tile") if "tile" in table and not dram else ()
    table.finish()
    spec = InputSpec(at, file, dtype, layout, shape, convert, table.origin, tiles, dram)
    with naming(spec.origin):
        size = spec.size
    check_extent(table, at, size, dram)
    return spec


def output_from(table: Table) -> OutputSpec:
    """One [[output]]: an expected file must exist and hold the shape."""
    at = 0 if "dram" in table else coordinates.read_at(table, "at")
    dtype, layout = _format(table)
    shape, expect = table.shape("shape"), table.file("expect")
    if expect is not None:
        shape = _file_shape(table, expect, dtype, shape)
    if shape is None:
        table.fail("missing key shape", hint="or give expect, whose shape it takes")
    dram = dram_from(table, dtype, layout, shape)
    spec = OutputSpec(
        name=printable(table.text("name", "output" if expect is None else expect.stem)),
        at=at,
        dtype=dtype,
        layout=layout,
        shape=shape,
        save=table.new_file("save"),
        expect=expect,
        compare=table.text("compare", "bits", choices=outputs.COMPARES),
        max_ulp=table.integer("max_ulp", 1),
        rtol=table.number("rtol", 0.05),
        atol=table.number("atol", 0.05),
        origin=table.origin,
        tile=one_tile(table) if "tile" in table and not dram else None,
        dram=dram,
    )
    table.finish()
    with naming(spec.origin):
        size = spec.size
    check_extent(table, at, size, dram)
    return spec


def _run(table: Table) -> RunSpec:
    until = table.take("until", "idle", (str, list))
    if isinstance(until, str) and until != "idle":
        table.fail(f'until = "{until}"', hint='"idle", or [{ word = 0x100, equals = 0xD0E0 }]')
    conditions = [] if isinstance(until, str) else list(table.tables("until"))
    spec = RunSpec(tuple(until_from(condition) for condition in conditions))
    values = options.read(table, "run")
    table.finish()
    return spec.with_options(values)


def until_from(table: Table) -> Until:
    """One condition of `until`: a word of L1 and the value it must have."""
    word, equals = coordinates.read_at(table, "word"), table.integer("equals", hi=0xFFFF_FFFF)
    tiles = tiles_at(table, "tile") if "tile" in table else ()
    table.finish()
    if isinstance(word, int) and (word % 4 or word > memmap.L1_SIZE - 4):
        table.fail(f"word = 0x{word:X} is not the address of a 32-bit word of L1")
    return Until(word, equals, tiles)


def _format(table: Table) -> tuple[str, str]:
    """(dtype, layout); tile32 is what kernels use, raw bytes have no other layout than raw."""
    dtype = table.text("dtype", choices=tensor.DTYPES)
    default = "raw" if dtype == "raw" else "tile32"
    return dtype, table.text("layout", default, choices=tensor.LAYOUTS)


def _file_shape(
    table: Table, file: Path, dtype: str, shape: tuple[int, ...] | None
) -> tuple[int, ...]:
    """The shape of the file's array (bytes for "raw"); it must be `shape` where that is given."""
    array = input_files.read_array(file, dtype, table.origin)
    held = (array.nbytes,) if dtype == "raw" else array.shape
    if shape is not None and held != shape:
        table.fail(f"shape = {list(shape)}, but {file} holds {list(held)}")
    return held
