"""A program on a machine: its parts placed, its cores released, how its runs end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from bhemu.errors import InputError, NoProgress
from bhemu.launch.placement import check_saved, l1_address, place, place_values, release
from bhemu.llk import harness
from bhemu.machine.elf_cache import Texts
from bhemu.machine.stop import End, Stop
from bhemu.machine.tile import Tile
from bhemu.program import coordinates, schema
from bhemu.program.coordinates import XY
from bhemu.program.options import CHIP_ONLY, LaunchOptions
from bhemu.program.outputs import check_saves
from bhemu.program.specs import TileSpec

if TYPE_CHECKING:  # much code that most programs do not need
    from bhemu.machine.machine import Chip
    from bhemu.metal import host
    from bhemu.metal.firmware import Firmware

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
        given = f"{_count(self.inputs, 'input')}, {_count(self.outputs, 'output')}"
        where = "" if self.path is None else f", {self.path}"
        return f"<Program {self.name}: {self.kind} on {on}; {given}{where}>"


def _count(items: Sequence[object], noun: str) -> str:
    return f"{len(items)} {noun}{'' if len(items) == 1 else 's'}"


def launch(
    program: schema.Program,
    *,
    boot: bool = True,
    texts: Texts | None = None,
    prepare: Callable[[Tile], None] | None = None,
    **options: Unpack[LaunchOptions],
) -> Any:
    """A Tile or Chip with `program` on it, its cores released, nothing executed yet.

    Of kind "llk" brisc has booted and been told to start the TRISCs, of kind "tt-metal" the
    firmware has booted and been told to run the kernels, unless `boot` is False. `texts`: ELFs that
    earlier launches have read. prepare: of each tile of the program, before anything is on it.
    options: as in Tile or Chip, where the program says nothing else. InputError for everything that
    can be found out without running: ELFs that overlap, unknown symbols, addresses outside memory,
    outputs that cannot be written.
    """
    check_saves(program)
    texts = texts or Texts()
    texts.read({c.elf for part in program.placed() for c in part.cores.values() if c.elf})
    machine: Any = _machine(program, options)
    placed = list(_tiles(machine, program))
    for tile, _ in placed:
        if prepare is not None:
            prepare(tile)
    if program.kind == schema.SAVED_STATE:
        end = _resume(machine, program)
    else:
        firmware = _place(machine, placed, program, texts, boot=boot)
        words = _words(placed, program)
        _check_outputs(machine, program)
        _feed(machine, placed, program)
        _start(placed, program, firmware, boot=boot)
        if firmware is not None and not words:
            words = [(tile.xy, firmware.go, 0) for tile, _ in placed]
        clock = None if program.run.limit is None else machine.clock + program.run.limit
        end = End(tuple(words), clock, program.run.timeout_s)
    machine.loop.launched(program, end)
    return machine


def _machine(program: schema.Program, options: LaunchOptions) -> Tile | Chip:
    """A machine as the program and the options say."""
    if program.is_alone:
        for name in options.keys() & set(CHIP_ONLY):
            raise InputError(f"{name}: {program.name} is a program of one tile")
        given: Any = {**program.options, **options}
        return Tile(**given)
    if "xy" in options:
        raise InputError(f"xy: {program.name} is a program of a chip, which says where it is")
    from bhemu.machine.machine import Chip

    given = {**program.options, **options}
    return Chip(**given)


def _tiles(machine: Any, program: schema.Program) -> Iterator[tuple[Tile, TileSpec]]:
    """The tiles of the program with their parts; a tile alone is where its options say."""
    for part in program.placed():
        for xy in (machine.xy,) if program.is_alone else part.at:
            yield machine.tile[xy], part


def _place(
    machine: Any, placed: Placed, program: schema.Program, texts: Texts, *, boot: bool
) -> Firmware | None:
    """Everything that goes to tiles: firmware, which boots, kernels or plain ELFs, values."""
    if program.kind != "tt-metal":
        for tile, part in placed:
            elfs = {n: texts.image(core.elf) for n, core in part.cores.items() if core.elf}
            place(tile, part, elfs)
        return None
    from bhemu.metal import bare, host
    from bhemu.metal.firmware import Grid, read_firmware

    grid = Grid.of(program.chip)
    firmware = None if program.firmware is None else read_firmware(program.firmware)
    if firmware is not None and boot:
        host.boot([tile for tile, _ in placed], firmware, grid, waiter(machine))
    for tile, part in placed:
        if firmware is None:
            bare.place(tile, part, grid, texts)
        else:
            if not boot:
                host.load_firmware(tile, firmware, grid)
            host.place_kernels(tile, firmware, part, texts)
        place_values(tile, part)
    return firmware


def waiter(machine: Any) -> host.Wait:
    """Runs the machine for a host that waits."""

    def wait(conditions: Sequence[tuple[Tile, int, int]], limit: int) -> Stop:
        words = [(tile.xy, address, value) for tile, address, value in conditions]
        resume = isinstance(machine.error, NoProgress)
        stop: Stop = machine.run(words or "idle", limit=limit, resume=resume)
        return stop

    return wait


def _feed(machine: Any, placed: Placed, program: schema.Program) -> None:
    """The inputs, into L1 and DRAM."""
    for source in program.inputs:
        if source.dram is not None:
            data = source.data()
            source.dram.write(data, lambda b, at, d: machine.dram[b].write(at, d))
        elif not source.tiles:
            tile = machine.chosen(None) if program.is_alone else placed[0][0]
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
            from bhemu.metal import host

            host.go(tile, firmware)
        elif program.kind != "llk":
            release(tile, part)
        elif boot:
            harness.start(tile)


def _resume(machine: Any, program: schema.Program) -> End:
    """The machine as it was saved, which goes on to the end that it was on the way to."""
    from bhemu.machine import saved as states

    state = states.Snapshot.load(check_saved(program))
    again = isinstance(state.error, NoProgress)  # found anew, with what waits for what
    machine.restore(states.without_error(state) if again else state)
    placed = list(_tiles(machine, program))
    _check_outputs(machine, program)
    end = machine.loop.end
    clock = end.clock if end.clock and end.clock > machine.clock else None  # reached already
    if program.run.limit is not None:
        clock = machine.clock + program.run.limit
    words = tuple(_words(placed, program)) or end.words
    return End(words, clock, program.run.timeout_s or end.timeout_s)


def _words(placed: Placed, program: schema.Program) -> list[tuple[XY, int, int]]:
    """The end condition that the program states."""
    if program.kind == "llk" and not program.run.until:
        return [(tile.xy, at, value) for tile, _ in placed for at, value in harness.done_words()]
    tiles = {tile.xy: tile for tile, _ in placed}
    words = []
    for until in program.run.until:
        if not until.tiles and len(tiles) > 1:
            raise InputError(
                "[run] until: a word of which tile?",
                hint='until = [{ tile = "1,2", word = 0x100, equals = 0xD0E0 }]',
            )
        for xy in until.tiles or tiles:
            tile = tiles[xy] if xy in tiles else placed[0][0].tile_at(xy)
            address = l1_address(tile, "[run] until", until.word, 4)
            if address % 4:
                raise InputError(f"[run] until: {address:#x} is not aligned to 4 bytes")
            words.append((xy, address, until.equals))
    return words


def word_name(program: schema.Program, address: int) -> str:
    """How a message calls the word at `address` of an end condition."""
    if program.kind == "llk":
        return harness.word_name(address)
    if program.kind == "tt-metal" and not program.run.until:
        return f"the go message at {address:#x}"
    return f"word {address:#x}"


def _check_outputs(machine: Any, program: schema.Program) -> None:
    """Outputs lie in L1, before anything runs."""
    for spec in program.outputs:
        if spec.dram is None and (program.is_alone or spec.tile is not None):
            l1_address(machine.chosen(spec.tile), spec.origin, spec.at, spec.size)
