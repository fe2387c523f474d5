"""Src banks: the owner of each bank of SrcA and SrcB, and the formats recorded with them.

Each of SrcA and SrcB has two banks.  A valid bank belongs to the matrix unit, which reads its
`matrix_bank`; the others belong to the unpacker, which writes its `unpack_bank`.  Setting and
clearing the valid flag moves the respective unit on to its other bank.  Source: SrcASrcB, Wormhole
ISA; implied formats of Blackhole in ttsim's Tensix model.
"""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.tensix import config, rules
from bhemu.tensix import config_fields as cf
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.formats import BF16, FP16

SRCA, SRCB = 0, 1  # first index of s.src, s.src_valid, s.src_fmt
NO_FORMAT = 16  # a bank that SETDVALID handed over implies no format
STALE = 0  # s.src_prepared of a bank whose cells have changed, see units/matrix/__init__.py

# Condition of [SrcA bank 0, SrcA bank 1, SrcB bank 0, SrcB bank 1]
_VALID = tuple(
    rules.condition(f"{name} bank {bank} to become valid (unpacker {unit} hands it over)")
    for unit, name in enumerate(("SrcA", "SrcB"))
    for bank in (0, 1)
)
_FREE = tuple(
    rules.condition(f"{name} bank {bank} to become free (the matrix unit releases it)")
    for name in ("SrcA", "SrcB")
    for bank in (0, 1)
)
WAITED_FOR = {
    **{number: (i >> 1, i & 1, True) for i, number in enumerate(_VALID)},
    **{number: (i >> 1, i & 1, False) for i, number in enumerate(_FREE)},
}
"""Condition number -> (SRCA or SRCB, bank, whether it is to become valid)."""

_A_NOT_VALID = rules.error("SRCA-NOT-VALID", rules.NCB, "clear_dvalid releases SrcA bank {bank}, which is not valid", "let unpacker 0 hand the bank over first, or wait for it with STALLWAIT")  # fmt: skip
_B_NOT_VALID = rules.error("SRCB-NOT-VALID", rules.NCB, "clear_dvalid releases SrcB bank {bank}, which is not valid", "let unpacker 1 hand the bank over first, or wait for it with STALLWAIT")  # fmt: skip
_A_VALID = rules.error("SRCA-ALREADY-VALID", rules.NCB, "unpacker 0 hands over SrcA bank {bank}, which is already valid", "the matrix unit must release the bank first")  # fmt: skip
_B_VALID = rules.error("SRCB-ALREADY-VALID", rules.NCB, "unpacker 1 hands over SrcB bank {bank}, which is already valid", "the matrix unit must release the bank first")  # fmt: skip
_RELEASE, _HAND_OVER = (_A_NOT_VALID, _B_NOT_VALID), (_A_VALID, _B_VALID)
_LOST = rules.error("UNPACR-BURST", rules.UNSUPPORTED, "SrcA row {row} is read, but the UNPACR that wrote it did so in one burst with rows of another set of 16: the silicon may have dropped the row", "start UNPACR at a multiple of its burst of up to 8 rows, unpack fewer datums at a time, or write the row again: only the first row of such a burst is certain")  # fmt: skip


@njit
def matrix_ready(s: Any, which: Any) -> Any:
    """0 when the matrix unit may read its bank of SRCA or SRCB, else the condition it waits for."""
    bank = s.matrix_bank[which] & 1
    return 0 if s.src_valid[which, bank] else _VALID[which * 2 + bank]


@njit
def matrix_free(s: Any, which: Any) -> Any:
    """0 when the matrix unit's bank is not valid, else the condition (UNPACR_NOP, stall_clr 0)."""
    return unpacker_owns(s, which, s.matrix_bank[which] & 1)


@njit
def unpack_ready(s: Any, which: Any) -> Any:
    """0 when the unpacker may write its bank of SRCA or SRCB, else the condition it waits for."""
    return unpacker_owns(s, which, s.unpack_bank[which] & 1)


@njit
def unpacker_owns(s: Any, which: Any, bank: Any) -> Any:
    """0 when a bank of SRCA or SRCB is not valid, else the condition to wait for."""
    return _FREE[which * 2 + bank] if s.src_valid[which, bank] else 0


@njit(inline="always")
def changed(s: Any, which: Any, bank: Any) -> None:
    """Every writer of cells of a bank calls this: what was prepared from them is forgotten."""
    s.src_prepared[which, bank & 1] = STALE


@njit(inline="always")
def any_doubt(s: Any, bank: Any) -> Any:
    """Not 0 when a row of bank `bank` of SrcA may be lost."""
    doubt = s.src_doubt[bank]
    return doubt[0] | doubt[1] | doubt[2] | doubt[3]


@njit(inline="always")
def doubtful(s: Any, row: Any, rows: Any) -> Any:
    """0, or the error of reading SrcA rows of which one may be lost, in the matrix unit's bank.

    The rows lie in one set of 16; `row` counts modulo 64.
    """
    doubt = s.src_doubt[s.matrix_bank[SRCA] & 1, (row >> 4) & 3]
    if doubt:
        for i in range(row & 63, (row & 63) + rows):
            if (doubt >> (i & 15)) & 1:
                return rules.refuse(s, _LOST, row=i)
    return 0


