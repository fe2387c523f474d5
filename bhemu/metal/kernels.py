"""Kernels on tiles: placed and launched as a host does, or without firmware.

Everything lies from kernel_config_base on in one image, as tt-metal lays it out: runtime arguments
of each core, common arguments, semaphores 16 bytes apart, the table of circular buffers, the texts.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise

from bhemu import memmap as mm
from bhemu.devices.bus.address_map import REGISTERS
from bhemu.errors import InputError, Limit, NoProgress
from bhemu.machine.precompile import ElfCache
from bhemu.machine.stop import Stop
from bhemu.machine.tile import Tile
from bhemu.memmap import L1_SIZE
from bhemu.metal import (
    PROCESSORS,
    SIGNAL_GO,
    TABLES,
    Firmware,
    Grid,
    Record,
    Sized,
    Write,
    noc_word,
    objects,
    place,
)
from bhemu.program import coordinates
from bhemu.program.coordinates import XY
from bhemu.program.input_files import encode_values
from bhemu.program.loader import LOCAL_SIZE, Image, block
from bhemu.program.specs import BufferSpec, TileSpec
from bhemu.riscv.assembly import GP, PARK, RA, SP, T0, ZERO, code, jal, jalr, li

_HOST_MODE = 1
_ALIGNMENT = 16


@dataclass(frozen=True)
class Placed:
    """A kernel in L1: its entry, how far it was moved from where it was linked, its bytes."""

    image: Image
    entry: int
    moved: int
    size: int


@dataclass
class Kernels:
    """The image from `base` on while it grows, and where its parts are, relative to `base`."""

    base: int
    data: bytearray = field(default_factory=bytearray)
    args: dict[str, tuple[int, ...]] = field(default_factory=dict)  # own, common
    semaphores: int = 0
    buffers: int = 0
    buffers_end: int = 0
    mask: int = 0
    texts: dict[str, Placed] = field(default_factory=dict)

    def add(self, data: bytes) -> int:
        """Append a part; its offset."""
        at = len(self.data)
        self.data += data.ljust(-(-len(data) // _ALIGNMENT) * _ALIGNMENT, b"\0")
        return at

    def write(self) -> Write:
        """The whole image as one write."""
        return Write(self.base, bytes(self.data), "kernels")


def arrange(part: TileSpec, xy: XY, base: int, elfs: ElfCache) -> Kernels:
    """The kernels of `part` on its tile `xy`, from `base` on; InputError when they do not fit."""
    made = Kernels(base)
    values = coordinates.values_of(xy, part.at)
    for kind in ("args", "common"):
        for name in PROCESSORS:
            given = getattr(part.cores.get(name), kind, ())
            at = made.add(encode_values(given, f"{part.origin}: {name}", values))
            made.args[name] = (*made.args.get(name, ()), at)
    made.semaphores = made.add(
        b"".join(struct.pack("<I12x", initial) for initial in part.semaphores)
    )
    made.buffers = made.add(table(part.buffers))
    made.buffers_end = len(made.data)
    made.mask = sum(1 << buffer.index for buffer in part.buffers)
    for name in PROCESSORS:
        core = part.cores.get(name)
        if core is not None and core.elf is not None:
            image = elfs.image(core.elf)
            moved = made.base + len(made.data) - block(image)[0]
            data = elfs.moved(image, moved)
            made.add(data)
            made.texts[name] = Placed(image, image.entry + moved, moved, len(data))
    end = made.base + len(made.data)
    if end > L1_SIZE:
        raise InputError(f"{part.origin}: the kernels end at {end:#x}, beyond L1")
    for buffer in part.buffers:
        if buffer.at < end and made.base < buffer.at + buffer.size:
            raise InputError(
                f"{part.origin}: circular buffer {buffer.index} at {buffer.at:#x} lies on the"
                f" kernels ({made.base:#x}..{end:#x})"
            )
    return made


def table(buffers: Sequence[BufferSpec]) -> bytes:
    """The table of circular buffers: {address, bytes, pages, bytes of a page} by index."""
    rows = {b.index: struct.pack("<4I", b.at, b.size, b.pages, b.page) for b in buffers}
    return b"".join(rows.get(n, bytes(16)) for n in range(max(rows, default=-1) + 1))


# Booting tiles with firmware and launching kernels on them, as a host does in slow dispatch.

BOOT_LIMIT = 10_000_000  # clock units; firmware needs some ten thousand
AFTER_DONE = 7_500  # clock units in which brisc tells trisc0 to clear the stream counters
_BRISC_ONLY = mm.SOFT_RESET_ALL & ~(1 << mm.SOFT_RESET_BITS[0])

Wait = Callable[[Sequence[tuple[Tile, int, int]], int], Stop]
"""Run until every (tile, address, word) holds (without any: until idle), or a clock limit.

It goes on after a NoProgress: what firmware waits for is its host.
"""


def write(tile: Tile, writes: Iterable[Write]) -> None:
    """Into the tile's L1, as its host."""
    for each in writes:
        tile.write(each.address, each.data)


