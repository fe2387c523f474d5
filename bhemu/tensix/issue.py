"""What happens when the wait gate issues a word that a unit executes later: from the declarations.

A word of the matrix unit waits for the Src banks that it reads, `ready` of its class says where
that is different; the counters that it will have moved are moved at once, so that the next words
of the thread see them (`advance`; of most classes: the address modifier of the word).
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bhemu.jit.subset import JIT, Compiled, njit
from bhemu.tensix import banks, config, in_flight, spaces, units
from bhemu.tensix import config_fields as cf
from bhemu.tensix.config import CONFIG_WORDS, SECTION_WORDS, SHARED
from bhemu.tensix.in_flight import MATRIX, MOVER, PACKER, UNPACKER0, VECTOR
from bhemu.tensix.insn import Instruction, decoder, instructions
from bhemu.tensix.state import BEGUN
from bhemu.tensix.units import counters
from bhemu.tensix.units.pack.pacr import PACR
from bhemu.tensix.units.unpack.modes import DESCRIPTOR_X, UnpackWord, mode_of_word
from bhemu.tensix.units.unpack.unpacr import UNPACR

assert units.MODULES  # importing the package declares the instructions

NO_UNIT = -1  # of a word that is complete at the gate
_UNITS = {"unpack": UNPACKER0, "matrix": MATRIX, "vector": VECTOR, "pack": PACKER, "mover": MOVER}
_UNIT = np.array(
    [
        _UNITS.get(instructions()[i].unit, NO_UNIT) if i in instructions() else NO_UNIT
        for i in range(256)
    ]
)
_SECOND_UNPACKER = UNPACR.unpack_block_selection.lo  # as in UNPACR_NOP


@njit
def unit_of(opcode: Any, word: Any) -> Any:
    """The unit that takes a word, NO_UNIT for one that is complete at the gate."""
    unit = _UNIT[opcode]
    return unit + (word >> _SECOND_UNPACKER & 1) if unit == UNPACKER0 else unit


@njit
def _matrix_ready(s: Any, mask: Any) -> Any:
    """0, or the condition of the first Src bank of `mask` that is not the matrix unit's."""
    for which in range(2):
        if mask >> which & 1:
            status = banks.matrix_ready(s, which)
            if status:
                return status
    return 0


def _ready(cls: type[Instruction]) -> str:
    """Wait for the Src banks, as a mask, that a class of the matrix unit reads."""
    if cls.unit != "matrix" or cls.ready is not None:
        return ""
    always = spaces.Clause(one for one in cls.reads if one.space == spaces.SRC and not one.when)
    places = always.places(spaces.SRC, {})
    mask = 3 if places is None else sum(1 << n for n in places)
    return f"return MATRIX_READY(s, {mask})" if mask else ""


def _advance(cls: type[Instruction]) -> str:
    field = next((field for field in cls.fields if field.name.endswith("addr_mode")), None)
    if cls.unit != "matrix" or field is None or not cls.writes.may(spaces.RWC[0].space):
        return ""
    return f"RWC.apply_addr_mod(s, t, word >> {field.lo} & {field.max:#x})"


def _source(name: str, default: Callable[[type[Instruction]], str]) -> Iterator[str]:
    yield f"def {name}(s, t, word):"
    yield "    opcode = word >> 24"
    for opcode, cls in sorted(instructions().items()):
        own = getattr(cls, name)
        line = default(cls)
        if own is not None:
            fields = cls.source("word").replace("_Fields", f"{cls.__name__}_Fields")
            line = f"return {cls.__name__}_{name}(s, t, {fields})"
        if cls.execute is not None and line:
            yield f"    if opcode == {opcode}:"
            yield f"        {line}"
    yield "    return 0"


def _function(name: str, default: Callable[[type[Instruction]], str]) -> Any:
    def generate() -> Any:
        space: dict[str, Any] = {
            "__name__": __name__,
            "MATRIX_READY": _matrix_ready,
            "RWC": counters,
        }
        for cls in instructions().values():
            own = getattr(cls, name)
            if own is not None:
                space[f"{cls.__name__}_{name}"] = njit(own)
                space[f"{cls.__name__}_Fields"] = cls.Fields
        exec("\n".join(_source(name, default)), space)
        return space[name]

    return Compiled.generated(generate, {}) if JIT else generate()


ready = _function("ready", _ready)
"""ready(s, t, word): 0, or the condition for which a word waits before its unit takes it."""

advance = _function("advance", _advance)
"""advance(s, t, word): move the counters that the word will have moved."""


# Config that a unit reads when it begins a word.
#
# Of unpackers and the packer: what says where the word begins. An unpacker computes the first
# address while the thread issues nothing (UNPACR_Regular, performance, Wormhole ISA), the packer
# when PACR starts (InputAddressGenerator, OutputAddressGenerator, Wormhole ISA; PACR, Blackhole
# ISA). Kernels rely on it: they give both units the next address while these are still at work,
# and fast untilize the packer its next rows of Dst. Other Config is read when these units execute
# the word; so is PCK0_ADDR_CTRL_XY_REG_1, for which the record has no place.
#
# Of the matrix unit: all of it. What writes Config is picked up by subsequent instructions
# (BackendConfiguration, Blackhole ISA); the design samples the ALU's bits when a word is issued to
# its unit, which delays injected on a p100a confirm (tt-llk issue 1683). tt-llk relies on it: its
# transpose of Dst clears Fp32_enabled right after a MOVB2D. Of the vector unit no such text is
# known: tt-llk waits for it before it writes what SFPLOAD and SFPSTORE read (tt-metal pull request
# 48360).
#
# In the timed form these words are kept with the word of the unit, and exchanged for those that are
# there now when it executes.


