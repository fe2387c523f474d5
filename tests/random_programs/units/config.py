"""Random writes of Config words by every instruction that writes them, read back each time."""

from bhemu.memmap import TENSIX_CFG_BASE
from bhemu.oracle.libttsim import Case
from bhemu.tensix import config_fields
from bhemu.tensix.config_fields import Field
from bhemu.tensix.insn import assemble
from random_programs.datapath import OUTPUT, finish, image
from random_programs.dice import Dice
from random_programs.plan import Blocks, Plan, Step, step, steps_of
from random_programs.thread import Thread
from random_programs.units.scalar import half

STEPS, EVERY = 700, 7
READABLE = (
    *(0, 1, 2, 3, 12, 13, 14, 15, 17, 18, 24, 28, 56, 57, 59, 64, 65, 66, 67, 68, 69, 70, 71),
    *(72, 73, 74, 75, 76, 77, 84, 86, 112, 113, 114, 115, 119, 120, 121, 122, 123, 124, 125, 220),
)
"""The 43 words that ttsim lets a core read."""
WRITABLE = tuple(w for w in READABLE if w not in (66, 67, 74, 75, 114, 115, 122, 123))
_QUADS = (0, 12, 68)  # aligned groups of four that ttsim takes whole
_SCRATCH = (209, 210, 211)
_FORBIDDEN = {0: 0x4200, 1: 0x7FFF, 119: 0xFFBFFFFF}  # overrides, stochastic rounding, packer 1
_PLAIN = (76, 77, 124, 125, 12, 13, 14, 15, 69)  # words of which every bit is a field's
_GPRS = 64
_COUNT = len(READABLE)


def fields_mask(word: int) -> int:
    """Bits of a Config word that belong to a field."""
    mask = 0
    for one in vars(config_fields).values():
        if isinstance(one, Field) and one.word == word:
            mask |= one.mask << one.shift
    # Words 65 and 113 are the second words of the tile descriptors.
    return 0xFFFFFFFF if word in (65, 113) else mask


ALLOWED = {word: fields_mask(word) & ~_FORBIDDEN.get(word, 0) for word in WRITABLE}


def generate(seed: int, index: int) -> Plan:
    """One block, on thread 0."""
    dice = Dice("config", seed, index)
    block = tuple(_step(dice) for _ in range(STEPS))
    results = _COUNT * (STEPS // EVERY + 1) + _GPRS
    return Plan("config", seed, index, (block,), _emit, results, explain)


def _value(dice: Dice) -> int:
    return dice.pick((0, 0xFFFFFFFF, 0x80000001)) if dice.chance(6) else dice.below(1 << 32)


def _load(register: int, value: int) -> list[int]:
    return [
        assemble("SETDMAREG", **half(2 * register, value & 0xFFFF)),
        assemble("SETDMAREG", **half(2 * register + 1, value >> 16)),
    ]


def _write(dice: Dice) -> Step:
    word, register = dice.pick(WRITABLE), dice.below(_GPRS)
    words = _load(register, _value(dice) & ALLOWED[word])
    words.append(assemble("WRCFG", cfg_reg=word, gpr_address=register))
    return steps_of(words, ("WRCFG", "32 bits", ""))


def _write_four(dice: Dice) -> Step:
    first, register = dice.pick(_QUADS), 4 * dice.below(_GPRS // 4)
    words = []
    for i in range(4):
        words += _load(register + i, _value(dice) & ALLOWED[first + i])
    words.append(assemble("WRCFG", cfg_reg=first, gpr_address=register, wr128b=1))
    return steps_of(words, ("WRCFG", "128 bits", ""))


def _masked(dice: Dice) -> Step:
    byte, word = dice.below(4), dice.pick(WRITABLE)
    mask = dice.below(256) & ALLOWED[word] >> 8 * byte & 0xFF
    return step(f"RMWCIB{byte}", cfg_reg_addr=word, data=dice.below(256), mask=mask)


def _shift_mask(dice: Dice) -> Step:
    scratch, register, word = dice.below(4), dice.below(_GPRS), dice.pick(_PLAIN)
    words = []
    if scratch < 3:
        words = _load(register, _value(dice))
        words.append(assemble("WRCFG", cfg_reg=_SCRATCH[scratch], gpr_address=register))
    fields = {"mask_width": 31, "operation": 3, "disable_mask_on_old_val": 1}
    words.append(assemble("CFGSHIFTMASK", cfg_reg=word, scratch_sel=scratch, **fields))
    return steps_of(words, ("CFGSHIFTMASK", "add", f"scratch {scratch}"))


def _step(dice: Dice) -> Step:
    kind = dice.below(16)
    if kind < 4:
        return _write(dice)
    if kind < 5:
        return _write_four(dice)
    if kind < 10:
        return _masked(dice)
    if kind < 12:
        return _shift_mask(dice)
    if kind == 12 and dice.chance(3):
        return step("SETC16", "CFG_STATE_ID", setc16_reg=0, setc16_value=dice.below(2))
    return step("RDCFG", cfg_reg=dice.pick(READABLE), gpr_address=dice.below(_GPRS))


def _emit(blocks: Blocks) -> Case:
    threads = [Thread(i) for i in range(3)]
    first = threads[0]
    dump = first.words_dump([TENSIX_CFG_BASE + 4 * word for word in READABLE])
    registers = first.gpr_dump()
    first.dump_to(OUTPUT)
    for register in range(_GPRS):
        for word in _load(register, 0):
            first.push_word(word)
    for state in (1, 0):  # every word of both banks is written first
        first.push("SETC16", setc16_reg=0, setc16_value=state)
        for word in (*WRITABLE, *_SCRATCH):
            first.push("WRCFG", cfg_reg=word, gpr_address=0)
    for number, one in enumerate(blocks[0], 1):
        for word in one.words:
            first.push_word(word)
        if number % EVERY == 0:
            first.call(dump)
    first.call(dump)
    first.call(registers)
    for thread in threads:
        finish(thread)
    regions = (("Config words", OUTPUT, 0x10000),)
    return Case(image(threads, {}), regions=regions, name="config")


def explain(at: int) -> str:
    """Dump and Config word of an address."""
    dump, i = divmod((at - OUTPUT) // 4, _COUNT)
    if dump > STEPS // EVERY:
        return f"GPR {(at - OUTPUT) // 4 - _COUNT * (STEPS // EVERY + 1)} at the end"
    return f"Config word {READABLE[i]} after {(dump + 1) * EVERY} instructions"
