"""`bhemu trace`: text, JSON lines, exit codes of run."""

import json
from pathlib import Path

import pytest

import bhemu as package
from bhemu.riscv.asm import A0, EBREAK, PARK, ZERO, addi, jal, tt

ADD1 = Path(package.__file__).parent.parent / "elfs" / "add1"
WORDS = [tt("SEMINIT", sem_sel=1, max_value=1), tt("NOP"), PARK]
FOREVER = [tt("NOP"), addi(A0, A0, 1), jal(ZERO, -8)]


def test_a_line_has_thread_pc_and_assembly(write, bhemu) -> None:
    result = bhemu("trace", write(*WORDS))
    assert result.exit_code == 0
    assert [line.split() for line in result.stdout.splitlines()] == [
        ["0", "T0", "0x00010000", "SEMINIT", "sem_sel=0x1", "max_value=0x1"],
        ["1", "T0", "0x00010004", "NOP"],
    ]
    assert "2 words; everything is idle or parked" in result.stderr
    assert bhemu("trace", write(*WORDS), "-q").stderr == ""
    assert " 02000000  NOP" in bhemu("trace", write(*WORDS), "-v").stdout


def test_json_is_one_object_per_line(write, bhemu) -> None:
    result = bhemu("trace", write(*WORDS), "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    first, second = map(json.loads, result.stdout.splitlines())
    assert first["mnemonic"] == "SEMINIT"
    assert second == {
        "number": 1,
        "thread": 0,
        "word": 0x02000000,
        "pc": 0x10004,
        "origin": "push",
        "mnemonic": "NOP",
        "text": "NOP",
    }


def test_an_elf_gives_functions_lines_and_the_words_of_a_mop(bhemu) -> None:
    lines = bhemu("trace", ADD1, "--thread", 1, "--json").stdout.splitlines()
    words = [json.loads(line) for line in lines]
    assert {word["thread"] for word in words} == {1}
    assert {word["file"] for word in words} == {"math.c"}
    assert {"mop", "push"} <= {word["origin"] for word in words}
    moves = [w for w in words if w["origin"] == "mop" and w["mnemonic"] == "MOVA2D"]
    assert len(moves) == 8, "four faces of 16 rows, 8 rows each"
    assert len({move["pc"] for move in moves}) == 1


def test_limit_words_ends_with_exit_code_0_whatever_comes_later(write, bhemu) -> None:
    result = bhemu("trace", write(*FOREVER), "--limit-words", 3)
    assert (result.exit_code, len(result.stdout.splitlines())) == (0, 3)
    assert "as many as were asked for" in result.stderr


@pytest.mark.parametrize(
    ("words", "flags", "code", "rule"),
    [
        (FOREVER, ("--limit", 2000), 7, "LIMIT"),
        ([tt("NOP"), EBREAK], (), 6, "EBREAK"),
        ([tt("NOP"), PARK], ("--until", "0x100=1"), 3, "IDLE"),
    ],
)
def test_exit_codes_and_errors_are_those_of_run(write, bhemu, words, flags, code, rule) -> None:
    path = write(*words)
    result = bhemu("trace", path, *flags)
    assert result.exit_code == code
    assert f"error: [{rule}] " in result.stderr
    result = bhemu("trace", path, *flags, "--json")
    assert (result.exit_code, result.stderr) == (code, "")
    assert json.loads(result.stdout.splitlines()[-1])["rule"] == rule


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((), "no program"),
        (("missing.toml",), "missing.toml: no such file"),
        (("--thread", "3"), "Invalid value for '--thread'"),
        (("--limit-words", "0"), "Invalid value for '--limit-words'"),
    ],
)
def test_bad_input_is_exit_code_2(bhemu, tmp_path, monkeypatch, args, message) -> None:
    monkeypatch.chdir(tmp_path)
    result = bhemu("trace", *args)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr.splitlines()[0]


def test_the_state_is_saved(write, bhemu, tmp_path) -> None:
    assert bhemu("trace", write(*WORDS), "--save", tmp_path / "s.npz", "-q").exit_code == 0
    assert (tmp_path / "s.npz").is_file()
