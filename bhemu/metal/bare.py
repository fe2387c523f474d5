"""Kernels without firmware: a stub per core gives them what firmware would have prepared.

The stub sets gp and sp, calls the kernel and parks. Before that the words of local RAM that a
kernel expects are written at the places that its own ELF names: runtime arguments, semaphores,
circular buffers, coordinates and bank tables. The NIUs are set as firmware leaves them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping

from bhemu import memmap as mm
from bhemu.errors import InputError
from bhemu.machine.elf_cache import Texts
from bhemu.machine.tile import Tile
from bhemu.metal.copies import Sized, objects
from bhemu.metal.firmware import TABLES, Grid, Write, noc_word
from bhemu.metal.host import name_kernels, write
from bhemu.metal.kernels import Kernels, arrange
from bhemu.program.loader import LOCAL_SIZE
from bhemu.program.specs import BufferSpec, TileSpec
from bhemu.riscv.assembly import GP, PARK, RA, SP, T0, ZERO, code, jal, jalr, li

BASE = 0x8000
"""Where arguments and kernels go."""

_GLOBAL_POINTER, _STACK_TOP = "__global_pointer$", "__stack_top"
_READ_CTRL = 0x2090  # non-posted read on static channel 1, as firmware presets initiator 1
_ATOMIC_RESULT = 4  # L1 address that old values go to
_CB_BYTES = 32  # of a circular buffer in local RAM
_GP_OFFSET = 0x7F0  # of gp in local RAM, where an ELF has no symbol for it


def place(tile: Tile, part: TileSpec, grid: Grid, texts: Texts) -> Kernels:
    """Kernels, stubs, local RAM and NIUs of a tile; cores are in reset."""
    made = arrange(part, tile.xy, BASE, texts)
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
    _preset_nius(tile)
    for name, start in starts.items():
        _local_words(tile, name, made, part, grid)
        if name == "brisc":
            write(tile, [Write(0, jal(ZERO, start).to_bytes(4, "little"), "start of brisc")])
        else:
            tile.core[name].set_reset_pc(start)
    return made


def _preset_nius(tile: Tile) -> None:
    """Initiators as firmware leaves them: own coordinate, reads by 1, old values by 3."""
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


def _local_words(tile: Tile, name: str, made: Kernels, part: TileSpec, grid: Grid) -> None:
    """What firmware leaves in the core's local RAM, where the kernel's ELF has a symbol for it."""
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
            _put(tile, name, known[symbol].address, data)
    for symbol, table in TABLES.items():
        if symbol in known and known[symbol].size:
            _put(tile, name, known[symbol].address, table(grid, known[symbol].size))
    if "cb_interface" in known and name != "trisc1":
        for index, data in interfaces(part.buffers, name):
            _put(tile, name, known["cb_interface"].address + _CB_BYTES * index, data)


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


def _put(tile: Tile, name: str, address: int, data: bytes) -> None:
    """Bytes into local RAM, which the core writes in words."""
    core = tile.core[name]
    low, high = address & ~3, (address + len(data) + 3) & ~3
    old = b"".join(core.read32(at).to_bytes(4, "little") for at in range(low, high, 4))
    new = old[: address - low] + data + old[address - low + len(data) :]
    for at in range(low, high, 4):
        core.write32(at, int.from_bytes(new[at - low : at - low + 4], "little"))
