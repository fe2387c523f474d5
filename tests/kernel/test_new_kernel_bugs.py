"""What is found in the kernel of `bhemu new`, after one line of it was changed by mistake."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kernel.conftest import call

from bhemu import kernel

pytestmark = pytest.mark.skipif(kernel.zig() is None, reason="ziglang is not installed")

Edit = tuple[str, str, str]  # file, what is replaced, by what
WAIT, NONE = "cb_wait_pages(&{}, 1);", ""
NO_READ_BARRIER: Edit = ("reader.c", "noc_read_barrier(&noc);", NONE)
NO_WAIT_OF_WRITER: Edit = ("writer.c", WAIT.format("out"), NONE)
NO_WAIT_OF_UNPACK: Edit = ("unpack.c", WAIT.format("in"), NONE)
WRONG_CONSTANT: Edit = ("math.c", "TTI_SFPLOADI(X, 0, 0x0000);", "TTI_SFPLOADI(X, 0, 0x3F80);")
LANES_STAY_OFF: Edit = ("math.c", "TTI_SFPENCC(0, 0, 0, 0);", NONE)
WRONG_ADDRESS: Edit = ("PROGRAM.toml", '"u32:4", "u32:0x100000"]', '"u32:4", "u32:0x108000"]')
ONE_TILE_FEWER: Edit = (
    "PROGRAM.toml",
    'build/writer.elf", args = ["tile:index", "tile:count", "u32:4"',
    'build/writer.elf", args = ["tile:index", "tile:count", "u32:3"',
)
ONE_PAGE_FEWER: Edit = (
    "PROGRAM.toml",
    'build/reader.elf", args = ["tile:index", "tile:count", "u32:4"',
    'build/reader.elf", args = ["tile:index", "tile:count", "u32:3"',
)
PLACE_OF_OUT = "at = 0x31000\npages = 2\npage = "
SMALL_PAGE: Edit = ("PROGRAM.toml", f"{PLACE_OF_OUT}2048", f"{PLACE_OF_OUT}1024")
NO_WAIT_FOR_ROOM: Edit = ("pack.c", "cb_wait_room(&out, 1);", NONE)
HALF_A_PAGE: Edit = (
    "pack.c",
    "configure_pack();",
    "configure_pack(); store(MOP_CFG_BASE, FACES / 2);",
)
ALWAYS_THE_FIRST_HALF: Edit = ("math.c", "acquire_half(half);", "acquire_half(0);")
OVERLAP: Edit = ("PROGRAM.toml", "at = 0x31000\n", "at = 0x30800\n")


NO_POP_OF_IN: Edit = ("unpack.c", "cb_pop(&in, 1);", NONE)
NO_PUSH_OF_IN: Edit = ("reader.c", "cb_push(&in, 1);", NONE)
NO_POP_OF_OUT: Edit = ("writer.c", "cb_pop(&out, 1);", NONE)
NO_ADDRESS: Edit = ("PROGRAM.toml", ', "u32:0x100000"]', "]")
NO_END: Edit = ("PROGRAM.toml", 'math.elf", args = ["tile:index", "tile:count", "u32:4"]',
                'math.elf", args = ["tile:index", "tile:count"]')  # fmt: skip
NO_WAIT_FOR_MOVES: Edit = ("math.c", "TTI_STALLWAIT(STALL_SFPU, WAIT_MATH);", NONE)
NO_WAIT_FOR_STORES: Edit = ("math.c", "TTI_STALLWAIT(STALL_SYNC, WAIT_SFPU);", NONE)


@pytest.fixture
def changed(built: Path, tmp_path: Path) -> Callable[[Edit], Path]:
    """changed(edit): the folder of a kernel with this mistake, built."""

    def change(edit: Edit) -> Path:
        name, before, after = edit
        folder = tmp_path / f"relu{len(list(tmp_path.iterdir()))}"
        shutil.copytree(built, folder)
        text = (folder / name).read_text()
        assert before in text
        (folder / name).write_text(text.replace(before, after, 1))
        assert call("build", folder).exit_code == 0
        return folder

    return change


def findings(folder: Path) -> list[dict[str, Any]]:
    """Of `bhemu why`."""
    found: list[dict[str, Any]] = json.loads(call("why", folder, "--json").stdout)["findings"]
    return found


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        (NO_WAIT_FOR_MOVES, ["SFPLOAD does not wait for the matrix unit", "SFPSTORE does not"]),
        (NO_WAIT_FOR_STORES, ["SEMPOST does not wait for the vector unit"]),
    ],
)
def test_a_missing_wait_that_no_late_run_shows_is_said_with_where_to_look(
    changed, edit, told
) -> None:
    """The ISA asks for the wait; the words before it are done long before what it holds back."""
    folder = changed(edit)
    pairs = "1 pair" if len(told) == 1 else f"{len(told)} pairs"
    said = call("why", "-q", folder)
    assert (said.exit_code, said.stderr) == (0, "")
    assert said.stdout == (
        f"the run ended as it should, and no output differs; {pairs} of accesses that nothing"
        " orders, not seen to change the result: bhemu check --tool order"
        f" {folder / 'PROGRAM.toml'}\n"
    )
    shown = json.loads(call("why", folder, "--json").stdout)
    starts = zip(shown["notes"], told, strict=True)
    assert all(one["text"].startswith(start) for one, start in starts)
    assert (shown["findings"], shown["verdict"]) == ([], "ok")
    assert pairs in call("report", folder, "-o", folder / "relu.html").stdout
    looked = call("check", "--tool", "races", folder)
    assert pairs in looked.stdout
    assert looked.exit_code == 0
    assert call("check", "--tool", "order", folder).exit_code == 1


@pytest.mark.parametrize(
    ("edit", "waits", "does", "advice"),
    [
        (
            NO_POP_OF_IN,
            "ncrisc waits for pages of buffer 0 to be given back (0 so far, 1 needed)",
            "trisc0 reads pages and gives none back",
            "cb_pop_front (in lib/cb.h cb_pop) after this",
        ),
        (
            NO_POP_OF_OUT,
            "trisc2 waits for pages of buffer 16 to be given back (0 so far, 1 needed)",
            "brisc reads pages and gives none back",
            "cb_pop_front (in lib/cb.h cb_pop) after this",
        ),
        (
            NO_PUSH_OF_IN,
            "trisc0 waits for pages of buffer 0 to be announced (0 so far, 1 needed)",
            "ncrisc writes pages and announces none",
            "cb_push_back (in lib/cb.h cb_push) after this",
        ),
    ],
)
def test_who_leaves_a_count_out_leads_the_hang_that_it_makes(
    changed, edit, waits, does, advice
) -> None:
    """One finding; buffers have the numbers that PROGRAM.toml declares."""
    folder = changed(edit)
    assert waits in call("run", folder).stderr
    (found,) = findings(folder)
    lost = "and nothing that could give it was found"
    assert found["text"] == f"livelock: {waits}, {lost}: {does}"
    assert (found["check"], found["advice"]) == ("waiting", advice)
    assert (found["culprit"]["core"], found["victim"]["core"]) == (
        does.split()[0],
        waits.split()[0],
    )
    last = found["culprit"]["inlined"][-1:] or [found["culprit"]]
    assert last[0]["file"] == edit[0]


@pytest.mark.parametrize(
    ("edit", "core", "held", "at", "line"),
    [(NO_ADDRESS, "ncrisc", 3, "0xc", "reader.c"), (NO_END, "trisc1", 2, "0x8", "math.c")],
)
def test_an_argument_that_the_program_does_not_give_is_told_with_who_reads_it(
    changed, edit, core, held, at, line
) -> None:
    (found,) = [one for one in findings(changed(edit)) if one["check"] == "contract"]
    assert f"{core} has {held} arguments, and its kernel reads the word at {at}" in found["text"]
    assert (found["culprit"]["file"], found["victim"]["file"]) == ("PROGRAM.toml", line)
    assert (
        f"{core} = "
        in (changed(edit) / "PROGRAM.toml").read_text().splitlines()[found["culprit"]["line"] - 1]
    )


def test_a_missing_read_barrier_is_shown_although_the_result_is_right(changed) -> None:
    folder = changed(NO_READ_BARRIER)
    assert call("run", "-q", folder).exit_code == 0
    first = findings(folder)[0]
    assert (first["check"], first["culprit"]["file"]) == ("order", "reader.c")
    command = next(line for line in first["evidence"] if line.startswith("shown by "))
    late = command.partition("--late ")[2].partition(": ")[0]
    assert call("run", "-q", folder, "--late", late).exit_code == 1


@pytest.mark.parametrize(
    ("edit", "line"), [(NO_WAIT_OF_WRITER, "writer.c"), (NO_WAIT_OF_UNPACK, "unpack.c")]
)
def test_a_page_that_is_read_too_early_is_no_unwritten_value(changed, edit, line) -> None:
    first, *others = findings(changed(edit))
    assert first["check"] == "contract"
    who = first["culprit"]
    assert line in (who["file"], *(call["file"] for call in who["inlined"]))
    gives_back = [one for one in others if "gives back more pages" in one["text"]]
    assert {one["culprit"]["file"] for one in gives_back} == {line}


def test_a_wrong_element_in_dram_leads_to_the_word_that_made_it(changed) -> None:
    folder = changed(WRONG_CONSTANT)
    first = findings(folder)[0]
    assert (first["check"], first["culprit"]["file"]) == ("origin", "math.c")
    assert first["culprit"]["role"] == "made by"  # of what, the evidence shows
    assert any("SFPLOADI imm16=0x3f80" in line for line in first["evidence"])
    index = first["victim"]["index"]
    shown = call("why", folder, f"y[{index[0]},{index[1]}]").stdout.splitlines()
    assert "writer.c" in shown[0]
    assert any("SFPLOADI imm16=0x3f80" in line for line in shown)


def test_a_value_that_is_only_moved_is_said_to_be(changed) -> None:
    first = findings(changed(LANES_STAY_OFF))[0]
    assert first["text"].endswith("nothing on its way does more than move it")
    assert first["culprit"]["file"] == "math.c"
    assert any("reader.c" in line and "over the NoC" in line for line in first["evidence"])


def test_what_is_fetched_from_unwritten_dram_is_the_fault_of_the_request(changed) -> None:
    first = findings(changed(WRONG_ADDRESS))[0]
    assert (first["check"], first["culprit"]["file"]) == ("unwritten", "reader.c")


def test_a_page_that_is_filled_in_part_is_the_fault_of_who_fills_it(changed) -> None:
    first = findings(changed(HALF_A_PAGE))[0]
    assert (first["check"], first["culprit"]["core"]) == ("unwritten", "trisc2")
    assert first["victim"]["core"] == "brisc"
    assert "the rest of its page of buffer 16 is written by" in first["evidence"][1]


def test_the_place_of_a_refusal_or_of_a_wait_is_not_called_a_culprit(changed) -> None:
    """Math is wrong, and pack is refused; reader leaves pages out, and unpack waits."""
    folder = changed(ALWAYS_THE_FIRST_HALF)
    first = findings(folder)[0]
    assert (first["check"], first["culprit"]["role"]) == ("error", "stopped at")
    assert call("why", "-q", folder).stdout.splitlines()[1].startswith("  stopped at: tile (1,2)")
    waits = findings(changed(ONE_PAGE_FEWER))[0]
    assert (waits["check"], waits["culprit"]["role"]) == ("waiting", "waits at")


def test_a_wrong_run_is_explained_before_the_next_launch(changed) -> None:
    found = findings(changed(ONE_TILE_FEWER))
    assert [one["check"] for one in found] == ["origin"]
    assert "no request of a core has written it" in found[0]["evidence"][0]


def test_check_warns_of_buffers_that_share_bytes(changed) -> None:
    shown = call("check", changed(OVERLAP)).stderr
    assert "circular buffer 0" in shown
    assert "overlap at 0x30800" in shown


def test_a_watchpoint_names_the_request_that_has_brought_bytes(built: Path) -> None:
    shown = call("step", "-q", built, "-x", "watch 0x30004:4; continue").stdout
    by = next(line for line in shown.splitlines() if line.strip().startswith("by "))
    assert "ncrisc" in by
    assert "reader.c" in by


def test_buffers_that_share_bytes_are_the_root_of_their_races(changed) -> None:
    folder = changed(OVERLAP)
    line = (folder / "PROGRAM.toml").read_text().splitlines().index("at = 0x30800") + 1
    first = findings(folder)[0]
    culprit = first["culprit"]
    assert (first["check"], culprit["file"], culprit["line"]) == ("order", "PROGRAM.toml", line)
    assert first["text"].startswith("buffer 16 (0x30800 to 0x31800) shares bytes with buffer 0")
    assert f"  culprit: PROGRAM.toml:{line}" in call("why", "-q", folder).stdout.splitlines()


def test_pages_that_are_declared_too_small_are_the_root_of_their_races(changed) -> None:
    found = findings(changed(SMALL_PAGE))
    assert [one["check"] for one in found] == ["contract"]
    assert found[0]["culprit"]["file"] == "PROGRAM.toml"


def test_only_a_core_that_does_not_look_is_said_to_ignore_pages(changed) -> None:
    assert "never looks" not in call("check", "--tool", "order", changed(SMALL_PAGE)).stdout
    first = findings(changed(NO_WAIT_FOR_ROOM))[0]
    assert "never looks at the pages that the other side counts" in first["text"]
