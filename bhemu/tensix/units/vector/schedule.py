"""SFPCONFIG, and what SFPLOADMACRO schedules: sub-units, and words as they will execute.

Source: SFPLOADMACRO, Blackhole ISA.
"""

from collections.abc import Callable
from functools import reduce
from operator import or_
from typing import Any

import numpy as np

from bhemu.bits import choice, number, parts, table
from bhemu.jit.subset import njit
from bhemu.tensix import lanes, spaces, unspecified
from bhemu.tensix.insn import REGISTRY, Instruction, bits
from bhemu.tensix.rules import DONE, MISSING, NCB, UB, UNSUPPORTED, error, refuse, undefined
from bhemu.tensix.spaces import LANES, LREG, Clause, Term, lreg, value
from bhemu.tensix.units.vector import arith, convert, integer, loadstore, move
from bhemu.tensix.units.vector.sfpu import ELSEWHERE, MAD, STORE, Form, Sfpu

# Vector unit (SFPU): SFPCONFIG, which writes constants, LaneConfig and the macro registers.
#
# A value is taken from the first eight lanes and given to the lanes below each of them.
# LaneConfig and macro registers that differ from lane to lane have no model.


_U = np.uint32
_ZERO, _ONE = _U(0), _U(1)
_COLUMNS = 8
# Registers
_SEQUENCE, _MISC, _FIXED_CONFIG, _CONSTANTS, _LANE_CONFIG = 4, 8, 9, 11, 15
_TWELVE = 12
_FIRST_ROW = 0xFF << 32 | 0xFF  # lanes 0 to 7, as marks of both causes
# Mode bits
_FROM_IMMEDIATE, _OR, _AND, _XOR, _LANE_MASK = 1, 2, 4, 6, 8
_LANE_CONFIG_BITS = lanes.ENABLE_DEST_INDEX | lanes.EXCHANGE_SRCB_SRCC
_MISC_BITS = 0xFFF
_ALL_BITS = 0xFFFFFFFF
# What the immediate form writes to LReg[11] to LReg[14], whatever the immediate.
_DEFAULTS = np.array([0xBF800000, 0, 0xBF2CC4C7, 0xBEB08FF9], np.uint32)

_DIFFERS = error("VECTOR-CONFIG-LANES", UNSUPPORTED, "SFPCONFIG would leave register {register} different in lanes 0 and {lane}, which has no model", "enable lanes 0 to 7 (SFPENCC), and load the same into them; bit 8 of LaneConfig may differ")  # fmt: skip
_VALUE = error("VECTOR-CONFIG-VALUE", UNSUPPORTED, "SFPCONFIG of LaneConfig with {value:#x}: only bits 2 and 8 have a model")  # fmt: skip
_DEFAULT = error("VECTOR-CONFIG-DEFAULT", MISSING, "SFPCONFIG of LReg[12] with its default: the ISA text and ttsim disagree about its value", "load the value into LReg[0] and use instr_mod1 0")  # fmt: skip
_CONSTANT = error("VECTOR-CONFIG-CONSTANT", NCB, "SFPCONFIG of register {register}: 9 and 10 are fixed constants", "silicon does nothing")  # fmt: skip


@njit
def _mark_written(s: Any, mod: Any, imm: Any) -> None:
    """Scratch flag = 1 in the lanes that are written: by the flags of lanes 0-7 and the mask."""
    flag, on = s.lane_tmp[lanes.FLAG], lanes.unmasked(s)
    for lane in range(lanes.LANES):
        column = lane & (_COLUMNS - 1)
        masked = mod & _LANE_MASK and (imm >> (2 * column)) & 1 == 0
        flag[lane] = _ZERO if masked else _U(s.cc[column] | on)


@njit
def _combined(mod: Any, old: Any, value: Any) -> Any:
    """What the mode makes of the old value and the new one."""
    kind = mod & 6
    if kind == _OR:
        return _U(old | value)
    if kind == _AND:
        return _U(old & value)
    return _U(old ^ value) if kind == _XOR else _U(value)


_VALUE_FROM = table("""
    0: LReg[0] of lanes 0-7
    1: imm16_math; of LReg[11] to [14] the default, of templates LReg[0]""")


