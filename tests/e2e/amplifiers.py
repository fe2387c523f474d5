"""Programs of a few instructions that make a tile work for very long, on one TRISC for ever."""

from bhemu.memmap import L1_SIZE, MOP_CFG_BASE, TENSIX_CFG_BASE
from bhemu.riscv.assembly import A0, A1, A2, PUSH, ZERO, addi, code, jal, li, lw, sw, tt, ttinsn
from bhemu.tensix import config_fields as cf
from bhemu.tensix.insn import assemble
from bhemu.tensix.units import MODULES

assert MODULES  # importing the units declares the instructions
NOP = assemble("NOP")
COUNT = assemble("ADDDMAREG", op_a_reg_index=4, op_b_reg_index=5, result_reg_index=4)
START = 0x10000  # where the program lies
_LONG = 2048  # words of a long straight run
_MOST = 127


def _store(address: int, value: int) -> list[int]:
    return [*li(A0, address), *li(A1, value), sw(A1, A0)]


def _mop(word: int) -> list[int]:
    """Instructions that configure template 1: `word`, 127 times 127."""
    words = [_MOST, _MOST, NOP, NOP, NOP, word, NOP, word, word]
    return [w for i, value in enumerate(words) for w in _store(MOP_CFG_BASE + 4 * i, value)]


def _packer() -> list[int]:
    """Pack Dst as fp32 to the middle of L1."""
    fields = {cf.PCK_DEST_RD_CTRL_Read_32b_data: 1, cf.THCON_SEC0_REG1_L1_Dest_addr: L1_SIZE >> 5}
    return [
        w
        for field, value in fields.items()
        for w in _store(TENSIX_CFG_BASE + 4 * field.word, value << field.shift)
    ]


def _forever(setup: list[int], *body: int) -> bytes:
    return code(setup, list(body), jal(ZERO, -4 * len(body)))


def _record(*words: int, execute: int = 0) -> list[int]:
    """`.ttinsn` words that put `words` into the replay buffer from slot 0 on."""
    record = tt("REPLAY", len=len(words), load_mode=1, execute_while_loading=execute)
    return [record, *(ttinsn(word) for word in words)]


_EXPAND = tt("MOP", mop_type=1)
_PLAY = assemble("REPLAY", len=32)
_ZERO_ALL = assemble("ZEROACC", clear_mode=3)
_MAD = assemble("SFPMAD", lreg_src_a=1, lreg_src_b=2, lreg_src_c=3, lreg_dest=4)
_PACK = assemble("PACR", last=1)

AMPLIFIERS = {
    "loop": _forever([], addi(A0, A0, 1)),
    "loop over L1": _forever(li(A1, 0x8000), lw(A0, A1), sw(A0, A1)),
    "loop over a device": _forever(li(A1, 0xFFE00000), lw(A0, A1), sw(A0, A1)),
    "endless run of words": _forever([], *[ttinsn(COUNT)] * _LONG),
    "endless stores of words": _forever([*li(A1, PUSH), *li(A2, COUNT)], *[sw(A2, A1)] * _LONG),
    "MOP": _forever(_mop(COUNT), _EXPAND),
    "MOP and looks": _forever([*_mop(COUNT), *li(A1, 0xFFE00000)], _EXPAND, lw(A0, A1)),
    "MOPs in a long run": _forever(_mop(COUNT), *[_EXPAND] * _LONG),
    "MOP of REPLAYs": _forever([*_mop(_PLAY), *_record(*[COUNT] * 32)], _EXPAND),
    "MOPs of REPLAYs": _forever([*_mop(_PLAY), *_record(*[COUNT] * 32)], *[_EXPAND] * _LONG),
    "REPLAY of a MOP": _forever(
        _mop(COUNT), tt("REPLAY", len=32, load_mode=1, execute_while_loading=1), *[_EXPAND] * 3
    ),
    "MOPs of recording REPLAYs": _forever(
        _mop(assemble("REPLAY", len=1, load_mode=1)), *[_EXPAND] * _LONG
    ),
    "MOPs of RESOURCEDECLs": _forever(_mop(assemble("RESOURCEDECL")), *[_EXPAND] * _LONG),
    "MOPs of MOP_CFGs": _forever([], *[tt("MOP_CFG", zmask_hi16=1)] * _LONG),
    "MOPs of ZEROACCs": _forever(_mop(_ZERO_ALL), *[_EXPAND] * _LONG),
    "MOPs of SFPMADs": _forever(_mop(_MAD), *[_EXPAND] * _LONG),
    "MOPs of PACRs": _forever([*_packer(), *_mop(_PACK)], *[_EXPAND] * _LONG),
    "the whole of L1 as code": code([ttinsn(COUNT)] * ((L1_SIZE - START) // 4 - 1), jal(ZERO, -8)),
}
