"""Random arithmetic on the GPRs of all three threads, dumped every few instructions."""

from bhemu.oracle.libttsim import Case
from bhemu.tensix.insn import assemble
from random_programs import gpr_dumps
from random_programs.datapath import finish, image
from random_programs.dice import Dice
from random_programs.plan import Blocks, Plan, Step, step, steps_of
from random_programs.thread import Thread

STEPS, EVERY = 2400, 24  # instructions of a thread; a dump of its 64 GPRs after each EVERY
_EDGES = (0, 1, 0x7FFF, 0x8000, 0xFFFF, 0x00FF, 0xFF00)


def generate(seed: int, index: int) -> Plan:
    """A block for each thread."""
    dice = Dice("scalar", seed, index)
    blocks = tuple(tuple(_step(dice) for _ in range(STEPS)) for _ in range(3))
    results = 3 * 64 * (STEPS // EVERY + 1)
    return Plan("scalar", seed, index, blocks, _emit, results, explain)


def _step(dice: Dice) -> Step:
    kind = dice.below(8)
    if kind < 3:
        value = dice.pick(_EDGES) if dice.chance(3) else dice.below(1 << 16)
        return step("SETDMAREG", "16 bits", **half(dice.below(128), value))
    if kind == 3 and dice.chance(4):
        return step("DMANOP")
    if kind == 4:  # a value that depends on the low half only, times one that has both
        register, other = dice.below(64), dice.below(64)
        words = [
            assemble("SETDMAREG", **half(2 * register + 1, dice.below(1 << 16))),
            assemble(
                "MULDMAREG",
                op_a_reg_index=register,
                op_b_reg_index=other,
                result_reg_index=dice.below(64),
            ),
        ]
        return steps_of(words)
    mnemonic = "ADDDMAREG" if kind < 7 else "MULDMAREG"
    return step(
        mnemonic,
        "registers",
        op_a_reg_index=dice.below(64),
        op_b_reg_index=dice.below(64),
        result_reg_index=dice.below(64),
    )


def half(index: int, value: int) -> dict[str, int]:
    """Fields of SETDMAREG: 16 bits into a half register (index: 2 * GPR + high)."""
    return {
        "reg_index_16b": index,
        "payload_sig_sel": value & 0x3FFF,
        "payload_sig_sel_size": value >> 14,
    }


def _emit(blocks: Blocks) -> Case:
    threads = [Thread(i) for i in range(3)]
    regions = []
    for thread, block in zip(threads, blocks, strict=True):
        dump = thread.gpr_dump()
        at = gpr_dumps.place(thread.index)
        thread.dump_to(at)
        for register in range(64):  # what GPRs hold at power-up is nobody's promise
            for high in range(2):
                value = 0x1111 * (register % 16) ^ 0x8001 * high
                thread.push("SETDMAREG", **half(2 * register + high, value & 0xFFFF))
        for number, one in enumerate(block, 1):
            for word in one.words:
                thread.push_word(word)
            if number % EVERY == 0:
                thread.call(dump)
        thread.call(dump)
        finish(thread)
        regions.append((f"GPRs of T{thread.index}", at, gpr_dumps.ROOM))
    return Case(image(threads, {}), regions=regions, name="scalar")


def explain(at: int) -> str:
    """Thread, dump and GPR of an address."""
    return gpr_dumps.where(at, EVERY)
