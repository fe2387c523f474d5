"""Unpacks tiles of every format to SrcA, SrcB or Dst with random geometry, moved on to Dst."""

from collections.abc import Sequence

from bhemu.oracle.libttsim import Case
from bhemu.tensix import config_fields as cf
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.insn import assemble
from bhemu.tensix.units.unpack.unpacr import UNPACR
from random_programs.datapath import COMPUTED, CONFIGURED, INPUT, OUTPUT, dump_dst, finish, image
from random_programs.dice import Dice
from random_programs.plan import Blocks, Plan, Step, step, steps_of
from random_programs.thread import Config, Thread
from random_programs.units.unpack_source import ROOM, Source, contents, random_source

TILES, ROWS = 8, 64  # a tile fills 64 rows of 32 bits or 64 of 128 rows of 16 bits
_TF32 = 4


def generate(seed: int, index: int) -> Plan:
    """Eight tiles; in two programs of three the cells are read back with all their 19 bits."""
    dice = Dice("unpack", seed, index)
    exact = index % 3 != 2
    sources = [random_source(dice, exact) for _ in range(TILES)]
    blocks = tuple(_block(dice, source, number) for number, source in enumerate(sources))
    data = b"".join(contents(dice, source) for source in sources)
    keep_denormals = dice.below(2)

    def emit(chosen: Blocks) -> Case:
        return _emit(chosen, sources, data, exact, keep_denormals)

    def explain(at: int) -> str:
        raw, column = divmod((at - OUTPUT) // 2, 16)
        number = raw // 128
        return f"block {number} ({sources[number].form}) raw row {raw % 128} column {column}"

    results = 1024 * TILES
    return Plan("unpack", seed, index, blocks, emit, results, explain)


def _block(dice: Dice, source: Source, number: int) -> tuple[Step, ...]:
    """UNPACRs of thread 0 (the last one sets valid), then the moves of thread 1."""
    pulls = dice.between(1, 3)
    steps = [unpack_step(dice, source, i == 0, i == pulls - 1) for i in range(pulls)]
    return (*steps, *moves(dice, source, number))


def unpack_step(dice: Dice, source: Source, first_pull: bool, last: bool) -> Step:
    """Counters (all of them before the first pull), then one UNPACR."""
    unit = 1 << source.which
    first, count = source.span(dice)
    # Counters start from nothing: X0 to X1, then Y and Z of both channels.
    words = [assemble("SETADCXX", cnt_set_mask=unit, x_start=first, x_end2=first + count - 1)]
    for channel, dimension, limit in ((0, 1, 4), (0, 2, 4), (1, 1, 3), (1, 2, 2)):
        value = dice.below(limit) if dice.chance(2) else 0
        fields = {"dimension_index": dimension, "channel_index": channel, "value": value}
        if first_pull or dice.chance(2):
            words.append(assemble("SETADC", cnt_set_mask=unit, **fields))
    fields = {
        "last": 1,
        "ovrd_thread_id": 1,
        "unpack_block_selection": source.which,
        "set_dat_valid": int(last and not source.to_dst),
        "addr_mode": dice.below(256) if dice.chance(2) else 0,
    }
    words.append(assemble("UNPACR", **fields))
    return steps_of(words, ("UNPACR", source.mode, source.form))


def moves(dice: Dice, source: Source, number: int) -> list[Step]:
    """Src rows to Dst, 8 at a time, or 4 for SrcB."""
    if source.to_dst:
        return []
    mnemonic, rows = ("MOVB2D", 4) if source.which else ("MOVA2D", 8)
    wide = source.exact or source.target == _TF32
    base = ROWS * number if wide else 2 * ROWS * number
    steps = []
    for row in range(0, ROWS, rows):
        mod = {"movb2d_instr_mod": 4} if source.which else {"instr_mod": 2}
        form = f"format {source.target}" if not source.exact else "format 4"
        steps.append(step(mnemonic, "rows", form, dst=base + row, src=row, **mod))
    return steps


def _emit(
    blocks: Blocks, sources: list[Source], data: bytes, exact: bool, keep_denormals: int
) -> Case:
    threads = [Thread(i) for i in range(3)]
    prepare(threads, exact, keep_denormals)
    flags = run_blocks(threads, sources, blocks)
    for flag in flags[-1:]:
        threads[1].wait(flag)
    threads[1].signal(COMPUTED)
    threads[2].wait(COMPUTED)
    dump_dst(threads[2], OUTPUT)
    for thread in threads:
        finish(thread)
    regions = (("Dst", OUTPUT, 0x8000),)
    return Case(image(threads, {INPUT: data}), regions=regions, name="unpack")


def prepare(threads: list[Thread], exact: bool, keep_denormals: int) -> None:
    """Formats of the moves: as unpacked, or (exact) all 19 bits of a cell to a 32-bit datum."""
    config = Config().set(cf.ALU_ACC_CTRL_Zero_Flag_disabled_src, keep_denormals)
    threads[1].configure(config)
    implied = int(exact)
    fields = {tf.DISABLE_IMPLIED_SRCA_FMT_Base: implied, tf.DISABLE_IMPLIED_SRCB_FMT_Base: implied}
    threads[1].setc16(fields)
    threads[1].push("ZEROSRC", src_mask=3, bank_mask=1)
    threads[1].push("SETRWC", bit_mask=15)
    threads[1].signal(CONFIGURED)
    threads[0].wait(CONFIGURED)


def run_blocks(threads: list[Thread], sources: Sequence[Source], blocks: Blocks) -> list[int]:
    """Thread 0 configures and unpacks each tile, thread 1 moves it; the flags they set."""
    flags: list[int] = []
    for number, (source, block) in enumerate(zip(sources, blocks, strict=True)):
        if block:
            # A move reads Config when it executes: thread 0 may change it only behind the moves.
            for flag in flags[-1:]:
                threads[0].wait(flag)
            flags.append(0x210 + 4 * number)
            _run_block(threads, source, number, block)
    return flags


def _run_block(threads: list[Thread], source: Source, number: int, block: Sequence[Step]) -> None:
    feeder, mover = threads[:2]
    flag = 0x210 + 4 * number
    feeder.configure(source.config(INPUT + ROOM * number, number))
    fields = {
        tf.SRCA_SET_SetOvrdWithAddr: int(not source.to_dst),
        tf.UNPACK_MISC_CFG_CfgContextOffset_0: source.context,
        tf.UNPACK_MISC_CFG_CfgContextOffset_1: source.context,
    }
    feeder.setc16(fields)
    feeder.push("SETADCXY", bit_mask=15, cnt_set_mask=3)
    feeder.push("SETADCZW", bit_mask=15, cnt_set_mask=3)
    valid = 0
    for one in block:
        for word in one.words:
            (feeder if one.key[0] == "UNPACR" else mover).push_word(word)
        if one.key[0] == "UNPACR" and UNPACR.operands(one.words[-1])["set_dat_valid"]:
            valid = 1 << source.which
            mover.push("STALLWAIT", stall_res=0x40, wait_res=0x80 << source.which)
    if valid:
        mover.push("SETRWC", bit_mask=15, clear_ab_vld=valid)
    if source.to_dst or not valid:
        feeder.signal(flag)
    else:
        mover.signal(flag)
