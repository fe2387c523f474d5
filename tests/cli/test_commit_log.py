"""`bhemu run --log-commits`: every retired instruction, in spike's format."""

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from bhemu.debug.trace import text
from bhemu.memmap import CORE_NAMES

ADD1 = Path(__file__).parents[2] / "elfs" / "add1"

# What spike's commit_log_print_insn prints of a hart of 32 bits.
_LINE = re.compile(
    r"core {3}[0-4]: 3 0x[0-9a-f]{8} \(0x[0-9a-f]{8}\)(?: x(?:[1-9] |[1-3]\d) 0x[0-9a-f]{8})?"
    r"(?: mem 0x[0-9a-f]{8})?(?: mem 0x[0-9a-f]{8} 0x(?:[0-9a-f]{2}|[0-9a-f]{4}|[0-9a-f]{8}))?"
)


@pytest.mark.parametrize(
    ("word", "line"),
    [  # (word; pc 0x100, rs1 0x1000, rs2 0x12345678, rd afterwards 5, memory afterwards 9)
        (0x00000297, "core   2: 3 0x00000100 (0x00000297) x5  0x00000005"),
        (0xFFC52503, "core   2: 3 0x00000100 (0xffc52503) x10 0x00000005 mem 0x00000ffc"),
        (0x00B50023, "core   2: 3 0x00000100 (0x00b50023) mem 0x00001000 0x78"),
        (0xFEB51F23, "core   2: 3 0x00000100 (0xfeb51f23) mem 0x00000ffe 0x5678"),
        (0x00B52223, "core   2: 3 0x00000100 (0x00b52223) mem 0x00001004 0x12345678"),
        (
            0x00B525AF,
            "core   2: 3 0x00000100 (0x00b525af) x11 0x00000005"
            " mem 0x00001000 mem 0x00001000 0x00000009",
        ),
        (0x00000013, "core   2: 3 0x00000100 (0x00000013)"),  # x0
        (0x00B50463, "core   2: 3 0x00000100 (0x00b50463)"),  # a branch
        (0xFE000EE3 & ~3, "core   2: 3 0x00000100 (0xfe000ee0)"),  # a Tensix word
    ],
)
def test_a_line_is_as_spike_prints_it(word: int, line: str) -> None:
    assert text(2, word, 0x100, 0x1000, 0x12345678, 5, 9) == line
    assert _LINE.fullmatch(line)


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bhemu", "run", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


def test_every_retired_instruction_has_its_line(tmp_path: Path) -> None:
    log = tmp_path / "commits.log"
    done = run(ADD1, "--json", "--log-commits", log)
    assert done.returncode == 0, done.stderr
    plain = json.loads(run(ADD1, "--json").stdout)
    report = json.loads(done.stdout)
    assert report == plain, "the schedule is that of any run"
    lines = log.read_text().splitlines()
    assert [line for line in lines if not _LINE.fullmatch(line)] == []
    counts = Counter(int(line[4:8]) for line in lines)
    retired = [report["cores"][name]["retired"] for name in CORE_NAMES]
    assert [counts[core] for core in range(5)] == retired
    assert lines[0] == "core   0: 3 0x00000000 (0x0000406f)"  # BRISC's jump at L1 0
    stored = [line for line in lines if line.endswith("mem 0x00000100 0x0000d0e0")]
    assert len(stored) == 1 and stored[0] in lines[-10:]  # done_words[0]


def test_what_it_cannot_do_is_said(bhemu, tmp_path: Path) -> None:
    assert bhemu("run", ADD1, "--log-commits", "-", "--engine", "unicorn").exit_code == 2
    assert "NUMBA_DISABLE_JIT" in bhemu("run", ADD1, "--log-commits", tmp_path / "x").stderr
    done = run(ADD1, "--log-commits", tmp_path / "none" / "x")
    assert (done.returncode, "cannot be written" in done.stderr) == (2, True)
