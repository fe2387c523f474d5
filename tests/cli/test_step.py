"""`bhemu step` from the command line: scripts, pipes, exit codes."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

import bhemu as package
from bhemu.riscv.assembly import A0, EBREAK, PARK, ZERO, addi, jal, tt
from bhemu.tensix.insn import assemble, disassemble

ROOT = Path(package.__file__).parent.parent
WORDS = [addi(A0, ZERO, 1), tt("SEMINIT", sem_sel=2, max_value=3), addi(A0, A0, 1), PARK]


def test_a_script_prints_no_prompt(write, bhemu) -> None:
    result = bhemu("step", write(*WORDS), "-x", "step; step", "-x", "regs")
    assert result.exit_code == 0
    push, word = assemble("SEMINIT", sem_sel=2, max_value=3), WORDS[1]
    assert result.stdout.splitlines()[:5] == [
        "trisc0  pc 0x00010004",
        f"  00010004:  {word:08x}  .ttinsn {push:#010x}  # {disassemble(push)}",
        f"  -> T0 {disassemble(push)}",
        "trisc0  pc 0x00010008",
        "  00010008:  00150513  addi a0,a0,1",
    ]
    assert "   a0 00000001*" in result.stdout
    assert "(trisc0)" not in result.stdout


def test_commands_come_from_a_pipe_as_well(write, bhemu) -> None:
    result = bhemu("step", write(*WORDS), stdin="step 2\n\nwhere\nquit\nbogus\n")
    assert result.exit_code == 0
    assert "trisc0  running  pc 0x00010008, 2 retired" in result.stdout


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("bogus", "unknown command 'bogus'"),
        ("step; brk 5", "unknown command 'brk'"),
        ("step many", "'many' is not a count or core"),
        ("break 1 2 3", "usage: break ADDRESS"),
        ("break nowhere", "no symbol or register nowhere"),
        ("break 0x10002", "is no code address"),
        ("regs trisc9", "no core 'trisc9'"),
        ("mem 0xFFE80004", "trisc0 cannot look at 0xffe8000c"),
        ("dump strem:8", "no state is called 'strem:8'"),
        ("dst 2000", "there are rows 0 to 1023"),
        ("cfg NO_SUCH_FIELD_AT_ALL", "no configuration field"),
        ("step 1 trisc2", "trisc2 is in reset"),
    ],
)
def test_a_mistake_in_a_script_is_exit_code_2(write, bhemu, script, message) -> None:
    result = bhemu("step", write(*WORDS), "-x", script, "-x", "where")
    assert result.exit_code == 2
    assert message in result.stderr.splitlines()[0]
    assert "words executed" not in result.stdout, "nothing runs behind a mistake"


def test_an_unknown_command_lists_the_known_ones(write, bhemu) -> None:
    hint = bhemu("step", write(*WORDS), "-x", "stp").stderr.splitlines()[1]
    assert "did you mean step?" in hint
    for name in ("step", "tstep", "tnext", "next", "until", "finish", "break", "continue", "regs"):
        assert name in hint


def test_an_error_of_the_program_is_shown_and_becomes_the_exit_code(write, bhemu) -> None:
    path = write(addi(A0, ZERO, 5), EBREAK)
    result = bhemu("step", path, "-x", "continue; regs; where")
    assert result.exit_code == 6
    assert "error: [EBREAK] " in result.stderr
    assert "   a0 00000005*" in result.stdout
    assert "trisc0  assert   pc 0x00010004, 1 retired" in result.stdout


def test_a_limit_ends_a_loop(write, bhemu) -> None:
    path = write(addi(A0, A0, 1), jal(ZERO, -4))
    result = bhemu("step", path, "--limit", 3000, "-x", "continue")
    assert result.exit_code == 7
    assert "stopped: limit, clock " in result.stdout


def test_the_state_is_saved(write, bhemu, tmp_path) -> None:
    assert bhemu("step", write(*WORDS), "--save", tmp_path / "s.npz", "-x", "step").exit_code == 0
    assert (tmp_path / "s.npz").is_file()


def test_a_terminal_gets_a_prompt_and_an_empty_line_repeats_the_step(write, tmp_path) -> None:
    """Through a pseudo-terminal: step, empty line, a mistake, end of input."""
    near, far = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-m", "bhemu", "step", str(write(*WORDS))],
        stdin=far,
        stdout=far,
        stderr=far,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "NO_COLOR": "1",
            "BHEMU_HISTORY": str(tmp_path / "history"),
        },
    )
    os.close(far)
    shown = ""
    for answer in ("step\n", "\n", "bogus\n", "\x04"):
        shown += _until_prompt(near)
        os.write(near, answer.encode())
    assert process.wait(timeout=20) == 0
    os.close(near)
    assert shown.index("pc 0x00010000") < shown.index("pc 0x00010004") < shown.index("0x00010008")
    assert "error: unknown command 'bogus'" in shown
    assert shown.count("(trisc0) ") == 4


def _until_prompt(terminal: int) -> str:
    text = b""
    while not text.endswith(b"(trisc0) "):
        text += os.read(terminal, 4096)
    return text.decode()


def test_the_history_outlives_the_session(write, tmp_path) -> None:
    history = tmp_path / "state" / "history"
    prompt_session(write(*WORDS), history, b"step 2\nquit\n")
    assert history.read_text().splitlines() == ["step 2", "quit"]
    prompt_session(write(*WORDS), history, b"where\nquit\n")
    assert history.read_text().splitlines() == ["step 2", "quit", "where", "quit"]


def prompt_session(program: Path, history: Path, typed: bytes) -> str:
    """What a terminal shows while somebody types."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "BHEMU_HISTORY": str(history), "TERM": "dumb"}
    command = [sys.executable, "-m", "bhemu", "step", str(program)]
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, cwd=ROOT
    ) as process:
        os.close(theirs)
        shown = b""
        while b"(trisc0) " not in shown:
            shown += os.read(ours, 4096)
        os.write(ours, typed)
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:
                break
            if not part:
                break
            shown += part
        assert process.wait(60) == 0
    os.close(ours)
    return shown.decode()


def test_a_session_of_one_document_takes_commands_from_a_pipe_too(write, bhemu) -> None:
    path = write(*WORDS)
    piped = json.loads(bhemu("step", path, "--json", stdin="step\n\nwhere\n").stdout)
    given = json.loads(bhemu("step", path, "--json", "-x", "step; where").stdout)
    assert piped == given
    shown = bhemu("step", path, "-x", "step; where").stdout.splitlines()
    assert [line for one in given["commands"] for line in one["lines"]] == shown
