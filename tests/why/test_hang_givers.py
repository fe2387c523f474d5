"""Hangs of whole programs: who could give, what came last, and a word that two cores count in."""

from pathlib import Path
from types import ModuleType
from typing import Any

import corpus
import planted
import pytest

from bhemu.machine.hang.givers import NO_MORE
from bhemu.riscv.assembly import A0, A1, A2, A3, ZERO, add, addi, beq, bne, jal, li, lw, sw

SEND, IN1 = "matmul_mcast/send.h", "matmul_mcast/in1.c"
SENT = "    noc_writes_sent(&o->noc);\n"


def found(
    compiler: ModuleType,
    out: Path,
    program: str,
    core: str,
    *changes: planted.Change,
    line: str = "",
) -> tuple[planted.Made, list[dict[str, Any]]]:
    """The findings of a program with changes; `line` is of the first changed file."""
    bug = planted.Bug("own", 1, program, changes, core, line)
    made = planted.make(bug, out / "p", compiler)
    return made, planted.why(made.folder)


@pytest.mark.parametrize("wiped", [True, False])
def test_a_word_that_was_wiped_before_it_was_sent(
    compiler: ModuleType, tmp_path: Path, wiped: bool
) -> None:
    """The sender sets its VALID to 0 for the next step; without that it sends too few times."""
    line = "semaphore_set(o->valid, 0); /* wiped */"
    if wiped:
        change = SEND, SENT, f"{SENT}    {line}\n"
    else:
        change = SEND, SENT, f"{SENT}    o->valid += 4; /* wiped */\n"
    made, told = found(compiler, tmp_path, "matmul_mcast", "brisc, ncrisc", change, line="/* wiped")
    first = told[0]
    assert first["check"] == "waiting"
    assert ("has sent L1" in first["text"] and "which is 0, to" in first["text"]) == wiped
    assert planted.hit(made, first) == wiped
    if wiped:
        assert "waits for 1" in first["text"]
        assert any("a cycle of waits" in one for one in first["evidence"])


@pytest.mark.parametrize("shared", ["A_READY", "B_READY + 0u"])
def test_a_word_in_which_two_cores_count(compiler: ModuleType, tmp_path: Path, shared: str) -> None:
    """brisc takes the semaphore of ncrisc, or its own."""
    change = IN1, "kernel_semaphore(B_READY)", f"kernel_semaphore({shared})"
    _, told = found(compiler, tmp_path, "matmul_mcast", "brisc", change)
    texts = [one["text"] for one in told]
    if shared != "A_READY":
        assert texts == []
        return
    assert "brisc waits for L1 word" in texts[0] and "(semaphores[0]) to become 1" in texts[0]
    assert "(it is 2 already), and (1,2) ncrisc for the same word to become" in texts[0]


@pytest.mark.parametrize("last", ["args->end", "args->end - 1"])
def test_a_reader_that_gives_a_page_too_few(
    compiler: ModuleType, tmp_path: Path, last: str
) -> None:
    """It gives pages through the structure of its buffer, and has ended."""
    change = "dataflow/reader.c", "page < args->end", f"page < {last}"
    _, told = found(compiler, tmp_path, "add1_chip", "ncrisc", change)
    if last == "args->end":
        assert told == []
        return
    (first,) = told
    assert "trisc0 waits for pages of buffer 0 to be announced (" in first["text"]
    assert "ncrisc could give (announces pages with its store, reader.c:13)" in first["text"]
    assert "ncrisc has ended: it is back in firmware" in first["text"]
    assert first["advice"].startswith("compare how often")


WORDS = 0x20000  # words to which trisc1 stores one after the other, by a pointer that goes on
STREAM = 0xFFB48028


@pytest.mark.parametrize("step", [4, 0x1000])
@pytest.mark.parametrize("first", [0, 1])
def test_who_has_stored_there_by_a_pointer_that_goes_on(
    tmp_path: Path, step: int, first: int
) -> None:
    """No code tells the address; the run does. From the second place on it is not stored to."""
    at = WORDS if step == 4 else STREAM
    poll = [*li(A0, at), *li(A2, 2), lw(A1, A0), bne(A1, A2, -4)]
    stores = [*li(A0, at + first * step), *li(A2, at + 3 * step), *li(A3, step), addi(A1, ZERO, 1)]
    stores += [sw(A1, A0), add(A0, A0, A3), bne(A0, A2, -8)]
    kernels: dict[str, list[Any]] = {"trisc0": [poll], "trisc1": [stores]}
    (told,) = corpus.found(corpus.folder(tmp_path / "p", kernels))
    if first:
        assert told["text"].endswith("and nothing that could give it was found")
        return
    assert "which trisc1 could give (it has stored there 1 time so far, trisc1.s:1)" in told["text"]
    assert told["text"].endswith("; trisc1 has parked")


@pytest.mark.parametrize("again", [False, True])
def test_who_has_stored_there_and_comes_there_no_more(tmp_path: Path, again: bool) -> None:
    """By a pointer that goes on, before a loop of its own or within it."""
    poll = [*li(A0, WORDS), *li(A2, 2), lw(A1, A0), bne(A1, A2, -4)]
    stores = [*li(A0, WORDS), *li(A2, WORDS + 12), addi(A1, ZERO, 1), sw(A1, A0), addi(A0, A0, 4)]
    stores += [bne(A0, A2, -8)]
    wait = [*li(A2, WORDS + 0x100), lw(A3, A2), beq(A3, ZERO, -4)]
    back = [jal(ZERO, -4 * (len(stores) + len(wait)))] if again else []
    kernels: dict[str, list[Any]] = {"trisc0": [poll], "trisc1": [[*stores, *wait, *back]]}
    (told,) = corpus.found(corpus.folder(tmp_path / "p", kernels))
    if again:  # the root is what trisc1 waits for
        assert told["text"].startswith("livelock: trisc1 waits")
        released = "could have been released by trisc1 (it has stored there 1 time so far at"
        assert any(one.strip().startswith(released) for one in told["evidence"])
    else:
        seen = "trisc1 (it has stored there 1 time so far, trisc1.s:1)"
        assert told["text"].endswith(f"{seen} {NO_MORE}")


def test_a_semaphore_that_lies_elsewhere_on_the_tile_that_sends(
    compiler: ModuleType, tmp_path: Path
) -> None:
    """The first tile has more arguments, after which its semaphores begin."""
    args = '''"tile:count", "u32:1", "u32:3", "u32:0x100080", "u32:0x200080", "u32:2048", "u32:8",
    "u32:0x40080", "u32:0x60080"'''
    part = '[[tile]]\nat = "{}"\nsemaphores = [0]\n\n[tile.cores]\nbrisc = {{ elf = '
    part += '"scatter_brisc.elf", args = [\n    "u32:{}", {}{},\n] }}\n'
    more = ", " + ", ".join(['"u32:0"'] * 8)
    text = (planted.PROGRAMS / "scatter" / planted.TOML).read_text()
    low, high = text.index("[[tile]]"), text.index("[[input]]")
    first = part.format("1,3", 0, '"u32:4", ' + args.partition(", ")[2], more)
    others = part.format("2-4,3", 1, '"u32:4", ' + args.partition(", ")[2], "")
    change = planted.TOML, text[low:high], f"{first}\n{others}\n"
    _, told = found(compiler, tmp_path, "scatter", "brisc", change)
    said = next(one["text"] for one in told if one["check"] == "waiting")
    assert "nothing was ever written there over the NoC, but to 0x" in said
    assert "where (1,3) brisc has semaphores[0] itself: tile (1,3) brisc" in said
