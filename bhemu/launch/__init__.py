"""A program on a machine, a tile or a chip: placed, released, run to its end, compared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

from bhemu import memmap
from bhemu.errors import BhemuError, InputError, Limit, NoProgress, Where, naming
from bhemu.jit import Later
from bhemu.machine.precompile import ElfCache
from bhemu.machine.resolve import resolve
from bhemu.machine.stop import EndCondition, Stop
from bhemu.machine.tile import Tile
from bhemu.program import coordinates, loader, recorded, schema
from bhemu.program.coordinates import XY, At, check_l1
from bhemu.program.input_files import encode_values, read_image
from bhemu.program.options import CHIP_ONLY, NOC, OPTIONS, LaunchOptions
from bhemu.program.outputs import check_saves, collect
from bhemu.program.specs import CoreSpec, FirmwareSpec, InputSpec, SetSpec, TileSpec
from bhemu.text import counted

if TYPE_CHECKING:
    from bhemu import llk
    from bhemu.machine.machine import Chip
    from bhemu.machine.recorded_host import RecordedHost
    from bhemu.machine.saved import Snapshot
    from bhemu.metal import Firmware, kernels
    from bhemu.program.outputs import OutputResult

    Result = OutputResult | RecordedHost  # by which a run is judged
else:
    llk = Later("bhemu.llk")


_JUMP_REACH = 0x100000  # bytes that `jal` reaches forwards
_LUI_T0, _JR_T0 = 0x000002B7, 0x00028067


def place(tile: Tile, part: TileSpec, elfs: Mapping[str, loader.Image]) -> None:
    """ELFs, start addresses and values of `part`; `elfs` are those of its cores."""
    if part.image is not None:
        tile.write(0, read_image(part.image).tobytes())
    for name, elf in elfs.items():
        tile.core[name].load_image(elf, part.cores[name].local)
    for name, spec in part.cores.items():
        _set_start(tile, spec, elfs.get(name), from_image=part.image is not None)
    place_values(tile, part)


def place_values(tile: Tile, part: TileSpec) -> None:
    """The values of every [[set]]."""
    for spec in part.sets:
        _set(tile, spec, data_of(spec, tile, part))


def data_of(spec: SetSpec, tile: Tile, part: TileSpec) -> bytes:
    """The bytes of a [[set]] on this tile."""
    if not spec.values:
        return spec.data
    return encode_values(spec.values, spec.origin, coordinates.values_of(tile.xy, part.at))


def _set_start(tile: Tile, spec: CoreSpec, image: loader.Image | None, *, from_image: bool) -> None:
    """Where the core starts: the reset-PC registers; for brisc a jump at L1 address 0."""
    start = spec.pc
    if start is None:
        if image is None:
            return  # released by another core, which sets the address
        start = image.entry
    if start % 4 or not 0 <= start < memmap.L1_SIZE:
        raise InputError(f"{spec.name} would start at {start:#x}, which is no code address of L1")
    if spec.name != "brisc":
        tile.core[spec.name].set_reset_pc(start)
    elif start != 0:
        _jump_at_zero(tile, start, has_start=spec.pc is not None, from_image=from_image)


def _jump_at_zero(tile: Tile, start: int, *, has_start: bool, from_image: bool) -> None:
    """Brisc starts at address 0: put a jump there unless its own ELF brings the start code."""
    code = _jump(start)
    owner = next((name for low, high, name in tile.ranges if low < len(code) and high > 0), None)
    held = from_image and any(tile.read(0, len(code)))
    if owner is None and not held:
        tile.write(0, code)
        tile.ranges.append((0, len(code), "the jump to brisc's entry"))
        return
    brisc = [symbols.path for symbols in tile.core["brisc"].images]
    if owner is not None and not has_start and Path(owner).name in brisc:
        return
    raise InputError(
        f"brisc starts at L1 address 0, where {owner or 'the image'} lies;"
        f" there is no room for a jump to {start:#x}",
        hint="put start code at 0, or leave 0..8 free",
    )


def _jump(target: int) -> bytes:
    """`j target` at address 0; beyond the reach of jal: lui t0; jr t0."""
    if target < _JUMP_REACH:
        offset = (target >> 20 & 1) << 31 | (target >> 1 & 0x3FF) << 21
        offset |= (target >> 11 & 1) << 20 | (target & 0xFF000)
        return (offset | 0x6F).to_bytes(4, "little")
    low = (target & 0xFFF) - ((target & 0x800) << 1)
    words = (_LUI_T0 | (target - low), _JR_T0 | (low & 0xFFF) << 20)
    return b"".join(word.to_bytes(4, "little") for word in words)


def _set(tile: Tile, spec: SetSpec, data: bytes) -> None:
    """Write one [[set]]: to L1 or a device as host or core, to local RAM as its core."""
    with naming(spec.origin):
        address = resolve(tile, spec.at, spec.core)
    if address < memmap.L1_SIZE:
        check_l1(spec.origin, address, len(data))
        tile.write(address, data)
        tile.initial_values.append((address, data))
        return
    if memmap.LOCAL_BASE <= address < memmap.DEVICE_BASE:
        # Bytes into a core's local RAM, which takes words
        if spec.core is None:
            hint = "name the core"
            raise InputError(f"{spec.origin}: {address:#x} is private RAM of a core", hint=hint)
        core = tile.core[spec.core]
        end = memmap.LOCAL_BASE + loader.LOCAL_SIZE[core.name]
        if address + len(data) > end:
            raise InputError(
                f"{spec.origin}: {len(data)} bytes at {address:#x} end beyond the local RAM"
                f" of {core.name} ({end:#x})"
            )
        core.store_local(address, data)
        return
    if address % 4 or len(data) % 4:
        raise InputError(
            f"{spec.origin}: a device takes whole words: {len(data)} bytes at {address:#x}"
        )
    write = tile.write32 if spec.core is None else tile.core[spec.core].write32
    with naming(spec.origin):
        for i in range(0, len(data), 4):
            write(address + i, int.from_bytes(data[i : i + 4], "little"))


def l1_address(tile: Tile, origin: str, at: At, size: int) -> int:
    """The address of `at` on a tile; InputError unless `size` bytes there are inside L1."""
    with naming(origin):
        address = resolve(tile, at)
    check_l1(origin, address, size)
    return address


Placed = list[tuple[Tile, TileSpec]]  # the tiles of a program, each with its part


class Program(schema.Program):
    """A program as files: what to load, set, feed, run and compare (PROGRAM.toml)."""

    @classmethod
    def load(cls, path: str | Path, *, allow_outside: bool = False) -> Program:
        """Read a PROGRAM.toml, or the one in a folder; InputError for every mistake in it.

        Its files lie in its folder unless `allow_outside`. A saved state (.npz) is a program too,
        which begins there.
        """
        return cls(**vars(schema.load_program(path, allow_outside=allow_outside)))

    def launch(self, **options: Unpack[LaunchOptions]) -> Any:
        """A machine with the program on it, its cores released, nothing executed yet.

        A Chip for a program with [[tile]], [chip] or tensors in DRAM, else a Tile, which knows no
        other tile: the caller knows which, hence no type. options: as in Tile or Chip; what is not
        given is as the program says. run() then ends where the program ends, check() compares its
        outputs. InputError for everything that can be found out without running.
        """
        given: Any = options
        return launch(self, **given)

    def __repr__(self) -> str:
        if self.tiles:
            on = coordinates.text([xy for part in self.tiles for xy in part.at])
        else:
            on = ", ".join(self.cores)
        given = f"{counted(len(self.inputs), 'input')}, {counted(len(self.outputs), 'output')}"
        where = "" if self.path is None else f", {self.path}"
        return f"<Program {self.name}: {self.kind} on {on}; {given}{where}>"


def launch(
    program: schema.Program,
    *,
    boot: bool = True,
    elfs: ElfCache | None = None,
    prepare: Callable[[Tile], None] | None = None,
    begun: Snapshot | None = None,
    **options: Unpack[LaunchOptions],
) -> Any:
    """A Tile or Chip with `program` on it, its cores released, nothing executed yet.

    Of kind "llk" brisc has booted and been told to start the TRISCs, of kind "tt-metal" the
    firmware has booted and been told to run the kernels, unless `boot` is False. `elfs`: ELFs that
    earlier launches have read. prepare: of each tile of the program, before anything is on it.
    begun: a state of its run, in which the machine then is.
    options: as in Tile or Chip, where the program says nothing else. InputError for everything that
    can be found out without running: ELFs that overlap, unknown symbols, addresses outside memory,
    outputs that cannot be written.
    """
    check_saves(program)
    elfs = elfs or ElfCache()
    elfs.read({c.elf for part in program.placed() for c in part.cores.values() if c.elf})
    machine: Any = _machine(program, options)
    if machine.network is None:
        program = replace(program, xy=machine.xy)
    placed = list(placed_tiles(machine, program))
    # InputError where `late` names acts that this program cannot have
    acts = () if machine.late is None else machine.late.acts
    known = {tile.xy for tile, _ in placed}
    for one in acts:
        if one.tile not in (None, *known):
            hint = "its tiles: " + ", ".join("{}-{}".format(*xy) for xy in sorted(known))
            raise InputError(f"late: {one} is of no tile of {program.name}", hint=hint)
        if one.agent == NOC and machine.network is None:
            raise InputError(f"late: {program.name} is a program of one tile: it has no {one}")
    if prepare is not None:
        for tile, _ in placed:
            prepare(tile)
    if begun is not None:
        machine.restore(begun)
        end = machine.loop.end
    elif program.kind == schema.SAVED_STATE:
        end = _resume(machine, program)
    elif program.kind == schema.SESSION:
        end = _follow(machine, program, {**program.options, **options})
    else:
        firmware = _place(machine, placed, program, elfs, boot=boot)
        words = _words(placed, program)
        _check_outputs(machine, program)
        for source in program.inputs:
            feed(machine, program, source)
        _start(placed, program, firmware, boot=boot)
        if firmware is not None and not words:
            words = [(tile.xy, firmware.go, 0) for tile, _ in placed]
        clock = None if program.run.limit is None else machine.clock + program.run.limit
        end = EndCondition(tuple(words), clock, program.run.timeout_s)
    machine.loop.launched(program, end)
    return machine


def _machine(program: schema.Program, options: LaunchOptions) -> Tile | Chip:
    """A machine as the program and the options say."""
    given: Any = {**program.options, **options}
    if program.is_alone:
        for name in options.keys() & set(CHIP_ONLY):
            raise InputError(f"{name}: {program.name} is a program of one tile")
        return Tile(**given)
    if "xy" in options:
        raise InputError(f"xy: {program.name} is a program of a chip, which says where it is")
    from bhemu.machine.machine import Chip, LinkedChip

    number, chips = (0, 1) if program.chip is None else program.chip.place
    return LinkedChip(number, chips, **given) if chips > 1 else Chip(**given)


def placed_tiles(machine: Any, program: schema.Program) -> Iterator[tuple[Tile, TileSpec]]:
    """The tiles of the program with their parts."""
    for part in program.placed():
        for xy in part.at:
            yield machine.tile[xy], part


def _follow(machine: Any, program: schema.Program, options: Mapping[str, Any]) -> EndCondition:
    """A recorded session: its host will do again what it did; nothing is on the machine yet."""
    from bhemu.machine.recorded_host import RecordedHost

    assert program.path is not None
    session = recorded.read(program.path)
    of_time = ("late", "timing", "quantum", "delivery")  # in which rounds something is seen
    # Questions name the quantum: what they change changes times too, so that the host must wait.
    usual = {name: OPTIONS[name].default for name in of_time} if session.has_one_time else {}
    now, then = {**usual, **options}, {**usual, **session.options}
    same = all(str(now.get(name)) == str(then.get(name)) for name in of_time)
    machine.loop.host = RecordedHost(machine, session, same_times=same)
    clock = None if program.run.limit is None else machine.clock + program.run.limit
    return EndCondition((), clock, program.run.timeout_s)


def _place(
    machine: Any, placed: Placed, program: schema.Program, elfs: ElfCache, *, boot: bool
) -> Firmware | None:
    """Everything that goes to tiles: firmware, which boots, kernels or plain ELFs, values."""
    if program.kind != "tt-metal":
        for tile, part in placed:
            images = {n: elfs.image(core.elf) for n, core in part.cores.items() if core.elf}
            place(tile, part, images)
        return None
    from bhemu.metal import Grid, kernels, read_firmware

    grid = Grid.of(program.chip)
    firmware = None if program.firmware is None else read_firmware(program.firmware)
    if firmware is not None and boot:
        kernels.boot([tile for tile, _ in placed], firmware, grid, waiter(machine))
    for tile, part in placed:
        if firmware is None:
            kernels.place_bare(tile, part, grid, elfs)
        else:
            if not boot:
                kernels.load_firmware(tile, firmware, grid)
            kernels.place_kernels(tile, firmware, part, elfs)
        place_values(tile, part)
    return firmware


def waiter(machine: Any) -> kernels.Wait:
    """Runs the machine for a host that waits."""

    def wait(conditions: Sequence[tuple[Tile, int, int]], limit: int) -> Stop:
        words = [(tile.xy, address, value) for tile, address, value in conditions]
        resume = isinstance(machine.error, NoProgress)
        stop: Stop = machine.run(words or "idle", limit=limit, resume=resume)
        return stop

    return wait


def feed(machine: Any, program: schema.Program, source: InputSpec) -> None:
    """One input into L1 and DRAM; InputError where its values or its place do not fit."""
    if source.dram is not None:
        source.dram.write(source.data(), lambda b, at, d: machine.dram[b].write(at, d))
    elif not source.tiles:
        tile, _ = next(placed_tiles(machine, program))
        at = l1_address(tile, source.origin, source.at, source.size)
        tile.write(at, source.data())
    for xy in source.tiles:
        tile = machine.tile[xy]
        tile.write(l1_address(tile, source.origin, source.at, source.size), source.data())


def _start(
    placed: Placed, program: schema.Program, firmware: Firmware | None, *, boot: bool
) -> None:
    for tile, part in placed:
        if firmware is not None:
            from bhemu.metal import kernels

            kernels.go(tile, firmware)
        elif program.kind != "llk":
            for name, spec in part.cores.items():
                if spec.release:  # the others are released by a core
                    tile.core[name].release()
        elif boot:
            llk.start(tile)


def _resume(machine: Any, program: schema.Program) -> EndCondition:
    """The machine as it was saved, which goes on to the end that it was on the way to."""
    from bhemu.machine import saved

    assert program.image is not None
    given = {"--core": program.cores, "--set": program.sets, "--in": program.inputs}
    for flag, what in given.items():
        if what:
            raise InputError(f"{flag}: nothing is placed on a saved state", hint="write it by hand")
    state = saved.Snapshot.load(program.image)
    again = isinstance(state.error, NoProgress)  # found anew, with what waits for what
    machine.restore(saved.without_error(state) if again else state)
    placed = list(placed_tiles(machine, program))
    _check_outputs(machine, program)
    end = machine.loop.end
    clock = end.clock if end.clock and end.clock > machine.clock else None  # reached already
    if program.run.limit is not None:
        clock = machine.clock + program.run.limit
    words = tuple(_words(placed, program)) or end.words
    return EndCondition(words, clock, program.run.timeout_s or end.timeout_s)


def _words(placed: Placed, program: schema.Program) -> list[tuple[XY, int, int]]:
    """The end condition that the program states."""
    if program.kind == "llk" and not program.run.until:
        return [(tile.xy, at, value) for tile, _ in placed for at, value in llk.done_words()]
    tiles = {tile.xy: tile for tile, _ in placed}
    words = []
    for until in program.run.until:
        if not until.tiles and len(tiles) > 1:
            hint = 'until = [{ tile = "1,2", word = 0x100, equals = 0xD0E0 }]'
            raise InputError(f"{until.origin}: a word of which tile?", hint=hint)
        for xy in until.tiles or tiles:
            tile = tiles[xy] if xy in tiles else placed[0][0].tile_at(xy)
            address = l1_address(tile, until.origin, until.word, 4)
            if address % 4:
                raise InputError(f"{until.origin}: {address:#x} is not aligned to 4 bytes")
            words.append((xy, address, until.equals))
    return words


def word_name(program: schema.Program, address: int) -> str:
    """How a message calls the word at `address` of an end condition."""
    if program.kind == "llk":
        return llk.word_name(address)
    if program.kind == "tt-metal" and not program.run.until:
        return f"the go message at {address:#x}"
    return f"word {address:#x}"


def _check_outputs(machine: Any, program: schema.Program) -> None:
    """Outputs lie in L1, before anything runs."""
    for spec in program.outputs:
        if spec.dram is None and (program.is_alone or spec.tile is not None):
            l1_address(machine.chosen(spec.tile), spec.origin, spec.at, spec.size)


_NO_PAST = "a saved state has no past: begin with the program, or with a state saved earlier"
_HINT = "raise it, or look where it is with bhemu step"


def tolerated(tiles: Iterable[Tile]) -> dict[str, int]:
    """Rule id -> how often it was broken without an error (ub = "warn" and "silicon"), or noted."""
    from bhemu.tensix.rules import counted

    counts: dict[int, int] = {}
    for tile in tiles:
        for number, times in counted(tile.state).items():
            if times:
                counts[number] = counts.get(number, 0) + int(times)
    if not counts:
        return {}
    from bhemu.machine.sentences import RULES  # imports every instruction

    return {RULES[number].rule: times for number, times in counts.items()}


class RunResult(NamedTuple):
    """How a run ended: its stop, if it came to one; its error, or that it ended too early."""

    stop: Stop | None
    error: BhemuError | None

    @property
    def interrupted(self) -> bool:
        """Whether the user stopped it."""
        return self.stop is not None and self.stop.reason == "interrupt"


class Launched:
    """A launched program: `machine` is a Tile or a Chip, `tile` the one that is looked at.

    `shown`: the coordinate of that one, else the first. options: as of launch().
    """

    def __init__(self, program: schema.Program, shown: XY | None = None, **options: Any) -> None:
        self.machine: Tile | Chip = launch(program, **options)
        assert self.machine.loop.program is not None  # with its tile, where it has only one
        self.program: schema.Program = self.machine.loop.program
        self.tile: Tile = self.machine.tile[shown or self.program.placed()[0].at[0]]

    def run(self) -> Stop:
        """To the program's end condition, limit or time-out."""
        return self.machine.run()

    def finish(self) -> RunResult:
        """As run; how it ended, errors included."""
        stop: Stop | None = None
        try:
            stop = self.run()
            return RunResult(stop, self.error_if_incomplete(stop))
        except BhemuError as error:
            if isinstance(error, NoProgress) and self.program.firmware is not None:
                self._set_firmware_apart(error, self.program.firmware)
            if isinstance(error, NoProgress) and self.program.run.until:
                # The conditions whose words hold something, and another value
                held = [one for one in self._open() if one[0].read32(one[1])]
                if other := self._in_words(held):
                    error.hint = f"{error.hint}; the run was to end when {other}"
            return RunResult(stop, error)

    def _set_firmware_apart(self, error: NoProgress, firmware: FirmwareSpec) -> None:
        """Cores that wait for the next kernel in firmware explain no hang."""
        from bhemu.machine.hang.graph import set_idle_apart
        from bhemu.machine.hang.waits import Waiter

        paths = {str(path) for path in firmware.elfs.values()}
        tiles = {str(list(tile.xy)): tile for tile in self.tiles}

        def is_idle(waiter: Waiter) -> bool:
            tile, pc = tiles.get(str(waiter.where.get("tile"))), waiter.where.get("pc")
            ranges = () if tile is None or "thread" in waiter.where else tile.ranges
            return any(low <= int(str(pc)) < high and path in paths for low, high, path in ranges)

        set_idle_apart(error, is_idle)

    def keep_history(self) -> None:
        """The tile that is looked at can be stepped, forwards and back; before it runs."""
        self.tile.keep_history()
        if self.program.kind == schema.SAVED_STATE:
            self.tile.history.marks.hint = _NO_PAST

    def prepare_checks(self) -> None:
        """Keep what checks look back into: the history of the only tile; before it runs."""
        if self.program.is_alone:
            self.keep_history()

    def check(self) -> list[Result]:
        """The outputs: saved, compared; what the host of a session has read."""
        host = self.machine.loop.host
        return [*collect(self.program, self.machine.output), *([host] if host else [])]

    @property
    def clock(self) -> int:
        """Of the machine."""
        return self.machine.clock

    @property
    def tiles(self) -> tuple[Tile, ...]:
        """All tiles that the program has."""
        named = {self.machine.tile[xy] for part in self.program.placed() for xy in part.at}
        return tuple(sorted(named, key=lambda tile: tile.number))

    def part(self, xy: XY) -> schema.Program:
        """The program as one tile has it."""
        part = next(p for p in self.program.placed() if xy in p.at)
        return replace(self.program, cores=part.cores, sets=part.sets, image=part.image, tiles=())

    def error_if_incomplete(self, stop: Stop) -> BhemuError | None:
        """The error of a run that ended before its end condition, None when it did not."""
        if stop.reason == "until":
            return None
        unmet = self._open()
        wanted = self._in_words(unmet)
        before = f" before {wanted}" if wanted else ""
        tile = unmet[0][0] if unmet else self.tile

        def place(state: str) -> Where | None:
            return next((c.where() for c in tile.core.values() if c.state == state), None)

        where = place("running")
        if stop.reason == "limit":
            text = f"the clock limit of {self.program.run.limit} was reached{before}"
            return Limit(text, rule="LIMIT", where=where, hint=_HINT)
        if stop.reason == "timeout":
            text = f"the time-out of {self.program.run.timeout_s} s was reached{before}"
            return Limit(text, category="Timeout", rule="TIMEOUT", where=where, hint=_HINT)
        if stop.reason == "idle" and wanted:
            hint = "did every core start? see the counts of retired instructions"
            text = f"everything is idle or parked{before}"
            return NoProgress(text, rule="IDLE", where=place("parked"), hint=hint)
        return None

    def end_words(self) -> list[tuple[Tile, int, int]]:
        """The end condition: tile, address, value wanted."""
        return [(self.machine.tile[xy], at, want) for xy, at, want in self.machine.loop.end.words]

    def _open(self) -> list[tuple[Tile, int, int]]:
        """The conditions that do not hold: tile, address, value wanted."""
        return [(tile, at, want) for tile, at, want in self.end_words() if tile.read32(at) != want]

    def _in_words(self, conditions: list[tuple[Tile, int, int]]) -> str:
        texts = []
        for tile, at, want in conditions[:4]:
            of = "" if len(self.tiles) == 1 else f" of tile ({tile.xy[0]},{tile.xy[1]})"
            name = word_name(self.program, at)
            texts.append(f"{name}{of} was {want:#x} (it is {tile.read32(at):#x})")
        return " and ".join(texts)
