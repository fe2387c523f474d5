"""Windows to the coprocessor's registers: configuration, GPRs, datums of Dst, TDMA-RISC."""

from typing import Any

import numpy as np

from bhemu import memmap as mm
from bhemu.devices.bus import window
from bhemu.devices.bus.window import access_error
from bhemu.jit import Later
from bhemu.jit.subset import njit
from bhemu.tensix import config, dest, rules, state, unspecified
from bhemu.tensix import config_fields as cf
from bhemu.tensix.config import CONFIG_WORDS, THREAD_WORDS
from bhemu.tensix.state import l1_words

config_races = Later("bhemu.devices.bus.access_order")
mover = Later("bhemu.tensix.units.cfg")

# Backend configuration, 0xFFEF0000: Config[0], Config[1], dual write, ThreadConfig (read only).
#
# Source: BackendConfiguration, Blackhole ISA.

_DUAL = 2 * CONFIG_WORDS
_THREAD = 3 * CONFIG_WORDS
_END = _THREAD + 3 * THREAD_WORDS


@njit
def load_word(s: Any, index: Any) -> Any:
    """Load word `index` of the whole space; the dual-write part reads as Config[0]."""
    if index < _DUAL:
        s.loaded[0] = s.cfg[index // CONFIG_WORDS, index % CONFIG_WORDS]
    elif index < _THREAD:
        s.loaded[0] = s.cfg[0, index - _DUAL]
    elif index < _END:
        i = index - _THREAD
        s.loaded[0] = s.thread_cfg[i // THREAD_WORDS, i % THREAD_WORDS]
    else:
        return window.UNMAPPED
    return rules.DONE


@njit
def config_load(s: Any, offset: Any) -> Any:
    """Load the 32-bit word at `offset`."""
    return load_word(s, offset >> 2)


@njit
def config_store(s: Any, c: Any, offset: Any, value: Any) -> Any:
    """Store one word with its side effects; ThreadConfig is read only for the cores."""
    index = offset >> 2
    if not config.writable(index):
        return window.READ_ONLY if index < _END else window.UNMAPPED
    status = config_races.refused(s, c, index, value) if c > 0 else rules.DONE
    if status == rules.DONE:
        config.write_mapped(s, index, value, config.by_core(s, c))
    return status


CONFIG_WINDOW = window.Window(
    *("backend configuration", mm.TENSIX_CFG_BASE, mm.TENSIX_CFG_END, config_load, config_store),
    agents=window.TENSIX_CORES,
    order=window.TRACKED_CONFIG,
)


# Tensix GPRs, 0xFFE00000: BRISC sees all 192, a TRISC its own 64 (ScalarUnit, Blackhole ISA).


@njit
def _gpr(c: Any, offset: Any) -> Any:
    """Index into the 192 GPRs, or -1."""
    if c == 0 and offset < 0x300:
        return offset >> 2
    if c > 0 and offset < 0x100:
        return (c - 1) * 64 + (offset >> 2)
    return np.int64(-1)


@njit
def gpr_load(s: Any, c: Any, offset: Any) -> Any:
    """Load the 32-bit GPR at `offset`."""
    i = _gpr(c, offset)
    if i < 0:
        return window.UNMAPPED
    s.loaded[0] = s.gpr[i >> 6, i & 63]
    return rules.DONE


@njit
def gpr_store(s: Any, c: Any, offset: Any, value: Any) -> Any:
    """Store one GPR."""
    i = _gpr(c, offset)
    if i < 0:
        return window.UNMAPPED
    s.gpr[i >> 6, i & 63] = np.uint32(value)
    return rules.DONE


GPR_WINDOW = window.Window(
    *("Tensix GPRs", mm.GPR_BASE, mm.GPR_END, gpr_load, gpr_store),
    agents=window.TENSIX_CORES,
    order=window.TRACKED_GPRS,
    store_effect=window.Effect.STORAGE,
)


# The Dst window, 0xFFBD8000: loads and stores of single Dst datums by trisc0-2.
#
# RISC_DEST_ACCESS_CTRL of the core's thread, in the Config bank the thread uses, gives format and
# conversion.  trisc0 and trisc1 access one datum of exactly its width; trisc2 also several
# adjacent ones, up to a word.  Source: Dst, "RISCV access to Dst", Blackhole ISA.


FORMAT = rules.error("DST-WINDOW-FORMAT", rules.UB, "RISC_DEST_ACCESS_CTRL fmt {fmt} is reserved (access to {address:#010x})", "0 fp32/uint32, 1 int32, 2 fp16, 3 bf16, 4 int16, 5 int8")  # fmt: skip
WIDTH = rules.error("DST-WINDOW-WIDTH", rules.UB, "{size}-byte access to {address:#010x}: this core accesses single datums, {width} bytes in this format", "match the instruction to RISC_DEST_ACCESS_CTRL fmt; only trisc2 may access several at once")  # fmt: skip
ROWS = access_error("DST-WINDOW-ROWS", rules.UB, "{address:#010x} lies beyond the last datum of Dst in 8-bit format")  # fmt: skip
CLEARED = rules.error("DST-WINDOW-CLEARED", rules.MISSING, "access to {address:#010x}: ZEROACC marked row {row} as zero, and what a core then sees is not said", "write the whole row by SFPSTORE or a matrix instruction first")  # fmt: skip
STORED = rules.error("DST-WINDOW-STORED", rules.NCB, "store to {address:#010x}, in row {row} that ZEROACC marked as zero: the row counts again from then on, with what its other datums held")  # fmt: skip

_FP32, _INT32, _FP16, _BF16, _INT16, _INT8 = range(6)
_FIRST, _SECOND = cf.RISC_DEST_ACCESS_CTRL_SEC0_no_swizzle, cf.RISC_DEST_ACCESS_CTRL_SEC1_no_swizzle
_WORD, _SHIFT, _STRIDE = _FIRST.word, _FIRST.shift, _SECOND.shift - _FIRST.shift
_ONE_BYTE_END = dest.ROWS * dest.COLUMNS


@njit
def _control(s: Any, c: Any) -> Any:
    """no_swizzle (bit 0), unsigned_int (bit 1) and fmt (bits 4:2) of the core's thread."""
    t = c - 1
    word = np.int64(s.cfg[config.bank(s, t), _WORD])
    return (word >> (_SHIFT + _STRIDE * t)) & 0x1F


@njit
def _width(fmt: Any) -> Any:
    """Bytes of address space per datum."""
    if fmt <= _INT32:
        return np.int64(4)
    return np.int64(1 if fmt == _INT8 else 2)


@njit
def _row(s: Any, fmt: Any, offset: Any) -> Any:
    """Storage row of the datum at `offset` whose valid flag counts."""
    row = offset // _width(fmt) // dest.COLUMNS
    return dest.adj32(row) if fmt <= _INT32 else dest.row16(s, row)


@njit
def _refused(s: Any, c: Any, control: Any, offset: Any, size: Any) -> Any:
    """Why the access is not one that the ISA text defines, or DONE."""
    fmt, address = control >> 2, mm.DST_WINDOW_BASE + offset
    if fmt > _INT8:
        return rules.refuse(s, FORMAT, address=address, fmt=fmt)
    width = _width(fmt)
    if size < width or (size > width and c != 3):
        return rules.refuse(s, WIDTH, address=address, size=size, width=width)
    if fmt == _INT8 and offset >= _ONE_BYTE_END:
        return ROWS
    return rules.DONE


@njit
def _cleared(s: Any, row: Any, offset: Any) -> Any:
    """DONE, or the error of an access to a row that ZEROACC marked."""
    if s.dst_valid[row] == 0:
        return rules.refuse(s, CLEARED, address=mm.DST_WINDOW_BASE + offset, row=row)
    return rules.DONE


@njit
def _columns(control: Any, offset: Any, size: Any) -> Any:
    """Columns of the datums that are accessed, as a mask."""
    width = _width(control >> 2)
    return ((1 << (size // width)) - 1) << (offset // width % dest.COLUMNS)


@njit
def _to_twos(value: Any, sign: Any) -> Any:
    """Two's complement of a sign-magnitude number with the sign bit `sign`; -0 becomes 0."""
    return -(value & (sign - 1)) & (2 * sign - 1) if value & sign else value


@njit
def _from_twos(value: Any, sign: Any) -> Any:
    """Sign-magnitude of a two's complement number; the lowest one is clamped."""
    if value & sign == 0:
        return value
    return sign | (-(value + (1 if value == sign else 0)) & (2 * sign - 1))


@njit
def _load16(cell: Any, control: Any) -> Any:
    """What a core sees of a 16-bit cell."""
    fmt, as_is, unsigned = control >> 2, control & 1, control & 2
    if fmt == _INT8:
        # Low byte of an Integer "8" datum
        if as_is or unsigned:
            return (cell >> 5) & 0xFF
        magnitude = (cell >> 5) & 0x7F
        return -magnitude & 0xFF if cell & 0x8000 else magnitude
    if as_is:
        return cell
    if fmt == _FP16:
        return dest.dec_fp16(cell)
    if fmt == _BF16:
        return dest.dec_bf16(cell)
    return cell if unsigned else _to_twos(cell, np.int64(0x8000))


@njit
def _store16(value: Any, control: Any) -> Any:
    """The 16-bit cell of what a core stores."""
    fmt, as_is, unsigned = control >> 2, control & 1, control & 2
    if fmt == _INT8:
        # Integer "8" datum of a byte; the conversion of negative bytes is wrong in hardware too
        if as_is or unsigned or value < 0x80:
            return (value << 5) | (16 if value else 0)
        magnitude = (0x180 - value - (1 if value == 0x80 else 0)) & 0xFF
        return 0x8000 | (magnitude << 5) | 16
    if as_is:
        return value
    if fmt == _FP16:
        return dest.enc_fp16(value)
    if fmt == _BF16:
        return dest.enc_bf16(value)
    return value if unsigned else _from_twos(value, np.int64(0x8000))


@njit
def _load32(cell: Any, control: Any) -> Any:
    if control & 1:
        return cell
    value = dest.dec_32(cell)
    return _to_twos(value, np.int64(1 << 31)) if control >> 2 == _INT32 else value


@njit
def _store32(value: Any, control: Any) -> Any:
    if control & 1:
        return value
    if control >> 2 == _INT32:
        value = _from_twos(value, np.int64(1 << 31))
    return dest.enc_32(value)


@njit
def dst_load(s: Any, c: Any, offset: Any, size: Any) -> Any:
    """Load `size` bytes at `offset` of the window."""
    control = _control(s, c)
    status = _refused(s, c, control, offset, size)
    if status == rules.DONE:  # an aligned access of up to a word stays in one row
        status = _cleared(s, _row(s, control >> 2, offset), offset)
    if status != rules.DONE:
        return status
    if s.doubt[0]:
        fmt, columns = control >> 2, _columns(control, offset, size)
        at = _row(s, fmt, offset)
        mask = unspecified.of_datums(s, at, fmt <= _INT32) & (columns | columns << 16)
        row = offset // _width(fmt) // dest.COLUMNS
        status = unspecified.refused(s, row, at, mask) if mask else rules.DONE
        if status != rules.DONE:
            return status
    width = _width(control >> 2)
    value = np.int64(0)
    for i in range(size // width):
        index = offset // width + i
        row, column = index // dest.COLUMNS, index % dest.COLUMNS
        if width == 4:
            value = _load32(dest.read32(s, row, column), control)
        else:
            value |= _load16(dest.read16(s, row, column), control) << (8 * width * i)
    s.loaded[0] = value
    return rules.DONE


@njit
def dst_store(s: Any, c: Any, offset: Any, size: Any, value: Any) -> Any:
    """Store `size` bytes at `offset` of the window."""
    control = _control(s, c)
    status = _refused(s, c, control, offset, size)
    at = _row(s, control >> 2, offset)
    # A store with reference llk makes the row count, as one of SFPSTORE does: tt-llk's tests store
    # whole rows so and read them by SFPLOAD.
    if status == rules.DONE and not rules.follows_llk(s):
        status = _cleared(s, at, offset)
    elif status == rules.DONE and s.dst_valid[at] == 0:
        rules.note_rule(s, STORED, address=mm.DST_WINDOW_BASE + offset, row=at)
    if status != rules.DONE:
        return status
    width = _width(control >> 2)
    low = at + dest.LOW_HALF if width == 4 else at
    columns = _columns(control, offset, size)
    if s.doubt[0]:
        unspecified.hold(s, 0, at, columns)
        unspecified.hold(s, 1, low, columns)
    for i in range(size // width):
        index = offset // width + i
        row, column = index // dest.COLUMNS, index % dest.COLUMNS
        if width == 4:
            dest.put32(s, row, column, _store32(value & 0xFFFFFFFF, control))
        else:
            datum = (value >> (8 * width * i)) & ((1 << (8 * width)) - 1)
            dest.put16(s, row, column, _store16(datum, control))
    if s.dst_valid[at] == 0:
        s.dst_valid[at] = 1
    if s.doubt[0]:
        unspecified.settle(s, 0, at)
        unspecified.settle(s, 1, low)
    return rules.DONE


DST_WINDOW = window.Window(
    *("Dst window", mm.DST_WINDOW_BASE, mm.DST_WINDOW_END, dst_load, dst_store),
    loads=window.ANY | window.BY_BYTES,
    stores=window.ANY | window.BY_BYTES,
    agents=window.TRISCS,
)

# TDMA-RISC, 0xFFB11000: commands of brisc and the TRISCs to the mover (TDMA-RISC, Wormhole ISA).
#
# A command is processed when it is stored, so the queue is always empty and the mover never busy.
# The sideband data of packers and unpackers in the same block is refused by name.

# queue empty, parameter queue empty, four free entries in the queue
IDLE = 0x8 | 0x20 | 4 << 8
GATING = "clock gating has no functional effect"

MOVE, WAIT, WRITE_L1, NOP = 0x40, 0x46, 0x66, 0x89  # opcodes: bits [7:0] of a command
COMPACT = 1 << 31
WRITE_FORM, WRITE_64 = 0x600, 0x100

COMMAND = rules.error("TDMA-COMMAND", rules.UB, "TDMA-RISC command {command:#010x} is undefined", "0x40 (move), 0x46 (wait), 0x66 with bits 10:9 set (write L1) and 0x89 (nop) exist")  # fmt: skip
WRITE_ADDRESS = rules.error("TDMA-WRITE", rules.UB, "TDMA-RISC command {command:#010x} writes {size} bytes to {place:#x}, which is no aligned place in L1", "parameter 0 (0xffb11000) is a byte address")  # fmt: skip
SIDEBAND = access_error("TDMA-SIDEBAND", rules.UNIMPLEMENTED, "the TDMA-RISC register at {address:#010x} is not modelled", "modelled are the mover's commands, status and base (offsets 0x00 to 0x14 and 0x2c)")  # fmt: skip


@njit
def _command(s: Any, c: Any, value: Any) -> Any:
    """Process a command that core `c` stores."""
    opcode = value & 0xFF
    if opcode == MOVE:
        # A transfer: from the four parameters, or (compact) from the command itself
        agent = config.by_core(s, c)
        if value & COMPACT:
            src = (np.int64(s.tdma_base[c]) + ((value >> 8) & 0xFF)) & 0xFFFFFFFF
            direction = mover.L1_TO_L1 if value & 1 << 30 else mover.L1_TO_L0
            return mover.move(s, (value >> 16) & 0xFF, src, (value >> 24) & 0x3F, direction, agent)
        dst, src, direction = s.tdma_param[1], s.tdma_param[0], np.int64(s.tdma_param[3]) & 3
        count = np.int64(s.tdma_param[2])
        return mover.move(s, np.int64(dst), np.int64(src), count, direction, agent)
    if opcode == WRITE_L1:
        # 32 or 64 bits from parameters 2 and 3 to the byte address in parameter 0
        if value & COMPACT or value & WRITE_FORM != WRITE_FORM:
            return rules.refuse(s, COMMAND, command=value)
        dst = np.int64(s.tdma_param[0])
        size = 8 if value & WRITE_64 else 4
        if dst >= mm.L1_SIZE or dst & (size - 1):
            return rules.refuse(s, WRITE_ADDRESS, command=value, size=size, place=dst)
        l1_words(s)[dst >> 2] = s.tdma_param[2]
        if size == 8:
            l1_words(s)[(dst >> 2) + 1] = s.tdma_param[3]
        state.written(s, dst, size)
        return 0
    if opcode == WAIT or opcode == NOP:
        return rules.DONE
    return rules.refuse(s, COMMAND, command=value)


_TDMA, _PARAMETER = "RISCV_TDMA_REG_", "tdma_param[offset >> 2]"
TDMA_WINDOW = window.Window(
    *("TDMA-RISC", mm.TDMA_BASE, mm.DEBUG_BASE),
    registers=(
        # Parameters and commands cannot be read back.
        window.Register(f"{_TDMA}XMOV_SRC_ADDR", 0x00, 0, place=_PARAMETER),
        window.Register(f"{_TDMA}XMOV_DST_ADDR", 0x04, 0, place=_PARAMETER),
        window.Register(f"{_TDMA}XMOV_SIZE", 0x08, 0, place=_PARAMETER),
        window.Register(f"{_TDMA}XMOV_DIRECTION", 0x0C, 0, place=_PARAMETER),
        window.Register(f"{_TDMA}COMMAND_ADDR", 0x10, 0, _command),
        window.Register(f"{_TDMA}STATUS", 0x14, IDLE, window.DROPPED),
        window.inert(f"{_TDMA}CLK_GATE_EN", 0x24, GATING, mask=0xFFFFFF7F),
        window.inert(f"{_TDMA}CLK_GATE_HYST", 0x28, GATING, mask=0x01FF007F),
        window.Register(f"{_TDMA}XMOV_L1_BASE_ADDR", 0x2C, place="tdma_base[c]"),
    ),
    agents=window.TENSIX_CORES,
    order=window.TRACKED_TDMA,
    unknown=SIDEBAND,
)