class SFPCONFIG(Instruction, opcode=0x91, unit="vector", facts=Sfpu()):
    """Write constants, LaneConfig and macro registers (SFPCONFIG, Blackhole ISA)."""

    reads = lreg(0).unless("instr_mod1 & 1 and config_dest > 3") | (
        spaces.MACRO | spaces.LANE_CONFIG | LANES
    )
    writes = (
        lreg("config_dest").when("10 < config_dest < 15")
        | spaces.MACRO.when("config_dest < 9")
        | spaces.LANE_CONFIG.when("config_dest == 15")
    )

    instr_mod1 = bits(3, 0, mode=True).meaning(
        parts(
            (0, 0, _VALUE_FROM),
            (*(2, 1), choice("", "or", "and", "xor", about="with the old value: 8 and 15 only")),
            (3, 3, choice("", "columns by every second bit of imm16_math")),
        )
    )
    config_dest = bits(7, 4).meaning(
        choice(
            *(f"macro template {i}" for i in range(4)),
            *(f"macro sequence {i}" for i in range(4)),
            *("miscellaneous macro register", {i: f"LReg[{i}]" for i in range(11, 15)}),
            {15: "LaneConfig"},
        )
    )
    imm16_math = bits(23, 8, number("value, or mask of columns"))

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.imm16_math and f.instr_mod1 & (_FROM_IMMEDIATE | _LANE_MASK) == 0:
            return refuse(s, lanes.IMMEDIATE, immediate=f.imm16_math, mode=f.instr_mod1)
        if f.config_dest == _FIXED_CONFIG or f.config_dest == _FIXED_CONFIG + 1:
            return undefined(s, _CONSTANT, register=f.config_dest)
        _mark_written(s, f.instr_mod1, f.imm16_math)
        # Scratch value = the immediate, or LReg[0] of lanes 0-7 below each other.
        out, x = s.lane_tmp[lanes.VALUE], s.lreg[0]
        immediate = f.config_dest >= _SEQUENCE and f.instr_mod1 & _FROM_IMMEDIATE
        for lane in range(lanes.LANES):
            out[lane] = _U(f.imm16_math) if immediate else x[lane & (_COLUMNS - 1)]
        if f.config_dest >= _CONSTANTS and f.config_dest != _LANE_CONFIG:
            # LReg[11] to LReg[14], which may differ from lane to lane; DONE or an error.
            if f.instr_mod1 & _FROM_IMMEDIATE:
                if f.config_dest == _TWELVE:
                    return _DEFAULT
                out[:] = _DEFAULTS[(f.config_dest - _CONSTANTS) & 3]
            lanes.write_where(s, f.config_dest, lanes.VALUE)
            return DONE
        # Scratch value = what the lanes of a macro register or LaneConfig become.
        flag, register = s.lane_tmp[lanes.FLAG], f.config_dest
        own = register == _LANE_CONFIG  # of each lane; macro registers are the same in all
        mode = f.instr_mod1 if register == _MISC or own else 0
        keep = _U(0xFFFF0000 if own and f.instr_mod1 & _FROM_IMMEDIATE else 0)
        same = _U(_ALL_BITS ^ lanes.EXCHANGE_SRCB_SRCC if own else _ALL_BITS)
        held = s.macro_misc[0]
        if register < _MISC:
            held = (s.macro_template if register < _SEQUENCE else s.macro_sequence)[register & 3]
        for lane in range(lanes.LANES):
            old = s.lane_config[lane] if own else held
            value = _U(_combined(mode, old, out[lane]) | _U(old & keep))
            value = _U(value & _U(_MISC_BITS)) if register == _MISC else value
            out[lane] = value if flag[lane] != _ZERO else old
        for lane in range(1, lanes.LANES):
            if _U(out[lane] ^ out[0]) & same:
                return refuse(s, _DIFFERS, register=register, lane=lane)
        if own and out[0] & ~_U(_LANE_CONFIG_BITS):
            return refuse(s, _VALUE, value=np.int64(out[0]))
        if register < _SEQUENCE:
            s.macro_template[register & 3] = out[0]
        elif register < _MISC:
            s.macro_sequence[register & 3] = out[0]
        elif register == _MISC:
            s.macro_misc[0] = out[0]
        else:
            for lane in range(lanes.LANES):
                s.lane_config[lane] = out[lane]
        return DONE

    def moves(s: Any, t: Any, f: Any) -> Any:
        if f.config_dest == _FIXED_CONFIG or f.config_dest == _FIXED_CONFIG + 1:
            return DONE
        immediate = f.config_dest >= _SEQUENCE and f.instr_mod1 & _FROM_IMMEDIATE
        row = np.int64(0) if immediate else unspecified.of(s, 0) & _FIRST_ROW
        _mark_written(s, f.instr_mod1, f.imm16_math)
        taken = unspecified.both(unspecified.lanes_of(s.lane_tmp[lanes.FLAG]))
        status = unspecified.open_refused(s)
        if status != DONE:
            return status
        marks = (row | row << 8 | row << 16 | row << 24) & taken
        if f.config_dest >= _CONSTANTS and f.config_dest != _LANE_CONFIG:
            unspecified.write(s, f.config_dest, taken, marks)
            return DONE
        return unspecified.lane_doubt_refused(s, np.int64(0), marks)


