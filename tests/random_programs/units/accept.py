"""One instruction with random fields in a prepared state: who executes it, who refuses it."""

from collections.abc import Callable

from bhemu.oracle.libttsim import Case
from bhemu.tensix import config_fields as cf
from random_programs import operands
from random_programs.datapath import (
    BF16,
    COMPUTED,
    FILLED,
    INPUT,
    OUTPUT,
    SECOND,
    dump_dst,
    fill_dst,
    finish,
    image,
    packer,
    start_unpackers,
    unpacker,
)
from random_programs.dice import Dice
from random_programs.plan import INSTRUCTIONS, Blocks, Plan, Step, step
from random_programs.thread import Config, Thread

_SMALL = (0, 1, 2, 3, 4, 8, 16)
_TILE = 0x2000
_PACKED = 0x120000


def generate(seed: int, index: int) -> Plan:
    """One block of one step; every opcode comes round."""
    dice = Dice("accept", seed, index)
    names = sorted(INSTRUCTIONS)
    block = (_step(dice, names[index % len(names)]),)
    return Plan("accept", seed, index, (block,), probe(dice), 1)


def probe(dice: Dice) -> Callable[[Blocks], Case]:
    """What puts a block of thread 1 into the prepared state and dumps what it leaves."""
    dst = operands.mixed(dice, 8192, operands.FP32).astype("uint32").tobytes()
    tiles = operands.mixed(dice, _TILE, operands.BF16, operands.FINITE).astype("uint16").tobytes()

    def emit(chosen: Blocks) -> Case:
        return _emit(chosen, dst, tiles)

    return emit


def _step(dice: Dice, name: str) -> Step:
    """Most fields 0; the others small, at their largest, or anything."""
    fields = {}
    for one in INSTRUCTIONS[name].fields:
        kind = dice.below(6)
        if kind == 0:
            fields[one.name] = dice.below(one.max + 1)
        elif kind < 3:
            fields[one.name] = min(dice.pick(_SMALL), one.max)
        elif kind == 3 and dice.chance(4):
            fields[one.name] = one.max
    return step(name, "", "", **fields)


def _emit(blocks: Blocks, dst: bytes, tiles: bytes) -> Case:
    threads = [Thread(i) for i in range(3)]
    feeder, middle, last = threads
    middle.push("SEMINIT", sem_sel=1, init_value=1, max_value=3)
    middle.push("ZEROSRC", src_mask=3, bank_mask=1)
    middle.push("SETRWC", bit_mask=15)
    middle.push("SETADCXX", cnt_set_mask=7, x_end2=15)
    middle.signal(FILLED + 0x100)
    feeder.wait(FILLED + 0x100)
    _feed(feeder)
    feeder.signal(FILLED)
    middle.wait(FILLED)
    for one in blocks[0]:
        for word in one.words:
            middle.push_word(word)
    middle.push("SETRWC", bit_mask=15)
    for lreg in range(8):
        fields = {"lreg_ind": lreg, "instr_mod0": 4, "dest_reg_addr": 4 * lreg}
        middle.push("SFPSTORE", **fields)
    dump = middle.gpr_dump()
    middle.dump_to(OUTPUT + 0x10000)
    middle.call(dump)
    middle.signal(COMPUTED)
    last.wait(COMPUTED)
    dump_dst(last, OUTPUT)
    for thread in threads:
        finish(thread)
    data = {INPUT: dst, SECOND: tiles}
    regions = (("Dst", OUTPUT, 0x8000), ("GPRs", OUTPUT + 0x10000, 256))
    return Case(image(threads, data), regions=regions, name="accept")


def _feed(thread: Thread) -> None:
    """Dst full, both Src banks valid with bf16, unpackers and packer configured."""
    fill_dst(thread, INPUT)
    config = Config()
    for which in range(2):
        unpacker(config, which, BF16, BF16, SECOND + _TILE * which)
    packer(config, BF16, BF16, _PACKED, wide=False)
    config.set(cf.ALU_FORMAT_SPEC_REG0_SrcA, BF16).set(cf.ALU_FORMAT_SPEC_REG1_SrcB, BF16)
    thread.configure(config)
    start_unpackers(thread, to_dst=False)
    for which in range(2):
        fields = {"last": 1, "ovrd_thread_id": 1, "set_dat_valid": 1}
        thread.push("UNPACR", unpack_block_selection=which, **fields)
