"""MOP, MOP_CFG and REPLAY on three threads, with order-sensitive GPR arithmetic in their slots."""

from dataclasses import dataclass

from bhemu.memmap import MOP_CFG_BASE
from bhemu.oracle.libttsim import Case
from bhemu.tensix.insn import assemble
from random_programs import gpr_dumps
from random_programs.datapath import finish, image
from random_programs.dice import Dice
from random_programs.plan import Blocks, Plan, Step, step, steps_of
from random_programs.thread import Thread
from random_programs.units.scalar import half

STEPS, EVERY = 240, 4
_SLOTS = 32  # words of the replay buffer
_LONGEST = 300  # words of an expansion: ttsim's FIFO holds 511
_NOP = assemble("NOP")


@dataclass(frozen=True)
class MopStep(Step):
    """A MOP and the nine words of its configuration, stored before it."""

    config: tuple[int, ...] = ()


def generate(seed: int, index: int) -> Plan:
    """A block for each thread."""
    dice = Dice("front", seed, index)
    blocks = tuple(tuple(_step(dice) for _ in range(STEPS)) for _ in range(3))
    buffers = [[_word(dice) for _ in range(_SLOTS)] for _ in range(3)]

    def emit(chosen: Blocks) -> Case:
        return _emit(chosen, buffers)

    return Plan("front", seed, index, blocks, emit, 3 * 64 * (STEPS // EVERY + 1), explain)


def _word(dice: Dice) -> int:
    """An operation on GPRs 0-15 whose place in the order matters."""
    kind = dice.below(8)
    if kind == 0:
        return _NOP if dice.chance(2) else assemble("DMANOP")
    if kind < 3:
        return assemble("SETDMAREG", **half(dice.below(32), dice.below(1 << 16)))
    fields = {
        "op_a_reg_index": dice.below(16),
        "op_b_reg_index": dice.below(16),
        "result_reg_index": dice.below(16),
    }
    return assemble("ADDDMAREG" if kind < 6 else "MULDMAREG", **fields)


def _step(dice: Dice) -> Step:
    kind = dice.below(8)
    if kind < 2:
        return steps_of([_word(dice)])
    if kind < 4:
        return _replay(dice)
    if kind == 4:
        return step("MOP_CFG", zmask_hi16=dice.below(1 << 16))
    return _template_1(dice) if dice.chance(2) else _template_0(dice)


def _replay(dice: Dice) -> Step:
    """Record, record and execute, or replay; ranges wrap at the end of the buffer."""
    start, length = dice.below(_SLOTS), dice.between(1, _SLOTS)
    fields = {"start_idx": start, "len": length}
    wraps = "wrapping" if start + length > _SLOTS else ""
    if dice.chance(2):
        return step("REPLAY", "execute", wraps, **fields)
    execute = dice.below(2)
    first = assemble("REPLAY", load_mode=1, execute_while_loading=execute, **fields)
    words = (first, *(_word(dice) for _ in range(length)))
    return Step(words, ("REPLAY", "load and execute" if execute else "load", wraps))


def _slot(dice: Dice) -> int:
    """A word of a MOP's slot; now and then it replays."""
    if not dice.chance(8):
        return _word(dice)
    return assemble("REPLAY", start_idx=dice.below(_SLOTS), len=dice.between(1, 4))


def _template_0(dice: Dice) -> Step:
    flags, count = dice.below(4), dice.below(32)
    config = (0, flags, *(_slot(dice) for _ in range(7)))
    word = assemble("MOP", loop_count=count, zmask_lo16_or_loop_count=dice.below(1 << 16))
    return MopStep((word,), ("MOP", "template 0", f"flags {flags}"), config)


def _template_1(dice: Dice) -> Step:
    inner = dice.pick((1, 2, 3, 8, 30, 64))
    outer = dice.between(1, min(32, max(_LONGEST // (8 * inner + 12), 1)))
    optional = [_NOP if dice.chance(3) else _slot(dice) for _ in range(4)]
    start, end0, end1, other = optional
    loop = _slot(dice) if inner < 30 else _word(dice)
    config = (outer, inner, start, end0, end1, loop, other, _slot(dice), _slot(dice))
    used = [
        name
        for name, w in zip(("start", "end", "end 2", "two"), optional, strict=True)
        if w != _NOP
    ]
    word = assemble("MOP", mop_type=1)
    return MopStep((word,), ("MOP", "template 1", ", ".join(used)), config)


def _emit(blocks: Blocks, buffers: list[list[int]]) -> Case:
    threads = [Thread(i) for i in range(3)]
    regions = []
    for thread, block, buffer in zip(threads, blocks, buffers, strict=True):
        dump = thread.gpr_dump()
        at = gpr_dumps.place(thread.index)
        thread.dump_to(at)
        for register in range(128):
            thread.push("SETDMAREG", **half(register, 0x1357 * register & 0xFFFF))
        thread.push("MOP_CFG", zmask_hi16=0)
        for word in (assemble("REPLAY", load_mode=1, len=_SLOTS), *buffer):
            thread.push_word(word)
        for number, one in enumerate(block, 1):
            if isinstance(one, MopStep):
                thread.sync()
                for i, word in enumerate(one.config):
                    thread.store(MOP_CFG_BASE + 4 * i, word)
            for word in one.words:
                thread.push_word(word)
            if number % EVERY == 0:
                thread.call(dump)
        thread.call(dump)
        finish(thread)
        regions.append((f"GPRs of T{thread.index}", at, gpr_dumps.ROOM))
    return Case(image(threads, {}), regions=regions, name="front")


def explain(at: int) -> str:
    """Thread, dump and GPR of an address."""
    return gpr_dumps.where(at, EVERY)
