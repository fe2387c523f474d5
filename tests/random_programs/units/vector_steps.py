"""One random vector instruction at a time, in the forms that the golden model accepts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from bhemu.tensix.insn import assemble
from random_programs import operands
from random_programs.dice import Dice
from random_programs.plan import Step, step, steps_of

_STACK = 8  # entries of the condition stack
_INDEXED = 4  # LaneConfig ENABLE_DEST_INDEX: results to LReg4-7 are corrupted (TEN-2932)
_LOADS = (0, 2, 3, 4, 6, 12, 14, 15)
_STORES = (0, 2, 3, 4, 6, 7, 9, 12, 14, 15)
_NARROW = (2, 6, 14, 15)  # modes that address 16-bit cells


@dataclass
class Lanes:
    """What a generator must know of the state: condition stack, enables, lane configuration.

    `own` are addresses of the block's slots; `source` is the format that mode 0 follows.
    """

    own: Sequence[int]
    source: int | None
    enabled: bool = True  # cc_en
    stack: list[bool] = field(default_factory=list)
    config: int = 0


def random_step(dice: Dice, lanes: Lanes) -> Step:
    """The next instruction, which changes `lanes` as it would."""
    make = dice.pick(_MAKERS)
    return make(dice, lanes)


def _target(dice: Dice, lanes: Lanes) -> int:
    return dice.below(4 if lanes.config & _INDEXED else 8)


def _source(dice: Dice) -> int:
    """Mostly LReg0-7, now and then a constant."""
    return dice.below(16) if dice.chance(5) else dice.below(8)


def _one(mnemonic: str, mode: int, **fields: int) -> Step:
    return step(mnemonic, f"mod {mode}", instr_mod1=mode, **fields)


def _unary(mnemonic: str, *modes: int) -> Callable[[Dice, Lanes], Step]:
    def make(dice: Dice, lanes: Lanes) -> Step:
        target, source = _target(dice, lanes), _source(dice)
        return _one(mnemonic, dice.pick(modes), lreg_dest=target, lreg_c=source)

    return make


def _plain(mnemonic: str) -> Callable[[Dice, Lanes], Step]:
    def make(dice: Dice, lanes: Lanes) -> Step:
        return step(mnemonic, lreg_dest=_target(dice, lanes), lreg_c=_source(dice))

    return make


def _immediate(mnemonic: str) -> Callable[[Dice, Lanes], Step]:
    def make(dice: Dice, lanes: Lanes) -> Step:
        value = int(operands.mixed(dice, 1, operands.BF16)[0])
        return _one(mnemonic, 0, lreg_dest=_target(dice, lanes), imm16_math=value)

    return make


def _product(mnemonic: str, *modes: int) -> Callable[[Dice, Lanes], Step]:
    """SFPMAD, SFPADD (one factor is LReg10), SFPMUL and SFPMUL24 (the addend is LReg9)."""

    def make(dice: Dice, lanes: Lanes) -> Step:
        a, b, c = (_source(dice) for _ in range(3))
        if mnemonic == "SFPADD":
            a, b = (10, b) if dice.chance(2) else (a, 10)
        elif mnemonic != "SFPMAD":
            c = 9
        names = {"lreg_src_a": a, "lreg_src_b": b, "lreg_src_c": c}
        return _one(mnemonic, dice.pick(modes), lreg_dest=_target(dice, lanes), **names)

    return make


def _logic(mnemonic: str) -> Callable[[Dice, Lanes], Step]:
    def make(dice: Dice, lanes: Lanes) -> Step:
        mode = dice.below(2)
        fields = {"lreg_dest": _target(dice, lanes), "lreg_c": _source(dice)}
        return _one(mnemonic, mode, imm12_math=_source(dice) if mode else 0, **fields)

    return make


def _load_immediate(dice: Dice, lanes: Lanes) -> Step:
    mode = dice.pick((0, 1, 2, 4, 8, 10))
    shape = operands.FP16 if mode == 1 else operands.BF16
    value = int(operands.mixed(dice, 1, shape)[0])
    fields = {"lreg_ind": dice.below(8), "instr_mod0": mode, "imm16": value}
    return step("SFPLOADI", f"mod {mode}", **fields)


def _where(dice: Dice, lanes: Lanes, mode: int) -> int:
    """Mostly a slot of the block, in the cells that the mode addresses."""
    if dice.chance(4):
        return 2 * dice.below(512)
    place = dice.pick(lanes.own)
    if mode in _NARROW or (mode == 0 and lanes.source is not None):
        row = place & ~3
        return (row & 0x1F8) << 1 | row & 7 | place & 2 | 8 * dice.below(2)
    return place


def _transfer(mnemonic: str, modes: Sequence[int]) -> Callable[[Dice, Lanes], Step]:
    def make(dice: Dice, lanes: Lanes) -> Step:
        mode = dice.pick(modes)
        fields = {
            "lreg_ind": dice.below(12) if dice.chance(8) else dice.below(8),
            "instr_mod0": mode,
            "dest_reg_addr": _where(dice, lanes, mode),
            "sfpu_addr_mode": dice.below(8) if dice.chance(6) else 0,
        }
        implied = "SFPU_Fp32" if lanes.source is None else f"SrcB {lanes.source}"
        return step(mnemonic, f"mod {mode}", implied if mode == 0 else "", **fields)

    return make


def _divp2(dice: Dice, lanes: Lanes) -> Step:
    amount = dice.below(256) - 128
    fields = {
        "lreg_dest": _target(dice, lanes),
        "lreg_c": _source(dice),
        "imm12_math": amount & 0xFFF,
    }
    return _one("SFPDIVP2", dice.below(2), **fields)


def _iadd(dice: Dice, lanes: Lanes) -> Step:
    mode = dice.pick((0, 1, 2, 4, 5, 6, 8, 9, 10))
    fields = {"lreg_dest": _target(dice, lanes), "lreg_c": _source(dice)}
    return _one("SFPIADD", mode, imm12_math=dice.below(4096), **fields)


def _shift(dice: Dice, lanes: Lanes) -> Step:
    mode = dice.pick((0, 1, 2, 3, 5, 7))
    amount = (dice.below(96) - 48) & 0xFFF if mode & 1 else 0
    fields = {"lreg_dest": _target(dice, lanes), "lreg_c": _source(dice), "imm12_math": amount}
    return _one("SFPSHFT", mode, **fields)


def _shift2(dice: Dice, lanes: Lanes) -> Step:
    mode = dice.pick((3, 4, 5))
    fields = {"lreg_dest": _target(dice, lanes), "lreg_src_c": _source(dice)}
    return _one("SFPSHFT2", mode, imm12_math=_source(dice) if mode == 5 else 0, **fields)


def _set_cc(dice: Dice, lanes: Lanes) -> Step:
    if not lanes.enabled:
        return _enable(dice, lanes)
    return _one("SFPSETCC", dice.pick((0, 2, 4, 6)), lreg_c=_source(dice))


def _enable(dice: Dice, lanes: Lanes) -> Step:
    """SFPENCC; a state without lanes is left again soon enough to stay useful."""
    value = dice.pick((3, 3, 3, 3, 1, 2, 0)) if dice.chance(2) else None
    if value is None:
        return _one("SFPENCC", 0)
    lanes.enabled = bool(value & 1)
    return step("SFPENCC", f"mod 10 imm {value}", instr_mod1=10, imm12_math=value)


def _complement(dice: Dice, lanes: Lanes) -> Step:
    if not lanes.enabled or (lanes.stack and not lanes.stack[-1]):
        return _enable(dice, lanes)
    return step("SFPCOMPC", "on a stack" if lanes.stack else "empty stack")


def _push(dice: Dice, lanes: Lanes) -> Step:
    if len(lanes.stack) == _STACK:
        return _pop(dice, lanes)
    lanes.stack.append(lanes.enabled)
    return step("SFPPUSHC")


def _pop(dice: Dice, lanes: Lanes) -> Step:
    if not lanes.stack:
        return _push(dice, lanes)
    lanes.enabled = lanes.stack.pop()
    return step("SFPPOPC")


def _set_sign(dice: Dice, lanes: Lanes) -> Step:
    mode = dice.below(2)
    fields = {"lreg_dest": _target(dice, lanes), "lreg_c": _source(dice)}
    return _one("SFPSETSGN", mode, imm12_math=dice.below(2) if mode else 0, **fields)


def _set_exponent(dice: Dice, lanes: Lanes) -> Step:
    mode = dice.below(3)
    fields = {"lreg_dest": _target(dice, lanes), "lreg_c": _source(dice)}
    return _one("SFPSETEXP", mode, imm12_math=dice.below(256) if mode == 1 else 0, **fields)


def _set_mantissa(dice: Dice, lanes: Lanes) -> Step:
    fields = {"lreg_dest": _target(dice, lanes), "lreg_c": _source(dice)}
    return _one("SFPSETMAN", dice.below(2), **fields)


def _move(dice: Dice, lanes: Lanes) -> Step:
    mode = dice.pick((0, 1, 2, 8))
    source = 9 if mode == 8 else _source(dice)
    return _one("SFPMOV", mode, lreg_dest=_target(dice, lanes), lreg_c=source)


def _round(dice: Dice, lanes: Lanes) -> Step:
    mode = dice.pick((1, 2, 3, 6, 7))
    fields = {"lreg_dest": _target(dice, lanes), "lreg_src_c": _source(dice)}
    return _one("SFP_STOCH_RND", mode, **fields)


def _cast(dice: Dice, lanes: Lanes) -> Step:
    fields = {"lreg_dest": _target(dice, lanes), "lreg_src_c": _source(dice)}
    return _one("SFPCAST", dice.pick((0, 3)), **fields)


def _swap(dice: Dice, lanes: Lanes) -> Step:
    limit = 4 if lanes.config & _INDEXED else 12
    fields = {"lreg_dest": dice.below(limit), "lreg_src_c": dice.below(limit)}
    form = f"LaneConfig {lanes.config:#x}" if lanes.config else ""
    mode = dice.pick((0, 1, 2, 3, 9))
    return step("SFPSWAP", f"mod {mode}", form, instr_mod1=mode, **fields)


def _config(dice: Dice, lanes: Lanes) -> Step:
    """All lanes on, then a constant from an LReg0 with the same value in all lanes, or lanes."""
    lanes.enabled = True
    words = [assemble("SFPENCC", instr_mod1=10, imm12_math=3)]
    if dice.chance(2):
        lanes.config = dice.pick((0, 0, 4, 0x100, 0x104))
        words.append(assemble("SFPCONFIG", config_dest=15, instr_mod1=1, imm16_math=lanes.config))
        return steps_of(words, ("SFPCONFIG", "LaneConfig", f"{lanes.config:#x}"))
    register = dice.between(11, 14)
    if register == 11 and dice.chance(2):
        words.append(assemble("SFPCONFIG", config_dest=11, instr_mod1=1))
        return steps_of(words, ("SFPCONFIG", "LReg11 default", ""))
    value = int(operands.mixed(dice, 1, operands.FP32)[0])
    words.append(assemble("SFPLOADI", instr_mod0=10, imm16=value & 0xFFFF))
    words.append(assemble("SFPLOADI", instr_mod0=8, imm16=value >> 16))
    words.append(assemble("SFPCONFIG", config_dest=register))
    return steps_of(words, ("SFPCONFIG", f"LReg{register}", ""))


def _table(dice: Dice, lanes: Lanes) -> Step:
    return step("SFPLUT", "mod 4", lreg_ind=_target(dice, lanes), instr_mod0=4)


def _table32(dice: Dice, lanes: Lanes) -> Step:
    return _one("SFPLUTFP32", 2, lreg_dest=_target(dice, lanes))


def _bare(mnemonic: str) -> Callable[[Dice, Lanes], Step]:
    def make(dice: Dice, lanes: Lanes) -> Step:
        return step(mnemonic)

    return make


_MAKERS: tuple[Callable[[Dice, Lanes], Step], ...] = (
    *(_product("SFPMAD", 0, 1, 2, 3),) * 3,
    *(_product("SFPADD", 0, 1, 2, 3), _product("SFPMUL", 0, 1), _product("SFPMUL24", 0, 1)),
    *(_immediate("SFPMULI"), _immediate("SFPADDI"), _load_immediate, _load_immediate),
    *(_transfer("SFPLOAD", _LOADS),) * 3,
    *(_transfer("SFPSTORE", _STORES),) * 2,
    *(_table, _table32, _divp2, _unary("SFPEXEXP", 0, 1, 2, 10), _unary("SFPEXMAN", 0, 1)),
    *(_iadd, _iadd, _shift, _shift2, _set_cc, _set_cc, _move, _unary("SFPABS", 0, 1)),
    *(_logic("SFPAND"), _logic("SFPOR"), _plain("SFPNOT"), _plain("SFPXOR")),
    *(_unary("SFPLZ", 0, 2, 4), _set_exponent, _set_mantissa, _set_sign, _push, _pop),
    *(_enable, _enable, _complement, _bare("SFPTRANSP"), _bare("SFPNOP"), _round, _cast),
    *(_config, _swap, _swap, _unary("SFPLE", 1, 8), _unary("SFPGT", 1, 8)),
    _unary("SFPARECIP", 0),
)