assert integer  # importing it declares its instructions

NOP = move.SFPNOP.opcode
KIND, WORD, DEST, ROW, MODE = range(5)  # of a slot
FREE, CYCLES, INSTRUCTIONS = range(3)  # kinds: what a slot's delay counts

_NO_FACTS = Sfpu(ELSEWHERE)


def _by_opcode(fact: Callable[[Sfpu], int]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """A fact of every opcode, as its class declares it."""
    table = np.full(256, fact(_NO_FACTS), np.int64)
    for opcode, cls in REGISTRY.items():
        if cls.unit == "vector":
            assert isinstance(cls.facts, Sfpu), f"{cls.name} declares no facts of the vector unit"
            table[opcode] = fact(cls.facts)
    return table


SUB_UNIT = _by_opcode(lambda facts: facts.sub_unit)
FORM = _by_opcode(lambda facts: facts.form)
_NOTICED = _by_opcode(lambda facts: facts.noticed)
_IMPLIED = _by_opcode(lambda facts: facts.implied)

# What the words of each opcode read and write in each mode, as their classes declare it: operands
# as in `Sfpu.noticed`, and from _FIXED on LRegs that no field names.
_ANYWHERE, _FIXED = 1 << 5, 8
_ROWS = 64  # opcodes of the unit, modulo this


def _place(cls: type[Instruction], term: Term) -> int:
    """Bits of the tables for LRegs that a term names; pairs of SFPSWAP have none."""
    if not term.place:
        return _ANYWHERE
    words = [0x369CF << 4 * i & 0xFFFFFF for i in range(6)]
    named = [value(term.place, cls.operands(word)) for word in words]
    for i in range(5):
        if named == [word >> 4 + 4 * i & 15 for word in words]:
            return 1 << i
    if len(set(named)) > 1:
        return 0
    return (1 << int(term.length)) - 1 << named[0] + _FIXED


def _declared(declares: Callable[[type[Instruction]], Clause]) -> np.ndarray[Any, Any]:
    table = np.zeros((_ROWS, 16), np.int32)
    for opcode, cls in REGISTRY.items():
        if cls.unit != "vector":
            continue
        named = {term: _place(cls, term) for term in declares(cls) if term.space == LREG}
        row, modes = opcode % _ROWS, 16 if any(field.mode for field in cls.fields) else 1
        for mode in range(modes):
            values = {field.name: mode if field.mode else field.max for field in cls.fields}
            found = (places for term, places in named.items() if term.applies(values))
            table[row, mode] = reduce(or_, found, 0)
        table[row, modes:] = table[row, 0]
    return table


_READS, _WRITES = _declared(lambda cls: cls.reads), _declared(lambda cls: cls.writes)
_MODE_AT = np.zeros(_ROWS, np.int64)
for _opcode, _cls in REGISTRY.items():
    if _cls.unit == "vector":
        _MODE_AT[_opcode % _ROWS] = next((f.lo for f in _cls.fields if f.mode), 0)
_ALIAS, _LOGIC, _IMMEDIATE = int(Form.ALIAS), int(Form.LOGIC), int(Form.IMMEDIATE)
_TABLE, _NONE = int(Form.TABLE), int(Form.NONE)
_COPIED = 0xF  # LRegs that SFPSHFT2 modes 0 to 2 move
_SHIFT_BY_IMMEDIATE = 6  # mode of SFPSHFT2
_ARECIP = arith.SFPARECIP.opcode
_STORE_OPCODE, _CONFIG_OPCODE = loadstore.SFPSTORE.opcode, SFPCONFIG.opcode
_LOADMACRO = 0x93
_MOV, _SHFT2, _SWAP_OPCODE = move.SFPMOV.opcode, move.SFPSHFT2.opcode, move.SFPSWAP.opcode
_CAST, _STOCH_RND = convert.SFPCAST.opcode, convert.SFP_STOCH_RND.opcode

_SELECTOR = error("VECTOR-MACRO-SELECTOR", UB, "byte {unit} of macro sequence {macro} selects instruction 1, which is undefined", "select 2 (SFPNOP), 3 (SFPSTORE) or a template, 4 to 7")  # fmt: skip
_STORE_ONLY = error("VECTOR-MACRO-STORE", UB, "macro sequence {macro} gives the store sub-unit {word:#x}, which is no SFPSTORE", "select 3 in the byte [31:24] of the sequence")  # fmt: skip
_SCHEDULED_CONFIG = error("VECTOR-MACRO-CONFIG", MISSING, "SFPCONFIG as a scheduled instruction rewrites the macro configuration, and the ISA text gives its latency only as up to two cycles", "execute SFPCONFIG by itself")  # fmt: skip
_BONUS_OPERAND = error("VECTOR-MACRO-OPERAND", UNSUPPORTED, "opcode {opcode:#x} scheduled with LReg[16] as destination reads it as well, which has no model", "clear bit 6 of the sequence byte")  # fmt: skip


@njit
def _field(word: Any, lo: Any) -> Any:
    return (word >> lo) & 15


@njit
def _replaced(word: Any, lo: Any, value: Any) -> Any:
    return (word & ~(15 << lo)) | (value << lo)


@njit
def _reads_vb(word: Any) -> Any:
    """False for the modes that ignore VB: their words must leave the field 0."""
    opcode, mode = word >> 24, word & 15
    if FORM[opcode] == _LOGIC or opcode == _ARECIP:
        return mode == 1
    return opcode != _SHFT2 or mode == 5


@njit
def _operands(word: Any, form: Any, use_vb: Any, loaded: Any, dest: Any) -> Any:
    """`word` with the loaded LReg as VB (`use_vb`) or VC.

    An instruction with an implied operand takes it from its own lreg_dest field, [7:4], which is
    free for that: the destination is in the slot.  SFPSHFT2 by an immediate, which also names its
    source, takes it from lreg_src_c.
    """
    template_vd = _field(word, 4)
    if form == _ALIAS:
        word = word if use_vb else _replaced(word, 8, loaded)
        return _replaced(word, 4, loaded if use_vb else template_vd)
    if form == _IMMEDIATE:
        return _replaced(word, 4, template_vd if use_vb else loaded)
    if form == _TABLE:
        return _replaced(word, 20, 0)
    if form == _NONE:
        return _replaced(word, 4, 0)
    if word >> 24 == _SHFT2 and word & 15 == _SHIFT_BY_IMMEDIATE:
        source = loaded if use_vb else _field(word, 12)
        return _replaced(_replaced(word, 8, source), 4, 0)
    word = _replaced(word, 12 if use_vb else 8, loaded)
    if not _reads_vb(word):
        word = _replaced(word, 12, 0)
    return _replaced(word, 4, dest if form == _LOGIC else 0)


@njit
def selected(s: Any, macro: Any, unit: Any, choice: Any) -> Any:
    """Instruction word that bits [2:0] of a sequence byte choose, or an error (< 0)."""
    if choice == 1:
        return refuse(s, _SELECTOR, unit=unit, macro=macro)
    if choice == 2:
        word = np.int64(NOP << 24)
    elif choice == 3:
        word = np.int64(_STORE_OPCODE << 24)
    else:
        word = np.int64(s.macro_template[(choice - 4) & 3])
    opcode = word >> 24
    fits = SUB_UNIT[opcode] == unit or (opcode == NOP and unit != STORE)
    if fits:
        return word
    return refuse(s, _STORE_ONLY, macro=macro, word=word) if unit == STORE else np.int64(NOP << 24)


@njit
def arithmetic(s: Any, slot: Any, word: Any, byte: Any, loaded: Any) -> Any:
    """Fill the slot of a simple, MAD or round instruction: DONE or an error."""
    opcode = word >> 24
    dest = np.int64(lanes.BONUS) if byte & 0x40 else loaded
    form = FORM[opcode]
    if opcode == _CONFIG_OPCODE:
        return _SCHEDULED_CONFIG
    uses_vd = opcode == _SWAP_OPCODE or (form == _LOGIC and word & 1 == 0)
    if dest == lanes.BONUS and uses_vd:
        return refuse(s, _BONUS_OPERAND, opcode=opcode)
    slot[WORD] = _operands(word, form, byte & 0x80, loaded, dest & 7)
    slot[DEST] = dest
    return DONE


@njit
def store(s: Any, slot: Any, word: Any, byte: Any, loaded: Any, row: Any, mode: Any) -> None:
    """Fill the slot of a store."""
    own = _field(word, 20)
    slot[WORD] = word
    slot[DEST] = np.int64(lanes.BONUS) if byte & 0x40 else (own if byte & 0x80 else loaded)
    slot[ROW], slot[MODE] = row, mode


@njit
def occupied(s: Any, unit: Any) -> Any:
    """True when an instruction is due in the sub-unit."""
    return s.macro_slot[unit, 0, KIND] != FREE


@njit
def draws(word: Any) -> Any:
    """True when the word steps the random state of the lanes."""
    opcode, mode = word >> 24, word & 15
    if opcode == _MOV:
        return mode & 8 != 0 and _field(word, 8) == move.RANDOM
    return opcode == _STOCH_RND or (opcode == _CAST and mode == 1)


@njit
def two_cycles(word: Any) -> Any:
    """True for the simple and round instructions that occupy their sub-unit for two cycles."""
    opcode, mode = word >> 24, word & 15
    return opcode == _SWAP_OPCODE or (opcode == _SHFT2 and 2 <= mode <= 4)


@njit
def latency(word: Any) -> Any:
    """Cycles until the result of an instruction can be read: 1 or 2."""
    return np.int64(2) if SUB_UNIT[word >> 24] == MAD or two_cycles(word) else np.int64(1)


@njit
def _bit(register: Any) -> Any:
    return np.int64(1) << register if register < 8 else np.int64(0)


@njit
def _declared_of(table: Any, word: Any) -> Any:
    """Row `word` of `_READS` or `_WRITES`."""
    row = (word >> 24) & (_ROWS - 1)
    return np.int64(table[row, (word >> _MODE_AT[row]) & 15])


@njit
def _registers(word: Any, declared: Any) -> Any:
    """LRegs 0 to 7 (bit mask) that the fields of a word name, and those that none names."""
    mask = (declared >> _FIXED) & 0xFF
    for i in range(5):
        if (declared >> i) & 1:
            mask |= _bit(_field(word, 4 + 4 * i))
    return mask


@njit
def writes(word: Any) -> Any:
    """LRegs (bit mask) that a regular instruction of the MAD sub-unit writes, as stalls see it."""
    declared = _declared_of(_WRITES, word)
    return np.int64(0xFF) if declared & _ANYWHERE else _registers(word, declared)


@njit
def reads(word: Any) -> Any:
    """LRegs (bit mask) of which the stall logic sees a regular word read (SFPMAD).

    It goes by the opcode: modes that ignore an operand count as readers.
    """
    opcode, mode = word >> 24, word & 15
    if _declared_of(_READS, word) & _ANYWHERE:
        return np.int64(0xFF)
    if opcode == _SHFT2 and 2 <= mode <= 4:
        return np.int64(0)
    mask = np.int64(_COPIED if opcode == _SHFT2 and mode < 2 else _IMPLIED[opcode])
    if _declared_of(_WRITES, word) & _ANYWHERE:
        mask |= 1 << 7
    return mask | _registers(word, _NOTICED[opcode])


@njit
def unseen_reads(word: Any) -> Any:
    """LRegs that a regular word reads without the stall logic noticing (SFPMAD, second caution)."""
    opcode, mode = word >> 24, word & 15
    if opcode == _SHFT2 and mode < 2:
        return np.int64(0)
    unnoticed = (opcode == _SWAP_OPCODE and mode) or (opcode == _SHFT2 and mode < 5)
    noticed = _NOTICED[opcode] | (_IMPLIED[opcode] | 1 << 7) << _FIXED
    return _registers(word, _declared_of(_READS, word) & (-1 if unnoticed else ~noticed))


@njit
def loaded(word: Any) -> Any:
    """VD of an SFPLOADMACRO: two bits in lreg_ind, the third in bit 0 of the address."""
    return ((word & 1) << 2) | ((word >> 20) & 3)


@njit
def overwrites(word: Any) -> Any:
    """LRegs (bit mask) that a regular word writes, as its fields say."""
    if word >> 24 == _LOADMACRO:
        return _bit(loaded(word))
    return _registers(word, _declared_of(_WRITES, word))
