"""A program on a tile: its parts placed, its cores released, how its runs end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from bhemu.elf_texts import Texts
from bhemu.errors import InputError, NoProgress
from bhemu.llk import harness
from bhemu.machine.stop import Stop
from bhemu.machine.until import End
from bhemu.names import resolve
from bhemu.options import ChipOptions, LaunchOptions, TileOptions, of_run
from bhemu.placing import check_saved, l1_address, place, place_values, release
from bhemu.program import coordinates, saved, schema
from bhemu.program.outputs import check_saves
from bhemu.snapshot import Snapshot
from bhemu.tile import Tile

if TYPE_CHECKING:
    from bhemu.metal.firmware import Firmware

_OF_CHIPS = frozenset(ChipOptions.__annotations__) - frozenset(TileOptions.__annotations__)


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
        """A Tile or Chip with the program on it, its cores released, nothing executed yet.

        A Chip for a program with [[tile]], [chip] or tensors in DRAM, as `is_chip` tells: the
        caller knows which, hence no type. options: as in Tile or Chip; what is not given is as the
        program says. run() then ends where the program ends, check() compares its outputs.
        InputError for everything that can be found out without running.
        """
        given: Any = options
        if not self.is_chip:
            for name in options.keys() & _OF_CHIPS:
                raise InputError(f"{name}: {self.name} is a program of one tile")
            return launch(self, **given)
        from bhemu import launch_chip  # much code that a program of one tile does not need

        if "xy" in options:
            raise InputError(f"xy: {self.name} is a program of a chip, which says where it is")
        return launch_chip.launch(self, **given)

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
    **options: Unpack[TileOptions],
) -> Tile:
    """A tile with `program` on it, its cores released, nothing executed yet.

    Of kind "llk" brisc has booted and been told to start the TRISCs, of kind "tt-metal" the
    firmware has booted and been told to run the kernels, unless `boot` is False. `texts`: ELFs that
    earlier launches have read. prepare: of the tile, before anything is on it.
    options: as in Tile, where the program says nothing else. InputError for everything that can be
    found out without running: ELFs that overlap, unknown symbols, addresses outside memory, outputs
    that cannot be written.
    """
    if program.is_chip:
        raise InputError(
            f"{program.name} is a program of a chip, and this is for programs of one tile",
            hint="run, step, trace, dump and check take both",
        )
    check_saves(program)
    if program.kind == saved.KIND:
        return _resume(program, prepare, options)
    part, texts = program.placed()[0], texts or Texts()
    texts.read(spec.elf for spec in part.cores.values() if spec.elf)
    given: TileOptions = {**of_run(program.run), **options}
    tile = Tile(**given)
    if prepare is not None:
        prepare(tile)
    firmware = None
    if program.kind == "tt-metal":
        firmware = _place_metal(tile, program, texts, boot=boot)
    else:
        place(tile, part, {n: texts.image(spec.elf) for n, spec in part.cores.items() if spec.elf})
    _check_addresses(tile, program)
    for source in program.inputs:
        at = l1_address(tile, source.origin, source.at, source.size)
        tile.write(at, source.data())
    if firmware is not None:
        from bhemu.metal import host

        host.go(tile, firmware)
    elif program.kind != "llk":
        release(tile, part)
    elif boot:
        harness.start(tile)
    tile.launched(program, _end(tile, program, None if firmware is None else firmware.go))
    return tile


def _end(tile: Tile, program: schema.Program, go: int | None) -> End:
    """When the run of a launched program ends; go: the word that its firmware clears then."""
    clock = None if program.run.limit is None else tile.clock + program.run.limit
    words = _words(tile, program)
    if go is not None and not words:
        words = [(go, 0)]
    return End(tuple(words), clock, program.run.timeout_s)


def _resume(
    program: schema.Program, prepare: Callable[[Tile], None] | None, options: TileOptions
) -> Tile:
    """A tile as it was saved, which goes on to the end that it was on the way to."""
    given: TileOptions = {**of_run(program.run), **options}
    tile = Tile(**given)
    if prepare is not None:
        prepare(tile)
    state = Snapshot.load(check_saved(program))
    if isinstance(state.error, NoProgress):
        state.error = None  # it is found anew, with who waits for whom
    tile.restore(state)
    _check_addresses(tile, program)
    end = tile.machine.end
    clock = end.clock if end.clock and end.clock > tile.clock else None  # a limit that is reached
    if program.run.limit is not None:
        clock = tile.clock + program.run.limit
    words = tuple(_words(tile, program)) or end.words
    tile.launched(program, End(words, clock, program.run.timeout_s or end.timeout_s))
    return tile


def _place_metal(
    tile: Tile, program: schema.Program, texts: Texts, *, boot: bool
) -> Firmware | None:
    """Kernels on one tile: under their firmware, which has booted, or without it."""
    from bhemu.metal import bare, host  # for no other kind of program
    from bhemu.metal.firmware import Grid, read_firmware

    part, grid = program.placed()[0], Grid.of(program.chip)
    if program.firmware is None:
        bare.place(tile, part, grid, texts)
        place_values(tile, part)
        return None
    firmware = read_firmware(program.firmware)
    if boot:

        def wait(conditions: Sequence[tuple[Tile, int, int]], limit: int) -> Stop:
            words = [(address, value) for _, address, value in conditions]
            resume = isinstance(tile.error, NoProgress)
            return tile.run(words or "idle", limit=limit, resume=resume)

        host.boot([tile], firmware, grid, wait)
    else:
        host.load_firmware(tile, firmware, grid)
    host.place_kernels(tile, firmware, part, texts)
    place_values(tile, part)
    return firmware


def _words(tile: Tile, program: schema.Program) -> list[tuple[int, int]]:
    """The end condition that the program states: (L1 address, value)."""
    words = [(resolve(tile, until.word), until.equals) for until in program.run.until]
    return harness.done_words() if program.kind == "llk" and not words else words


def word_name(program: schema.Program, address: int) -> str:
    """How a message calls the word at `address` of an end condition."""
    if program.kind == "llk":
        return harness.word_name(address)
    if program.kind == "tt-metal" and not program.run.until:
        return f"the go message at {address:#x}"
    return f"word {address:#x}"


def _check_addresses(tile: Tile, program: schema.Program) -> None:
    """Outputs and end conditions lie in L1, before anything runs."""
    for spec in program.outputs:
        l1_address(tile, spec.origin, spec.at, spec.size)
    for until in program.run.until:
        address = l1_address(tile, "[run] until", until.word, 4)
        if address % 4:
            raise InputError(f"[run] until: {address:#x} is not aligned to 4 bytes")