@njit
def settle(s: Any, bank: Any, row: Any, rows: Any) -> None:
    """`rows` whole rows of SrcA from `row` are written for certain."""
    for i in range(row, row + rows):
        s.src_doubt[bank, (i >> 4) & 3] &= ~(np.int64(1) << (i & 15))


@njit
def settled(s: Any, which: Any, bank: Any) -> None:
    """So is the whole bank of SRCA; of SRCB nothing is ever in doubt."""
    if which == SRCA:
        s.src_doubt[bank, :] = 0


@njit
def hand_over(s: Any, which: Any, fmt: Any) -> Any:
    """Set the unpack bank valid, record its format and flip; DONE or the error, before any effect.

    `fmt` is the unpacker's Out_data_format (0-15).
    """
    bank = s.unpack_bank[which] & 1
    if s.src_valid[which, bank]:
        status = rules.undefined(s, _HAND_OVER[which], bank=bank)
        if status:
            return status
    s.src_valid[which, bank] = 1
    s.src_fmt[which, bank] = fmt
    changed(s, which, bank)
    s.unpack_bank[which] = bank ^ 1
    return 0


@njit
def _disabled(s: Any, t: Any, which: Any) -> Any:
    if which == SRCA:
        return config.thread(s, t, tf.CLR_DVALID_SrcA_Disable)
    return config.thread(s, t, tf.CLR_DVALID_SrcB_Disable)


@njit
def releasable(s: Any, which: Any) -> Any:
    """0, or the error of clearing the valid flag of a matrix bank that is not valid."""
    bank = s.matrix_bank[which] & 1
    return 0 if s.src_valid[which, bank] else rules.undefined(s, _RELEASE[which], bank=bank)


@njit
def taken_back(s: Any, which: Any) -> Any:
    """As `releasable`, for CLEARDVALID; tt-llk's dumps turn to the bank used last by it."""
    bank = s.matrix_bank[which] & 1
    if s.src_valid[which, bank]:
        return 0
    return rules.undefined_unless_llk(s, _RELEASE[which], bank=bank)


@njit
def release(s: Any, t: Any, mask: Any) -> Any:
    """What clear_dvalid does: bit 0 SrcA, bit 1 SrcB; DONE or the error, before any effect.

    The matrix unit moves on to its other bank even when CLR_DVALID_Src{A,B}_Disable keeps the bank
    valid.  It cannot fail on a bank for which `matrix_ready` was 0.
    """
    for which in range(2):
        if (mask >> which) & 1 and not _disabled(s, t, which):
            status = releasable(s, which)
            if status:
                return status
    for which in range(2):
        if (mask >> which) & 1:
            bank = s.matrix_bank[which] & 1
            if not _disabled(s, t, which):
                s.src_valid[which, bank] = 0
            s.matrix_bank[which] = bank ^ 1
    return 0


@njit
def fp16_forced(s: Any, t: Any) -> Any:
    """1 when every operand counts as fp16, and Dst has 16-bit datums (FP16A_FORCE_Enable).

    It goes before implied and configured formats, Fp32_enabled and INT8_math_enabled.
    """
    return config.thread(s, t, tf.FP16A_FORCE_Enable)


@njit
def format_a(s: Any, t: Any, which: Any) -> Any:
    """SrcA format of an FPU instruction: implied, from the matrix bank of `which`, or configured.

    Moves that read or write SrcB take their SrcA format from the bank of SRCB.
    """
    if fp16_forced(s, t):
        return np.int64(FP16)
    if not config.thread(s, t, tf.DISABLE_IMPLIED_SRCA_FMT_Base):
        return s.src_fmt[which, s.matrix_bank[which] & 1]
    b = config.bank(s, t)
    if config.get(s, b, cf.ALU_FORMAT_SPEC_REG_SrcA_override):
        return config.get(s, b, cf.ALU_FORMAT_SPEC_REG_SrcA_val)
    return config.get(s, b, cf.ALU_FORMAT_SPEC_REG0_SrcA)


@njit
def moved_format(s: Any, t: Any) -> Any:
    """SrcA format of a move from or to SrcB.

    A bank without format gives bits back as it got them, whatever it were: bf16, then.
    """
    fmt = format_a(s, t, SRCB)
    return np.int64(BF16) if fmt == NO_FORMAT else fmt


@njit
def format_b(s: Any, t: Any) -> Any:
    """SrcB format of an FPU instruction: implied, from its matrix bank, or ALU_FORMAT_SPEC_REG1."""
    if fp16_forced(s, t):
        return np.int64(FP16)
    if not config.thread(s, t, tf.DISABLE_IMPLIED_SRCB_FMT_Base):
        return s.src_fmt[SRCB, s.matrix_bank[SRCB] & 1]
    return config.get(s, config.bank(s, t), cf.ALU_FORMAT_SPEC_REG1_SrcB)
