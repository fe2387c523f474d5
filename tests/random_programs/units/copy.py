"""Whole copies: L1 to Src or Dst, on to Dst, back to L1, for every pair of formats."""

from collections.abc import Sequence
from dataclasses import replace

from bhemu.oracle.libttsim import Case
from bhemu.tensix.insn import assemble
from random_programs.datapath import COMPUTED, INPUT, finish, image
from random_programs.dice import Dice
from random_programs.plan import Blocks, Plan, Step, step, steps_of
from random_programs.thread import Thread
from random_programs.units.pack import BRAIN, HALF, WIDE, Variant, configure
from random_programs.units.unpack import ROWS, TILES, moves, prepare, run_blocks
from random_programs.units.unpack_source import E4M3, FP8, TO_DST, Source, contents

OUT, ROOM = 0x80000, 0x1400  # packed tile: where the first goes, bytes of each
_PACRS = 16
KINDS = (
    ("32-bit", (*TO_DST, (0, 4)), WIDE),
    ("fp16", ((0, 1), (1, 1), (FP8, FP8), (E4M3, E4M3)), HALF),
    ("bf16", ((0, 5), (5, 5), (6, 6), (7, 7), (15, 15), (9, 9)), BRAIN),
)
"""Cells of Dst, pairs that unpack to them, pairs that pack from them."""
_SRC_A_ONLY = (15, FP8, E4M3)  # formats that MOVB2D does not take


def generate(seed: int, index: int) -> Plan:
    """Eight tiles of random formats of one kind, each packed in every format of the kind."""
    dice = Dice("copy", seed, index)
    kind, incoming, outgoing = KINDS[index % len(KINDS)]
    sources = [_source(dice, kind, incoming[i % len(incoming)]) for i in range(TILES)]
    variants = [[_variant(kind, pair, number) for pair in outgoing] for number in range(TILES)]
    blocks = tuple(
        _block(dice, source, number, variants[number]) for number, source in enumerate(sources)
    )
    data = b"".join(contents(dice, source) for source in sources)
    keep_denormals = dice.below(2)

    def emit(chosen: Blocks) -> Case:
        return _emit(chosen, sources, variants, data, keep_denormals)

    def explain(at: int) -> str:
        number, which = divmod((at - OUT) // ROOM, len(outgoing))
        pair = outgoing[which]
        where = f"{pair[0]} -> {pair[1]} byte {(at - OUT) % ROOM:#x}"
        return f"block {number} ({sources[number].form}) packed {where}"

    results = TILES * len(outgoing) * 16 * ROWS
    return Plan("copy", seed, index, blocks, emit, results, explain)


def _source(dice: Dice, kind: str, pair: tuple[int, int]) -> Source:
    """A whole tile without special geometry."""
    to_dst = kind == "32-bit" and (pair != (0, 4) or bool(dice.below(2)))
    which = 0 if to_dst or pair[1] in _SRC_A_ONLY else dice.below(2)
    return Source(
        which=which,
        to_dst=to_dst,
        source=pair[0],
        target=pair[1],
        x=256,
        y=4,
        z=1,
        haloize=False,
        tileize=0,
        forced=None,
        context=0,
        exact=False,
        row=0,
        strides=(0, 0),
        add_counters=False,
    )


def _variant(kind: str, pair: tuple[int, int], number: int) -> Variant:
    plain = Variant(
        kind=kind,
        pair=pair,
        relu=0,
        threshold=0,
        select=0,
        width=16,
        first=ROWS * number if kind == "32-bit" else 2 * ROWS * number,
        unsigned=False,
        masks=(0xFFFF, 0xFFFF),
        mapping=0,
        reads=16,
        accumulate=False,
        stride=0,
    )
    return replace(plain, unsigned=pair[0] == 14 and bool(number & 1))


def _block(
    dice: Dice, source: Source, number: int, variants: Sequence[Variant]
) -> tuple[Step, ...]:
    words = [
        assemble("SETADCXX", cnt_set_mask=1 << source.which, x_end2=16 * ROWS - 1),
        assemble(
            "UNPACR",
            last=1,
            ovrd_thread_id=1,
            unpack_block_selection=source.which,
            set_dat_valid=int(not source.to_dst),
        ),
    ]
    steps = [steps_of(words, ("UNPACR", "", source.form)), *moves(dice, source, number)]
    for variant in variants:
        form = f"{variant.kind} {variant.pair[0]} -> {variant.pair[1]}"
        for i in range(_PACRS):
            last = int(i == _PACRS - 1)
            steps.append(step("PACR", f"copy of {source.form}", form, last=last))
    return tuple(steps)


def _emit(
    blocks: Blocks,
    sources: Sequence[Source],
    variants: Sequence[Sequence[Variant]],
    data: bytes,
    keep_denormals: int,
) -> Case:
    threads = [Thread(i) for i in range(3)]
    prepare(threads, exact=False, keep_denormals=keep_denormals)
    moved = [tuple(one for one in block if one.key[0] != "PACR") for block in blocks]
    for flag in run_blocks(threads, sources, moved)[-1:]:
        threads[1].wait(flag)
    threads[1].signal(COMPUTED)
    threads[2].wait(COMPUTED)
    for number, block in enumerate(blocks):
        packs = [one for one in block if one.key[0] == "PACR"]
        for i in range(0, len(packs), _PACRS):
            which = number * len(variants[number]) + i // _PACRS
            configure(threads[2], variants[number][i // _PACRS], OUT + ROOM * which)
            for one in packs[i : i + _PACRS]:
                threads[2].push_word(one.words[0])
            threads[2].sync()
    for thread in threads:
        finish(thread)
    regions = (("packed tiles", OUT, 0x90000),)
    return Case(image(threads, {INPUT: data}), regions=regions, name="copy")
