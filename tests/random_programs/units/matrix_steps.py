"""One random matrix instruction at a time, in the forms that the golden model accepts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from random_programs.dice import Dice
from random_programs.plan import Step, step
from random_programs.units.counters import AddrMod, Counters

_DST, _SRC = 1024, 64
_NARROW = (1, 10, 26)  # Src formats with a 5-bit exponent
_POOLED = (4, 5, 6, 7)  # formats that GMPOOL takes
_MOVED = (1, 4, 5, 6, 7)  # formats that every move takes


@dataclass
class Math:
    """What a generator must know: formats of the banks, settings, counters."""

    a: int
    b: int
    wide: bool
    integer: bool
    keep_denormals: bool
    offset: int
    mods: Sequence[AddrMod]
    counters: Counters
    ones: bool

    @property
    def form(self) -> str:
        """Formats of SrcA and SrcB and the width of Dst, for coverage."""
        return f"{self.a & 31} x {self.b & 31} Dst{32 if self.wide else 16}"


Maker = Callable[[Dice, Math], Step | None]


def random_step(dice: Dice, math: Math) -> Step:
    """The next legal instruction; moves the counters along."""
    while True:
        made = dice.pick(_MAKERS)(dice, math)
        if made is not None:
            return made


def _mode(dice: Dice, math: Math) -> int:
    return dice.below(8) if dice.chance(2) else dice.pick((0, 0, 1))


def _apply(math: Math, mode: int) -> None:
    math.counters.apply(math.mods[mode])


def _dst(dice: Dice, math: Math, align: int, *, whole: bool = False) -> int | None:
    """A dst field; with `whole` field, counter and offset must not pass the end of Dst."""
    base = math.counters.d + math.offset
    if not whole:
        return align * dice.below(_DST // align)
    room = _DST - align - base
    return align * dice.below(room // align + 1) if room >= 0 else None


def _phase(math: Math) -> str:
    return f"phase {math.counters.phase}"


def _multiply(mnemonic: str, align: int, name: str) -> Maker:
    """MVMUL and GAPOOL."""

    def make(dice: Dice, math: Math) -> Step | None:
        if math.keep_denormals or 15 in (math.a, math.b):
            return None
        mode, phase = _mode(dice, math), _phase(math)
        dst = _dst(dice, math, align)
        assert dst is not None
        fields = {"dst": dst, name: mode, "instr_mod19": int(align == 4)}
        _apply(math, mode)
        return step(mnemonic, phase, math.form, **fields)

    return make


def _elementwise(mnemonic: str) -> Maker:
    def make(dice: Dice, math: Math) -> Step | None:
        dst = _dst(dice, math, 8, whole=True)
        multiply = mnemonic == "ELWMUL"
        if dst is None or (not multiply and math.counters.phase):
            return None
        mode, phase = _mode(dice, math), _phase(math)
        broadcast, accumulate = dice.below(4), 0 if multiply else dice.below(2)
        fields = {"instr_mod19": broadcast, "dest_accum_en": accumulate}
        _apply(math, mode)
        what = f"broadcast {broadcast} {phase if multiply else f'accumulate {accumulate}'}"
        return step(mnemonic, what, math.form, dst=dst, addr_mode=mode, **fields)

    return make


def _max_pool(dice: Dice, math: Math) -> Step | None:
    dst = _dst(dice, math, 4, whole=True)
    if not math.ones or math.integer or math.a not in _POOLED or dst is None:
        return None
    mode = _mode(dice, math)
    _apply(math, mode)
    return step("GMPOOL", "", math.form, dst=dst, pool_addr_mode=mode, instr_mod19=1)


def _row(dice: Dice, counter: int, align: int) -> int:
    """A src field of a move: field and counter together stay in the bank."""
    return align * dice.below((_SRC - counter - align) // align + 1)


def _move_a2d(dice: Dice, math: Math) -> Step | None:
    if math.integer or math.a not in (*_MOVED, 10, 26, 15):
        return None
    mode, counters = _mode(dice, math), math.counters
    low = int(math.a not in (*_NARROW, 4) and dice.chance(3))
    fields = {"dst": 8 * dice.below(128), "src": _row(dice, counters.a, 8), "dest_32b_lo": low}
    _apply(math, mode)
    what = "low half" if low else "rows"
    return step("MOVA2D", what, math.form, instr_mod=2, addr_mode=mode, **fields)


def _move_b2d(dice: Dice, math: Math) -> Step | None:
    if math.integer or math.b not in _MOVED:
        return None
    mode, kind = _mode(dice, math), dice.between(2, 5)
    align = 8 if kind & 2 else 4
    low = int(math.b not in (*_NARROW, 4) and dice.chance(3))
    fields = {"dst": align * dice.below(_DST // align), "dest_32b_lo": low}
    fields["src"] = _row(dice, math.counters.b, align)
    _apply(math, mode)
    what = f"mod {kind}" + (" low half" if low else "")
    return step("MOVB2D", what, math.form, movb2d_instr_mod=kind, addr_mode=mode, **fields)


def _from_dst(mnemonic: str) -> Maker:
    """MOVD2A and MOVD2B: the formats that a Dst of this width has."""

    def make(dice: Dice, math: Math) -> Step | None:
        to_b = mnemonic == "MOVD2B"
        form = math.b if to_b else math.a
        fits = form in (4, 5, 6, 7) if math.wide else form in (1, 5, 6, 7)
        if math.integer or not fits or (to_b and math.ones):
            return None
        mode, kind = _mode(dice, math), dice.pick((0, 2)) if to_b else 2
        counter = math.counters.b if to_b else math.counters.a
        low = int(to_b and math.wide and form != 4 and dice.chance(3))
        fields = {"dst": 4 * dice.below(256), "src": _row(dice, counter, 4), "instr_mod": kind}
        _apply(math, mode)
        what = f"mod {kind}" + (" low half" if low else "")
        return step(mnemonic, what, math.form, addr_mode=mode, dest_32b_lo=low, **fields)

    return make


def _move_b2a(dice: Dice, math: Math) -> Step | None:
    if (math.a in _NARROW) != (math.b in _NARROW):
        return None
    mode, counters = _mode(dice, math), math.counters
    fields = {"srca": _row(dice, counters.a, 4), "srcb": _row(dice, counters.b, 4)}
    _apply(math, mode)
    return step("MOVB2A", "rows", math.form, instr_mod=2, addr_mode=mode, **fields)


def _transpose(dice: Dice, math: Math) -> Step | None:
    return step("TRNSPSRCB", "", math.form)


def _zero_src(dice: Dice, math: Math) -> Step | None:
    if math.ones or not dice.chance(6):
        return None
    return step("ZEROSRC", "matrix bank", src_mask=dice.between(1, 3), write_mode=1)


def _zero_acc(dice: Dice, math: Math) -> Step | None:
    offset = math.offset + math.counters.d
    kind = dice.pick((0, 0, 1, 1, 1, 2, 3) if dice.chance(8) else (0, 1))
    mode = _mode(dice, math)
    fields = {"clear_mode": kind, "addr_mode": mode, "where": 0}
    wide = int(math.wide and kind == 1)
    if kind == 0:
        if math.integer or offset >= _DST - 1:
            return None
        fields["where"] = dice.below(_DST - offset)
    elif kind == 1:
        upper = bool(offset & (768 if wide else 512))
        blocks = 32 if wide else 64
        fields["where"] = dice.below(blocks // 2 if upper else blocks)
        fields["clear_zero_flags"] = int(wide and dice.chance(3))
    elif kind == 2:
        fields["where"] = dice.below(2)
    if kind < 2:
        _apply(math, mode)
    flags = " set valid" if fields.get("clear_zero_flags") else ""
    return step("ZEROACC", f"mode {kind}{flags}", math.form, use_32_bit_mode=wide, **fields)


def _set_rwc(dice: Dice, math: Math) -> Step | None:
    mask = dice.below(16)
    carriage = dice.below(8) & (mask & 7)
    b, d = 8 * dice.below(2), 8 * dice.below(2)
    math.counters.set(mask, carriage, b, d)
    return step("SETRWC", "", "", bit_mask=mask, rwc_cr=carriage, rwc_b=b, rwc_d=d)


def _increment_rwc(dice: Dice, math: Math) -> Step | None:
    carriage, b, d = 4 * dice.below(2), 8 * dice.below(2), 8 * dice.below(2)
    math.counters.increment(carriage, b, d)
    return step("INCRWC", "", "", rwc_cr=carriage, rwc_b=b, rwc_d=d)


_MAKERS: tuple[Maker, ...] = (
    *(_multiply("MVMUL", 8, "addr_mode"),) * 5,
    *(_multiply("GAPOOL", 4, "pool_addr_mode"),) * 2,
    *(_elementwise("ELWADD"), _elementwise("ELWSUB"), _elementwise("ELWMUL")) * 2,
    *(_max_pool, _max_pool, _max_pool, _move_a2d, _move_b2d, _from_dst("MOVD2A")),
    *(_from_dst("MOVD2B"), _move_b2a, _transpose, _zero_src, _zero_acc, _set_rwc),
    _increment_rwc,
)