def go(tile: Tile, firmware: Firmware) -> None:
    """Tell the firmware of a tile to run its kernels."""
    write(tile, [firmware.signal(SIGNAL_GO)])


def load_firmware(tile: Tile, firmware: Firmware, grid: Grid) -> None:
    """Everything that a tile needs before brisc is released; all cores are in reset."""
    writes = list(firmware.boot_writes(grid, tile.xy))
    # Two parts of a build that claim the same bytes belong to different builds
    ordered = sorted((w for w in writes if w.data), key=lambda each: each.address)
    for one, other in pairwise(ordered):
        if other.address < one.address + len(one.data):
            raise InputError(
                f"[firmware] {one.name} and {other.name} overlap at {other.address:#x}",
                hint="are all five ELFs of one build?",
            )
    write(tile, writes)
    for name, image in firmware.images.items():
        core = tile.core[name]
        core.images.append(image.symbols)
        for segment in image.segments:
            if segment.executable:
                low = segment.paddr
                tile.ranges.append((low, low + segment.memsz, str(image.path)))
    tile.write32(REGISTERS["SOFT_RESET_0"], mm.SOFT_RESET_ALL)


def boot(tiles: Sequence[Tile], firmware: Firmware, grid: Grid, wait: Wait) -> None:
    """Load and start the firmware of all `tiles` and wait until each says DONE.

    Limit (rule METAL-BOOT) when one never does.
    """
    for tile in tiles:
        load_firmware(tile, firmware, grid)
    for tile in tiles:
        tile.write32(REGISTERS["SOFT_RESET_0"], _BRISC_ONLY)  # it releases the others
    _await(tiles, firmware.go, "go message", wait)
    # trisc0 clears the stream counters after DONE: values that a host writes there must last.
    with suppress(NoProgress):  # it has, and all wait for the host
        wait([], AFTER_DONE)
    _await(tiles, firmware.address("subordinate_sync"), "sync bytes", wait)


def _await(tiles: Sequence[Tile], address: int, name: str, wait: Wait) -> None:
    """Until the word at `address` of every tile is 0."""
    stop = wait([(tile, address, 0) for tile in tiles], BOOT_LIMIT)
    if stop.reason == "interrupt":
        raise KeyboardInterrupt
    if stop.reason == "until":
        return
    late = next(tile for tile in tiles if tile.read32(address))
    raise Limit(
        f"the firmware of tile ({late.xy[0]},{late.xy[1]}) did not boot within {BOOT_LIMIT}"
        f" clock units: its {name} at {address:#x} is {late.read32(address):#x}, not 0",
        rule="METAL-BOOT",
        where=late.core["brisc"].where(),
        hint="are these the ELFs of one build for this chip?",
    )


def place_kernels(tile: Tile, firmware: Firmware, part: TileSpec, elfs: ElfCache) -> Kernels:
    """Kernels, arguments, buffers, launch message: all but the go message."""
    made = arrange(part, tile.xy, firmware.base, elfs)
    # The message that names everything, for the first place of the ring of messages
    layout = firmware.layout["launch"].type
    config = layout["kernel_config"].type if "kernel_config" in layout else layout
    record = Record(config)
    for n in range(config["kernel_config_base"].type.count):
        record.set(made.base, "kernel_config_base", n)
    record.set(made.semaphores, "sem_offset", 0)
    record.set(made.buffers, "local_cb_offset")
    record.set(made.buffers_end, "remote_cb_offset")
    for n, name in enumerate(PROCESSORS):
        own, common = made.args[name]
        record.set(own, "rta_offset", n, "rta_offset")
        record.set(common, "rta_offset", n, "crta_offset")
        if name in made.texts:
            record.set(made.texts[name].entry - made.base, "kernel_text_offset", n)
            if "kernel_text_size" in config:  # of some builds
                record.set(made.texts[name].size, "kernel_text_size", n)
    record.set(_HOST_MODE, "mode")
    record.set(made.mask, "local_cb_mask")
    record.set(8 * config["local_cb_mask"].type.size, "min_remote_cb_start_index")
    record.set(sum(1 << PROCESSORS.index(name) for name in made.texts), "enables")
    offset = place(firmware.layout, "launch", 0)[0]
    message = Write(firmware.mailboxes + offset, bytes(record.data), "launch message")
    write(tile, [made.write(), message])
    name_kernels(tile, made)
    return made


def name_kernels(tile: Tile, kernels: Kernels) -> None:
    """Let the tile know whose code lies where."""
    for name, placed in kernels.texts.items():
        tile.core[name].images.insert(0, placed.image.symbols.moved(placed.moved))  # found first
        for segment in placed.image.segments:
            if segment.executable:
                low = segment.paddr + placed.moved
                tile.ranges.append((low, low + segment.memsz, str(placed.image.path)))


