"""Semaphores, mutexes and wait instructions on three threads, and a token that goes round."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from bhemu.memmap import PC_BUF_BASE
from bhemu.oracle.libttsim import Case
from bhemu.tensix.insn import assemble
from random_programs.datapath import CONFIGURED, OUTPUT, finish, image
from random_programs.dice import Dice
from random_programs.plan import Blocks, Plan, Step, step, steps_of
from random_programs.thread import Thread
from random_programs.units.scalar import half

STEPS, HOPS = 500, 40  # steps of a thread; how often the token is handed on
OWN = ((0,), (1, 2), (3, 4))  # semaphores that only one thread uses
RING = (5, 6, 7)  # posted to hand the token to thread 0, 1, 2
_WORD = 76  # the Config word that the holder of the token changes
_STALL_ANY = 0x1FF
_DUMP = 0x10000
_SEMAPHORES = PC_BUF_BASE + 0x20
# STALLWAIT conditions that hold when the thread runs alone: units idle, TRISC_CFG, SFPU.
_IDLE = (0x01, 0x02, 0x04, 0x08, 0x10, 0x400, 0x800)


@dataclass
class Semaphores:
    """Values and maxima of one thread's semaphores, so that only legal operations are made."""

    value: dict[int, int] = field(default_factory=dict)
    most: dict[int, int] = field(default_factory=dict)


def generate(seed: int, index: int) -> Plan:
    """A block for each thread, and the hops of the token."""
    dice = Dice("sync", seed, index)
    blocks = []
    for thread in range(3):
        known = Semaphores(dict.fromkeys(OWN[thread], 0), dict.fromkeys(OWN[thread], 15))
        blocks.append(tuple(_step(dice, thread, known) for _ in range(STEPS)))
    holders = [dice.below(3) for _ in range(HOPS)]
    blocks.append(tuple(_hop(dice) for _ in holders))
    results = sum((STEPS + 1) * len(own) for own in OWN) + 3 * 64

    def emit(chosen: Blocks) -> Case:
        return _emit(chosen, holders)

    return Plan("sync", seed, index, tuple(blocks), emit, results, explain)


def _step(dice: Dice, thread: int, known: Semaphores) -> Step:
    which = dice.pick(OWN[thread])
    value, most = known.value[which], known.most[which]
    kind = dice.below(8)
    if kind == 0:
        known.most[which] = dice.below(16)
        known.value[which] = dice.below(known.most[which] + 1)
        fields = {"init_value": known.value[which], "max_value": known.most[which]}
        return step("SEMINIT", sem_sel=1 << which, **fields)
    if kind < 4 and value < most:
        known.value[which] += 1
        return step("SEMPOST", sem_sel=1 << which)
    if kind < 6 and value > 0:
        known.value[which] -= 1
        return step("SEMGET", sem_sel=1 << which)
    if kind == 6:
        condition = 1 if value else 2
        if condition == 1 or value < most:
            stall = 1 << dice.below(9)
            fields = {"wait_sem_cond": condition, "stall_res": stall}
            return step("SEMWAIT", f"condition {condition}", sem_sel=1 << which, **fields)
    if kind == 7:
        return steps_of([assemble(name, mutex_index=0) for name in ("ATGETM", "ATRELM")])
    wait = dice.pick(_IDLE) | dice.pick(_IDLE)
    return step("STALLWAIT", wait_res=wait, stall_res=dice.between(1, _STALL_ANY))


def _hop(dice: Dice) -> Step:
    """What the holder does: word = (word + a) * b, by its own GPRs."""
    words = [assemble("RDCFG", cfg_reg=_WORD, gpr_address=8)]
    for register in (9, 10):
        words.append(assemble("SETDMAREG", **half(2 * register, dice.below(1 << 16) | 1)))
        words.append(assemble("SETDMAREG", **half(2 * register + 1, 0)))
    for name, register in (("ADDDMAREG", 9), ("MULDMAREG", 10)):
        fields = {"op_a_reg_index": 8, "op_b_reg_index": register, "result_reg_index": 8}
        words.append(assemble(name, **fields))
    words.append(assemble("WRCFG", cfg_reg=_WORD, gpr_address=8))
    return steps_of(words, ("WRCFG", "holding a token", ""))


def _emit(blocks: Blocks, holders: list[int]) -> Case:
    threads = [Thread(i) for i in range(3)]
    _start(threads)
    for thread, block in zip(threads, blocks[:3], strict=True):
        addresses = [_SEMAPHORES + 4 * s for s in OWN[thread.index]]
        dump = thread.words_dump(addresses)
        thread.dump_to(OUTPUT + _DUMP * thread.index)
        for one in block:
            for word in one.words:
                thread.push_word(word)
            thread.call(dump)
        thread.call(dump)
    _hand_round(threads, blocks[3], holders)
    for thread in threads:
        dump = thread.gpr_dump()
        thread.dump_to(OUTPUT + _DUMP * thread.index + 0x8000)
        thread.call(dump)
        finish(thread)
    return Case(image(threads, {}), regions=(("semaphores", OUTPUT, 3 * _DUMP),), name="sync")


def _start(threads: list[Thread]) -> None:
    first = threads[0]
    for s in range(8):
        first.push("SEMINIT", sem_sel=1 << s, max_value=15)
    for high in range(2):
        first.push("SETDMAREG", **half(16 + high, 0))
    first.push("WRCFG", cfg_reg=_WORD, gpr_address=8)
    for thread in threads:
        for register in range(128):
            thread.push("SETDMAREG", **half(register, 0))
    first.signal(CONFIGURED)
    for thread in threads[1:]:
        thread.wait(CONFIGURED)


def _hand_round(threads: list[Thread], hops: Sequence[Step], holders: list[int]) -> None:
    for i, hop in enumerate(hops):
        thread = threads[holders[i]]
        if i > 0:
            token = 1 << RING[thread.index]
            thread.push("SEMWAIT", sem_sel=token, wait_sem_cond=1, stall_res=_STALL_ANY)
            thread.push("SEMGET", sem_sel=token)
        for word in hop.words:
            thread.push_word(word)
        # The write must be in place before the next holder reads: TRISC_CFG is C10.
        thread.push("STALLWAIT", stall_res=_STALL_ANY, wait_res=1 << 10)
        if i + 1 < len(hops):
            thread.push("SEMPOST", sem_sel=1 << RING[holders[i + 1]])


def explain(at: int) -> str:
    """Thread, step and semaphore of an address."""
    thread, rest = divmod(at - OUTPUT, _DUMP)
    if rest >= 0x8000:
        return f"T{thread} GPR {(rest - 0x8000) // 4} at the end"
    done, which = divmod(rest // 4, len(OWN[thread]))
    return f"semaphore {OWN[thread][which]} after step {done} of T{thread}"