_UNPACR, _PACR = UNPACR.opcode, PACR.opcode
_BASE, _OFFSET = cf.THCON_SEC0_REG3_Base_address.word, cf.THCON_SEC0_REG7_Offset_address.word
_X_OF_CONTEXT = cf.THCON_SEC0_REG5_Tile_x_dim_cntx0.word
_DESCRIPTOR = DESCRIPTOR_X.word
_ALL = 0xFFFFFFFF
# Of an unpacker: the base; the offset, without the formats above it; the tile descriptor, of its
# first word the X dimension, without the format; X dimensions of contexts.
_BITS = np.array([_ALL, 0xFFFF, DESCRIPTOR_X.mask << DESCRIPTOR_X.shift, _ALL, _ALL, _ALL, _ALL])
assert len(_BITS) == BEGUN
_OF_PACKER = (
    cf.THCON_SEC0_REG1_L1_Dest_addr,
    cf.DEST_TARGET_REG_CFG_PACK_SEC0_Offset,
    cf.PCK0_ADDR_BASE_REG_0_Base,
    cf.PCK0_ADDR_CTRL_XY_REG_0_Ystride,
    cf.PCK0_ADDR_CTRL_ZW_REG_0_Zstride,
    cf.PCK0_ADDR_BASE_REG_1_Base,
    cf.PCK0_ADDR_CTRL_ZW_REG_1_Zstride,
)
_OF_MATRIX = (  # but DEST_ACCESS_CFG, whose change has an effect of its own
    cf.ALU_FORMAT_SPEC_REG_SrcA_val,
    cf.ALU_FORMAT_SPEC_REG0_SrcA,
    cf.ALU_ACC_CTRL_Zero_Flag_disabled_src,
    cf.DEST_REGW_BASE_Base,
)
_PACKER_READS = np.array([field.word for field in _OF_PACKER])
_MATRIX_READS = np.array([field.word for field in _OF_MATRIX])


def _of_unpackers() -> Iterator[tuple[int, int]]:
    for section in (0, SECTION_WORDS):
        yield from ((_BASE + section + context, _ALL) for context in range(8))
        yield from ((_OFFSET + section + context, int(_BITS[1])) for context in range(4))
        yield from ((_DESCRIPTOR + section + i, int(_BITS[2 + i])) for i in range(4))
    yield from ((_X_OF_CONTEXT + i, _ALL) for i in range(2))


AT_ISSUE: dict[str, dict[int, int]] = {
    "unpack": dict(_of_unpackers()),
    "pack": dict.fromkeys(_PACKER_READS.tolist(), _ALL),
    "matrix": dict.fromkeys(_MATRIX_READS.tolist(), _ALL),
}
"""By unit as instructions name it: words of a bank of Config, and which of their bits it reads when
a word is issued."""


_unpack_fields = decoder(UnpackWord)


@njit
def _keep_one(s: Any, unit: Any, i: Any, bank: Any, word: Any) -> None:
    s.unit_begun_at[unit, i] = 1 + bank * CONFIG_WORDS + word
    s.unit_begun[unit, i] = s.cfg[bank, word]


@njit
def keep(s: Any, unit: Any, t: Any, word: Any) -> None:
    """Unit `unit` has taken a word of thread `t`: keep the Config that it reads now."""
    s.unit_begun_at[unit, :BEGUN] = 0
    in_flight.exchange_config(s, unit)
    if word >> 24 == _UNPACR:
        m = mode_of_word(s, t, _unpack_fields(word))
        section = SECTION_WORDS * m.unpacker
        _keep_one(s, unit, 0, m.bank, _BASE + section + m.context)
        _keep_one(s, unit, 1, m.bank, _OFFSET + section + (m.context & 3))
        for i in range(4):
            _keep_one(s, unit, 2 + i, m.bank, _DESCRIPTOR + section + i)
        if m.unpacker == 0:
            _keep_one(s, unit, 6, m.bank, _X_OF_CONTEXT + (m.context >> 1 & 1))
    elif word >> 24 == _PACR:
        for i in range(len(_PACKER_READS)):
            _keep_one(s, unit, i, config.bank(s, t), _PACKER_READS[i])
    elif unit == MATRIX:
        for i in range(len(_MATRIX_READS)):
            _keep_one(s, unit, i, config.bank(s, t), _MATRIX_READS[i])
    in_flight.exchange_config(s, unit)


@njit
def exchange(s: Any, unit: Any) -> None:
    """Exchange the words that were kept for those that are there now."""
    for i in range(BEGUN):
        at = s.unit_begun_at[unit, i] - 1
        if at >= 0:
            bank, word = at // CONFIG_WORDS, at % CONFIG_WORDS
            now, bits = np.int64(s.cfg[bank, word]), _BITS[i] if unit < MATRIX else np.int64(_ALL)
            s.cfg[bank, word] = (now & ~bits) | (np.int64(s.unit_begun[unit, i]) & bits)
            if word >= SHARED:
                s.cfg[1 - bank, word] = s.cfg[bank, word]
            s.unit_begun[unit, i] = now
