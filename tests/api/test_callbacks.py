"""Functions that a run calls: on_word, on_pc, on_access of a tile and of a chip."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from bhemu import Chip, InputError, Program, Tile
from bhemu.machine.callbacks import AccessEvent, InstructionEvent, WordEvent
from bhemu.riscv.assembly import A0, A1, A2, PARK, code, li, lw, sw
from bhemu.tensix.insn import assemble, instructions

ELFS = Path(__file__).parents[2] / "elfs"
ADD1 = Program.load(ELFS / "add1")
MCAST = Program.load(ELFS / "matmul_mcast")
ENGINES = pytest.mark.parametrize("engine", ["unicorn", "compiled"])


@ENGINES
def test_words_are_told_before_they_execute(engine: Any) -> None:
    tile = ADD1.launch(engine=engine)
    packed: Counter[str] = Counter()
    last: list[tuple[int, str, int]] = []

    def count(word: WordEvent) -> None:
        does = word.transfer
        assert does is not None and word.name == "PACR" and word.core == "trisc2"
        packed[does.l1_format] += does.end - does.first
        if word.fields["last"]:
            last.append((word.thread, word.place.partition(" in ")[2], word.clock))

    tile.on_word("PACR", count)
    assert repr(tile.run()) == "<Stop until, clock 2688>"
    assert packed == {"bf16": 2048}  # a tile of 1024 datums
    ((thread, place, clock),) = last
    assert thread == 2 and "pack.c" in place and 0 < clock < 2688


def test_words_by_their_fields_and_thread() -> None:
    tile, seen = ADD1.launch(), Counter[str]()
    tile.on_word("PACR", lambda word: seen.update(["last"]), last=1)
    tile.on_word("PACR", lambda word: seen.update(["T1"]), thread=1)
    tile.on_word(None, lambda word: seen.update([f"any T{word.thread}"]))
    tile.run()
    executed = tile.state.executed.tolist()
    assert seen["last"] == 1 and "T1" not in seen
    for t, n in enumerate(executed):
        assert seen[f"any T{t}"] - n in (0, 1)  # a word that waits when the run ends


def test_a_word_that_waits_is_told_once() -> None:
    tile, seen = ADD1.launch(), Counter[str]()
    for name in ("SEMWAIT", "STALLWAIT", "MVMUL", "UNPACR"):
        tile.on_word(name, lambda word: seen.update([word.name]))
    tile.run()
    counts = tile.state.op_count.sum(axis=0)
    names = ("SEMWAIT", "STALLWAIT", "UNPACR")
    opcode = {cls.name: number for number, cls in instructions().items()}
    assert {name: seen[name] for name in names} == {n: int(counts[opcode[n]]) for n in names}


@ENGINES
def test_instructions_are_told_before_they_execute(engine: Any) -> None:
    tile = ADD1.launch(engine=engine)
    tile.break_at("trisc1", "main")
    stop = tile.run()
    other, seen = ADD1.launch(engine=engine), list[tuple[str, int, int, str]]()

    def note(at: InstructionEvent) -> None:
        seen.append((at.core, at.pc, at.clock, at.text))

    number = other.on_pc("trisc1", "main", note)
    assert repr(other.run()) == "<Stop until, clock 2688>"
    assert stop.where is not None
    assert seen == [("trisc1", stop.where.pc, stop.clock, "lui a0,0xffe80")]
    assert other.engine == "compiled" and number == 1


def test_every_instruction_of_a_range_is_told_once() -> None:
    tile, seen = ADD1.launch(), Counter[str]()
    tile.on_pc(None, (0, 0x180000), lambda at: seen.update([at.core]))
    tile.run()
    assert seen == {core.name: core.retired for core in tile.core.values() if core.retired} or (
        # of an instruction that waits when the run ends
        sum(seen.values()) - int(tile.state.retired.sum()) in range(1, 5)
    )


@ENGINES
def test_accesses_have_what_was_moved(engine: Any) -> None:
    tile = Tile(engine=engine)
    tile.write(0x10000, code(li(A0, 0x8000), li(A1, 0x1234), sw(A1, A0), lw(A2, A0, 4), PARK))
    tile.write32(0x8004, 7)
    tile.core["trisc1"].set_reset_pc(0x10000)
    tile.core["trisc1"].release()
    seen: list[tuple[bool, int, int, int, str]] = []

    def note(one: AccessEvent) -> None:
        seen.append((one.stores, one.address, one.size, one.value, one.core))

    tile.on_access((0x8000, 0x8008), note)
    tile.on_access(0x8004, note, access="w")
    tile.on_access(0x8000, note, core="trisc0")
    tile.run()
    assert seen == [(True, 0x8000, 4, 0x1234, "trisc1"), (False, 0x8004, 4, 7, "trisc1")]


def test_registers_of_devices_by_name() -> None:
    tile, seen = ADD1.launch(), list[str]()
    tile.on_access("SOFT_RESET_0", lambda one: seen.append(f"{one.core} {one.text}"), access="w")
    tile.run()
    assert seen and all(text.startswith("brisc stores 0x") for text in seen)


def test_all_tiles_of_a_chip_and_those_made_later() -> None:
    chip, seen = MCAST.launch(), Counter[tuple[Any, ...]]()
    chip.on_word("MVMUL", lambda word: seen.update([word.tile.xy]))
    chip.on_pc("trisc1", "main", lambda at: seen.update([(*at.tile.xy, at.core)]))
    chip.on_word("PACR", lambda word: seen.update(["one"]), tile=(1, 2))
    assert chip.run().reason == "until" and all(one.equal for one in chip.check())
    xys = {tile.xy for tile in chip.tiles()}
    assert len(xys) == 4 and seen["one"] > 0
    assert {xy for xy in seen if len(xy) == 2} == xys and seen.keys() >= {
        (*xy, "trisc1") for xy in xys
    }

    late, told = Chip(), list[tuple[int, int]]()
    late.on_word("SFPNOP", lambda word: told.append(word.tile.xy))
    late.tile[3, 3].core["brisc"].write32(0xFFE40000, assemble("SFPNOP"))
    late.run()
    assert told == [(3, 3)]


def test_they_are_deleted_like_breakpoints() -> None:
    tile, seen = ADD1.launch(), list[str]()
    one = tile.on_word("PACR", lambda word: seen.append("word"))
    tile.on_pc("trisc1", "main", lambda at: seen.append("pc"))
    tile.delete(one)
    tile.run()
    assert seen == ["pc"]
    again = ADD1.launch()
    again.on_word("PACR", lambda word: seen.append("word"))
    again.on_access((0, 1 << 20), lambda one: seen.append("access"))
    again.delete()
    again.run()
    assert seen == ["pc"]


@pytest.mark.parametrize("kind", ["word", "pc", "access"])
def test_what_a_function_raises_names_its_line_and_the_run_can_go_on(kind: str) -> None:
    tile, calls = ADD1.launch(), list[int]()

    def wrong(_: object) -> None:
        calls.append(1)
        if len(calls) == 1:
            calls[0] = 1 // 0

    if kind == "word":
        tile.on_word("PACR", wrong)
    elif kind == "pc":
        tile.on_pc("trisc1", "main", wrong)
    else:
        tile.on_access(0x100, wrong)
    line = wrong.__code__.co_firstlineno + 3
    with pytest.raises(InputError, match=rf"{__file__}:{line}: wrong: ZeroDivisionError: "):
        tile.run()
    assert repr(tile.run()) == "<Stop until, clock 2688>"
    assert all(one.equal for one in tile.check())


def test_mistakes_are_told() -> None:
    tile = ADD1.launch()

    def f(event: object) -> None: ...

    for call, text in (
        (lambda: tile.on_word("PACK", f), "no Tensix instruction PACK"),
        (lambda: tile.on_word("PACR", f, lost=1), "PACR has no field lost"),
        (lambda: tile.on_word("MOP", f), "no word MOP executes"),
        (lambda: tile.on_word("PACR", 5), "must be callable"),  # type: ignore[arg-type]
        (lambda: tile.on_pc("trisc1", "mian", f), "mian"),
        (lambda: tile.on_pc("trisc9", "main", f), "no core 'trisc9'"),
        (lambda: tile.on_access((4, 4), f), "nothing between"),
        (lambda: tile.on_access(4, f, access="x"), "access = 'x'"),
    ):
        with pytest.raises(InputError, match=text):
            call()
    assert repr(tile.run()) == "<Stop until, clock 2688>"
