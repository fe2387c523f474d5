"""Config that a unit reads when it begins a word: what says where in L1 the word begins.

An unpacker computes the first address while the thread issues nothing (UNPACR_Regular,
performance, Wormhole ISA), the packer when PACR starts (OutputAddressGenerator, Wormhole ISA; PACR,
Blackhole ISA). Kernels rely on it: they give both units the next address while these are still at
work. In the timed form these words are kept with the word of the unit, and exchanged for those that
are there now when it executes. Other Config is read then.
"""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.tensix import config, in_flight
from bhemu.tensix import config_fields as cf
from bhemu.tensix.config import CONFIG_WORDS, SECTION_WORDS
from bhemu.tensix.insn import decoder
from bhemu.tensix.state import BEGUN
from bhemu.tensix.units.pack.pacr import PACR
from bhemu.tensix.units.unpack.modes import DESCRIPTOR_X, UnpackWord, mode_of_word
from bhemu.tensix.units.unpack.unpacr import UNPACR

_UNPACR, _PACR = UNPACR.opcode, PACR.opcode
_BASE, _OFFSET = cf.THCON_SEC0_REG3_Base_address.word, cf.THCON_SEC0_REG7_Offset_address.word
_X_OF_CONTEXT = cf.THCON_SEC0_REG5_Tile_x_dim_cntx0.word
_DESTINATION = cf.THCON_SEC0_REG1_L1_Dest_addr.word
_DESCRIPTOR = DESCRIPTOR_X.word
# The base; the offset, without the formats above it; the tile descriptor, of its first word the
# X dimension, without the format; X dimensions of contexts.
_ALL = 0xFFFFFFFF
_BITS = np.array([_ALL, 0xFFFF, DESCRIPTOR_X.mask << DESCRIPTOR_X.shift, _ALL, _ALL, _ALL, _ALL])
assert len(_BITS) == BEGUN


_unpack_fields = decoder(UnpackWord)


@njit
def _keep_one(s: Any, unit: Any, i: Any, bank: Any, word: Any) -> None:
    s.unit_begun_at[unit, i] = 1 + bank * CONFIG_WORDS + word
    s.unit_begun[unit, i] = s.cfg[bank, word]


@njit
def keep(s: Any, unit: Any, t: Any, word: Any) -> None:
    """Unit `unit` has taken a word of thread `t`: keep what its first address is made of."""
    for i in range(BEGUN):
        s.unit_begun_at[unit, i] = 0
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
        _keep_one(s, unit, 0, config.bank(s, t), _DESTINATION)
    in_flight.exchange_config(s, unit)


@njit
def exchange(s: Any, unit: Any) -> None:
    """Exchange the words that were kept for those that are there now."""
    for i in range(BEGUN):
        at = s.unit_begun_at[unit, i] - 1
        if at >= 0:
            bank, word = at // CONFIG_WORDS, at % CONFIG_WORDS
            now, bits = np.int64(s.cfg[bank, word]), _BITS[i]
            s.cfg[bank, word] = (now & ~bits) | (np.int64(s.unit_begun[unit, i]) & bits)
            s.unit_begun[unit, i] = now
