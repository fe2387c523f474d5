"""A program on a chip: placing its parts on many tiles and in DRAM, running it, its outputs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Unpack

from bhemu.chip import Chip, ChipEnd
from bhemu.chip_snapshot import ChipSnapshot
from bhemu.elf_texts import Texts
from bhemu.errors import InputError, NoProgress
from bhemu.machine.stop import Stop
from bhemu.metal import bare, host
from bhemu.metal.firmware import Firmware, Grid, read_firmware
from bhemu.options import ChipOptions, of_run
from bhemu.placing import check_saved, l1_address, place, place_values, release
from bhemu.program import interleave, saved
from bhemu.program.coordinates import XY
from bhemu.program.outputs import check_saves
from bhemu.program.specs import ChipSpec, Program
from bhemu.tile import Tile

Word = tuple[XY, int, int]


def _own(program: Program) -> ChipOptions:
    """What the program says of its chip."""
    about = program.chip or ChipSpec()
    return {
        **of_run(program.run),
        "harvest": about.harvest,
        "dram_banks": about.dram_banks,
        "delivery": about.delivery,
        "threads": about.threads,
        "l0": program.l0,
    }


def launch(
    program: Program,
    *,
    boot: bool = True,
    texts: Texts | None = None,
    prepare: Callable[[Tile], None] | None = None,
    **options: Unpack[ChipOptions],
) -> Chip:
    """A chip with `program` on it, its cores released, nothing of it executed yet.

    Of kind "tt-metal" the firmware of its tiles has booted and been told to run the kernels, unless
    `boot` is False. `texts`: ELFs that earlier launches have read. prepare: of each of its tiles,
    before anything is on it. options: as in Chip, where the program says nothing else. InputError
    for everything that can be found out without running.
    """
    check_saves(program)
    texts = texts or Texts()
    texts.read(_paths(program))
    given: ChipOptions = {**_own(program), **options}
    chip = Chip(**given)
    if prepare is not None:
        for xy in (xy for part in program.placed() for xy in part.at):
            prepare(chip.tile[xy])
    firmware = _place(chip, program, texts, boot=boot)
    words = _words(chip, program)
    _check_outputs(chip, program)
    for source in program.inputs:
        data = source.data()
        if source.dram is not None:
            interleave.write(source.dram, data, lambda b, at, d: chip.dram[b].write(at, d))
        for xy in source.tiles:
            tile = chip.tile[xy]
            tile.write(l1_address(tile, source.origin, source.at, len(data)), data)
    if program.kind != saved.KIND:
        _start(chip, program, firmware)
    if firmware is not None and not words:
        words = [(xy, firmware.go, 0) for part in program.placed() for xy in part.at]
    limit = None if program.run.limit is None else chip.clock + program.run.limit
    chip.launched(program, ChipEnd(tuple(words), limit, program.run.timeout_s))
    return chip


def _paths(program: Program) -> set[Path]:
    return {core.elf for part in program.placed() for core in part.cores.values() if core.elf}


def _place(chip: Chip, program: Program, texts: Texts, *, boot: bool) -> Firmware | None:
    """Everything that goes to tiles: firmware, which boots, kernels or plain ELFs, values."""
    if program.kind == saved.KIND:
        state = ChipSnapshot.load(check_saved(program))
        again = isinstance(state.error, NoProgress)  # found anew, with who waits for whom
        chip.restore(dataclasses.replace(state, error=None) if again else state)
        return None
    if program.kind == "tt-metal":
        return _place_metal(chip, program, texts, boot=boot)
    for part in program.placed():
        own = {n: texts.image(core.elf) for n, core in part.cores.items() if core.elf}
        for xy in part.at:
            place(chip.tile[xy], part, own)
    return None


def _place_metal(chip: Chip, program: Program, texts: Texts, *, boot: bool) -> Firmware | None:
    grid = Grid.of(program.chip)
    tiles = [(chip.tile[xy], part) for part in program.placed() for xy in part.at]
    firmware = None if program.firmware is None else read_firmware(program.firmware)
    if firmware is not None and boot:
        host.boot([tile for tile, _ in tiles], firmware, grid, waiter(chip))
    for tile, part in tiles:
        if firmware is None:
            bare.place(tile, part, grid, texts)
        else:
            if not boot:
                host.load_firmware(tile, firmware, grid)
            host.place_kernels(tile, firmware, part, texts)
        place_values(tile, part)
    return firmware


def waiter(chip: Chip) -> host.Wait:
    """Runs the chip for a host that waits."""

    def wait(conditions: Sequence[tuple[Tile, int, int]], limit: int) -> Stop:
        words = [(tile.xy, address, value) for tile, address, value in conditions]
        resume = isinstance(chip.error, NoProgress)
        return chip.run(words or "idle", limit=limit, resume=resume)

    return wait


def _start(chip: Chip, program: Program, firmware: Firmware | None) -> None:
    for part in program.placed():
        for xy in part.at:
            if firmware is None:
                release(chip.tile[xy], part)
            else:
                host.go(chip.tile[xy], firmware)


def _words(chip: Chip, program: Program) -> list[Word]:
    """The end condition that the program states."""
    named = [xy for part in program.placed() for xy in part.at]
    words = []
    for until in program.run.until:
        if not until.tiles and len(named) > 1:
            raise InputError(
                "[run] until: a word of which tile?",
                hint='until = [{ tile = "1,2", word = 0x100, equals = 0xD0E0 }]',
            )
        for xy in until.tiles or named:
            address = l1_address(chip.tile[xy], "[run] until", until.word, 4)
            if address % 4:
                raise InputError(f"[run] until: {address:#x} is not aligned to 4 bytes")
            words.append((xy, address, until.equals))
    return words


def _check_outputs(chip: Chip, program: Program) -> None:
    for spec in program.outputs:
        if spec.tile is not None:
            l1_address(chip.tile[spec.tile], spec.origin, spec.at, spec.size)
