"""Rows for unpack and pack of every pair of formats that the golden model accepts.

Each program repeats UNPACR or PACR for a tile of 1024 datums on one thread, as fast as the words
are pushed, and ends with what it computed in L1, so that the golden model's bytes can be compared.
"""

from collections.abc import Iterator
from functools import partial

from bhemu.bench import Benchmark
from bhemu.oracle.libttsim import Case
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.formats import NAMES
from bhemu.tensix.insn import assemble
from random_programs.datapath import (
    COMPUTED,
    FILLED,
    INPUT,
    OUTPUT,
    dump_dst,
    fill_dst,
    finish,
    image,
)
from random_programs.dice import Dice
from random_programs.plan import steps_of
from random_programs.thread import Thread
from random_programs.units import pack, unpack, unpack_source
from random_programs.units.pack import Variant
from random_programs.units.unpack_source import Source

_BATCH = 16  # UNPACRs between two waits for the thread
_UNPACKS, _PACKS = 1000, 1000  # batches of tiles, tiles
_TARGETS = ("SrcA", "SrcB", "Dst", "SrcA tilize", "SrcA transpose")
_TILIZED_ROW = 128  # bytes from one row to the next
_ROWS = {0: 4, 1: 1, 3: 2}  # rows that PACR of an interface selection packs
_ADDED = (("32-bit", (0, 0)), ("bf16", (5, 5)), ("fp16", (1, 1)))
_TILE_ROWS = 64
_VARIANTS = {26: "e4m3", 30: "uint8"}


def _name(code: int) -> str:
    return _VARIANTS.get(code) or NAMES[code & 15]


def _source(pair: tuple[int, int], target: str) -> Source:
    return Source(
        which=int(target == "SrcB"),
        to_dst=target == "Dst",
        source=pair[0],
        target=pair[1],
        x=256,
        y=1,
        z=4,
        haloize=target == "SrcA transpose",
        tileize=_TILIZED_ROW if target == "SrcA tilize" else 0,
        forced=None,
        context=0,
        exact=True,
        row=0,
        strides=(0, 0),
        add_counters=False,
    )


def _unpack(pair: tuple[int, int], target: str) -> Case:
    source = _source(pair, target)
    threads = [Thread(i) for i in range(3)]
    unpack.prepare(threads, exact=True, keep_denormals=0)
    unit = 1 << source.which
    counters = assemble("SETADCXX", cnt_set_mask=unit, x_end2=1023)
    word = assemble("UNPACR", last=1, ovrd_thread_id=1, unpack_block_selection=source.which)
    shown = word if source.to_dst else word | assemble("UNPACR", set_dat_valid=1)
    key = ("UNPACR", source.mode, source.form)
    flags = unpack.run_blocks(threads, [source], [[steps_of([counters, word], key)]])
    threads[1].wait(flags[0])
    with threads[0].repeat(_UNPACKS):
        for _ in range(_BATCH):
            threads[0].push_word(word)
        threads[0].sync()
    last = [steps_of([counters, shown], key), *unpack.moves(Dice("bench", 0, 0), source, 0)]
    threads[1].wait(unpack.run_blocks(threads, [source], [last])[0])
    threads[1].signal(COMPUTED)
    threads[2].wait(COMPUTED)
    dump_dst(threads[2], OUTPUT, 2 * 1024 // 16)
    for thread in threads:
        finish(thread)
    data = unpack_source.contents(Dice("bench", *pair), source)
    return Case(image(threads, {INPUT: data}))


def _pack(kind: str, pair: tuple[int, int], relu: int, accumulate: bool, select: int) -> Case:
    variant = Variant(
        kind=kind,
        pair=pair,
        relu=relu,
        threshold=0x3F80 if pair[0] in (0, 5, 6) else 0x3C00,
        select=select,
        width=16,
        first=0,
        unsigned=False,
        masks=(0xFFFF, 0xFFFF),
        mapping=0,
        reads=16,
        accumulate=accumulate,
        stride=0,
    )
    threads = [Thread(i) for i in range(3)]
    fill_dst(threads[0], INPUT)
    threads[0].signal(FILLED)
    packer = threads[2]
    packer.wait(FILLED)
    pack.configure(packer, variant, OUTPUT)
    packer.setc16({tf.ADDR_MOD_PACK_SEC1_YsrcClear: 1, tf.ADDR_MOD_PACK_SEC1_YdstClear: 1})
    with packer.repeat(_PACKS):
        for _ in range(_TILE_ROWS // _ROWS[select] - 1):
            packer.push("PACR", read_intf_sel=select)
        packer.push("PACR", read_intf_sel=select, last=1, addr_mode=1)
        packer.sync()
    for thread in threads:
        finish(thread)
    words = pack.dst_words(Dice("bench", *pair), kind)
    return Case(image(threads, {INPUT: words.tobytes()}))


def _unpacks() -> Iterator[Benchmark]:
    for target in _TARGETS:
        for pair in unpack_source.TO_DST if target == "Dst" else unpack_source.TO_SRC:
            if "tilize" in target and unpack_source.bits_of(pair[0]) < 8:
                continue
            name = f"unpack:{_name(pair[0])}-{_name(pair[1])}:{target.replace(' ', '-')}"
            what = f"UNPACR of 1024 datums of {_name(pair[0])} as {_name(pair[1])} to {target}"
            yield Benchmark(
                *(name, "k tiles/s", 1e-3, _UNPACKS * _BATCH, partial(_unpack, pair, target), what)
            )


def _packs() -> Iterator[Benchmark]:
    pairs = [(kind, pair) for kind, of_kind in pack.KINDS for pair in of_kind]
    rows = [(kind, pair, 0, False, select) for select in _ROWS for kind, pair in pairs]
    rows += [("bf16", (5, 5), relu, False, 0) for relu in (1, 2, 3)]
    rows += [("32-bit", (0, 0), 2, False, 0)]
    rows += [(kind, pair, 0, True, select) for kind, pair in _ADDED for select in _ROWS]
    for kind, pair, relu, accumulate, select in rows:
        cells = {"32-bit": "32", "fp16": "16", "bf16": "16b"}[kind]
        special = f":relu{relu}" if relu else ":add" if accumulate else ""
        special += f":{_ROWS[select]}row" if select else ""
        name = f"pack:{cells}:{_name(pair[0])}-{_name(pair[1])}{special}"
        what = f"1024 datums of {kind} Dst as {_name(pair[0])}, to {_name(pair[1])}"
        what += f", ReLU mode {relu}" if relu else ", added to L1" if accumulate else ""
        what += f", {_ROWS[select]} rows per PACR"
        case = partial(_pack, kind, pair, relu, accumulate, select)
        yield Benchmark(*(name, "k tiles/s", 1e-3, _PACKS, case, what))


def sweep() -> list[Benchmark]:
    """All rows: unpack:FROM-TO:TARGET and pack:CELLS:INTERMEDIATE-TO."""
    return [*_unpacks(), *_packs()]