# Kernels without firmware: a stub per core gives them what firmware would have prepared.
#
# The stub sets gp and sp, calls the kernel and parks. Before that the words of local RAM that a
# kernel expects are written at the places that its own ELF names: runtime arguments, semaphores,
# circular buffers, coordinates and bank tables. The NIUs are set as firmware leaves them.

BASE = 0x8000
"""Where arguments and kernels go."""

_GLOBAL_POINTER, _STACK_TOP = "__global_pointer$", "__stack_top"
_READ_CTRL = 0x2090  # non-posted read on static channel 1, as firmware presets initiator 1
_ATOMIC_RESULT = 4  # L1 address that old values go to
_CB_BYTES = 32  # of a circular buffer in local RAM
_GP_OFFSET = 0x7F0  # of gp in local RAM, where an ELF has no symbol for it


def place_bare(tile: Tile, part: TileSpec, grid: Grid, elfs: ElfCache) -> Kernels:
    """Kernels, stubs, local RAM and NIUs of a tile; cores are in reset."""
    made = arrange(part, tile.xy, BASE, elfs)
    starts = {}
    for name, placed in made.texts.items():
        symbols = placed.image.symbols
        gp = mm.LOCAL_BASE + _GP_OFFSET
        if _GLOBAL_POINTER in symbols.names:
            gp = symbols.address(_GLOBAL_POINTER)
        sp = mm.LOCAL_BASE + LOCAL_SIZE[name] - 16
        if _STACK_TOP in symbols.names:
            sp = symbols.address(_STACK_TOP) - 16
        enter = [*li(GP, gp), *li(SP, sp), *li(T0, placed.entry), jalr(RA, T0)]
        starts[name] = BASE + made.add(code(enter, PARK))
    write(tile, [made.write()])
    name_kernels(tile, made)
    # Initiators as firmware leaves them: own coordinate, reads by 1, old values by 3
    own = noc_word(tile.xy)
    presets = {
        (0, mm.NOC_TARG_ADDR_LO + 8): own,
        (2, mm.NOC_TARG_ADDR_LO + 8): own,
        (1, mm.NOC_CTRL): _READ_CTRL,
        (1, mm.NOC_RET_ADDR_LO + 8): own,
        (3, mm.NOC_RET_ADDR_LO): _ATOMIC_RESULT,
        (3, mm.NOC_RET_ADDR_LO + 8): own,
    }
    for noc in (mm.NOC0_BASE, mm.NOC0_BASE + mm.NOC_SIZE):
        for (initiator, register), value in presets.items():
            tile.write32(noc + mm.NOC_CMD_BUF_OFFSET * initiator + register, value)
    for name, start in starts.items():
        # What firmware leaves in the core's local RAM, where the kernel's ELF has a symbol for it
        known = objects(made.texts[name].image)
        own, common = made.args[name]
        _check_known(part, name, known)
        words = {
            "rta_l1_base": struct.pack("<I", made.base + own),
            "crta_l1_base": struct.pack("<I", made.base + common),
            "sem_l1_base": struct.pack("<I", made.base + made.semaphores),
            "my_x": bytes((tile.xy[0],) * 2),
            "my_y": bytes((tile.xy[1],) * 2),
        }
        for symbol, data in words.items():
            if symbol in known:
                tile.core[name].store_local(known[symbol].address, data)
        for symbol, table in TABLES.items():
            if symbol in known and known[symbol].size:
                tile.core[name].store_local(known[symbol].address, table(grid, known[symbol].size))
        if "cb_interface" in known and name != "trisc1":
            for index, data in interfaces(part.buffers, name):
                tile.core[name].store_local(known["cb_interface"].address + _CB_BYTES * index, data)
        if name == "brisc":
            write(tile, [Write(0, jal(ZERO, start).to_bytes(4, "little"), "start of brisc")])
        else:
            tile.core[name].set_reset_pc(start)
    return made


def _check_known(part: TileSpec, name: str, known: Mapping[str, Sized]) -> None:
    """InputError when what the program gives the kernel has no place that its ELF names."""
    core = part.cores[name]
    wanted = {
        "rta_l1_base": (bool(core.args), "args"),
        "crta_l1_base": (bool(core.common), "common"),
        "cb_interface": (bool(part.buffers) and name != "trisc1", "[[buffer]]"),
    }
    for symbol, (needed, key) in wanted.items():
        if needed and symbol not in known:
            raise InputError(
                f"{part.origin}: {name} has {key}, but {core.elf} has no symbol {symbol}",
                hint="link the kernel with the firmware's symbols (-Wl,--just-symbols=FIRMWARE)",
            )


def interfaces(buffers: tuple[BufferSpec, ...], name: str) -> Iterator[tuple[int, bytes]]:
    """(index, local interface) of each circular buffer; compute cores count units of 16 bytes."""
    shift = 4 if name.startswith("trisc") else 0
    for b in buffers:
        size, at = b.size >> shift, b.at >> shift
        yield b.index, struct.pack("<8I", size, at + size, b.page >> shift, b.pages, at, at, 0, 0)
