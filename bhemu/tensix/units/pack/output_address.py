"""Where in L1 a PACR writes.

The first PACR of a tile takes the L1 address from the configuration, the following ones append.
`a` is the thread whose address counters count.
Source: PACR, Blackhole ISA; output address generator, Wormhole ISA; checks from ttsim's Tensix
model.
"""

from typing import Any, NamedTuple

from bhemu.jit.subset import njit
from bhemu.memmap import L1_SIZE
from bhemu.tensix import config, formats
from bhemu.tensix import config_fields as cf
from bhemu.tensix.quirks import refuse
from bhemu.tensix.status import UB, UNSUPPORTED, error
from bhemu.tensix.units.adc import W, Y, Z
from bhemu.tensix.units.pack.input_address import PACKER

_L1_END = error(
    "PACR-L1",
    UB,
    "PACR writes L1 from {first:#x} up to {end:#x}, beyond the end at 0x180000",
    "check L1_Dest_addr and Exp_section_size",
)
_L1_ALIGN = error(
    "PACR-L1-ALIGN",
    UNSUPPORTED,
    "PACR continues a tile at {address:#x}, which is no multiple of the {size} bytes of a datum",
    "end the tile with Last or Flush before changing the output format",
)


class Place(NamedTuple):
    """L1 bytes where the datums and their shared exponents go."""

    data: int
    exponent: int


@njit
def place_of(s: Any, a: Any, m: Any) -> Any:
    """Where this PACR writes: the configured address, or behind the previous PACR."""
    if s.pack_open[0]:
        return Place(s.pack_data[0], s.pack_exp[0])
    at = s.adc[a, PACKER, 1]
    offset = config.get(s, m.bank, cf.PCK0_ADDR_BASE_REG_1_Base)
    offset += at[Y] * config.get(s, m.bank, cf.PCK0_ADDR_CTRL_XY_REG_1_Ystride)
    offset += at[Z] * config.get(s, m.bank, cf.PCK0_ADDR_CTRL_ZW_REG_1_Zstride)
    offset += at[W] * config.get(s, m.bank, cf.PCK0_ADDR_CTRL_ZW_REG_1_Wstride)
    start = config.get(s, m.bank, cf.THCON_SEC0_REG1_L1_Dest_addr) + (offset >> 4)
    start += 1 - config.get(s, m.bank, cf.THCON_SEC0_REG1_Sub_l1_tile_header_size)
    limit = 2 * config.get(s, m.bank, cf.THCON_SEC0_REG9_Pack_0_2_limit_address) + 1
    if start & 0xFFFFFFFF > limit:
        start -= 2 * config.get(s, m.bank, cf.THCON_SEC0_REG9_Pack_0_2_fifo_size)
    data = start
    if formats.datum_bits(m.out) <= 8:
        data += config.get(s, m.bank, cf.THCON_SEC0_REG1_Exp_section_size)
    # 32-bit arithmetic: flag bits at the top of L1_Dest_addr fall out
    return Place((data << 4) & 0xFFFFFFFF, (start << 4) & 0xFFFFFFFF)


@njit
def place_refused(s: Any, m: Any, datums: Any, place: Any) -> Any:
    """0, or the error of writing `datums` to `place`."""
    size = max(formats.datum_bits(m.out) >> 3, 1)
    if place.data & (size - 1):
        return refuse(s, _L1_ALIGN, address=place.data, size=size)
    end = place.data + (datums * formats.datum_bits(m.out) >> 3)
    if end > L1_SIZE:
        return refuse(s, _L1_END, first=place.data, end=end)
    if formats.is_bfp(m.out):
        end = place.exponent + (datums >> 4)
        if end > L1_SIZE:
            return refuse(s, _L1_END, first=place.exponent, end=end)
    return 0
