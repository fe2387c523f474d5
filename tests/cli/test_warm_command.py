"""`bhemu warm`: compiles what is missing, says when nothing is."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import bhemu as package
from bhemu.jit.build import Code, Entry
from bhemu.tensix.insn import instructions

ROOT = Path(package.__file__).parent.parent


class Cache:
    """Stands in for `build.load`: an instruction's entry takes 0.6 s the first time."""

    def __init__(self) -> None:
        self.there: list[str] = []

    def __call__(self, wanted: Entry) -> Code:
        if wanted.name not in {cls.name for cls in instructions().values()}:  # a second entry
            return Code(0, 0.0)
        new = wanted.name not in self.there
        self.there.append(wanted.name)
        return Code(0, 0.6 if new else 0.0)


@pytest.fixture
def cache(monkeypatch) -> Cache:
    empty = Cache()
    monkeypatch.setattr("bhemu.jit.build.load", empty)
    monkeypatch.setattr("bhemu.machine.backend.core_is_fresh", lambda engine: False)
    monkeypatch.setattr("bhemu.machine.precompile.start", lambda parts: None)
    return empty


def test_everything_with_a_model_is_compiled_once(bhemu, cache) -> None:
    result = bhemu("warm")
    modelled = [cls.name for _, cls in sorted(instructions().items()) if cls.execute is not None]
    assert result.exit_code == 0
    assert cache.there == modelled
    assert result.stdout.startswith(f"the core and {len(modelled)} instructions: compiled ")
    assert result.stdout.endswith(", 1 was there\n")
    assert len(result.stderr.splitlines()) == len(modelled)
    assert "compiled SEMPOST in 0.6 s (kept for next time)" in result.stderr
    again = bhemu("warm")
    assert again.stdout.startswith(f"everything is there: the core and {len(modelled)} ")
    assert again.stderr == ""


def test_a_full_cache_folder_is_said(bhemu, cache, monkeypatch) -> None:
    monkeypatch.setattr("bhemu.jit.cache.problem", ["No space left on device"])
    result = bhemu("warm", "SEMPOST")
    assert "compiled SEMPOST in 0.6 s (not kept: No space left on device)\n" in result.stderr


def test_named_instructions_only(bhemu, cache) -> None:
    result = bhemu("warm", "sempost", "NOP", "SEMPOST", "--json")
    report = json.loads(result.stdout)
    assert (report["compiled"], report["cached"]) == (["SEMPOST", "NOP"], 1)
    assert (result.exit_code, result.stderr) == (0, "")
    assert bhemu("warm", "NOP", "-q").output == ""


def test_a_core_that_was_compiled_is_counted(bhemu, cache, monkeypatch) -> None:
    monkeypatch.setattr("bhemu.machine.backend.core_is_fresh", lambda engine: True)
    assert json.loads(bhemu("warm", "NOP", "--json").stdout)["compiled"] == ["the core", "NOP"]


def test_the_real_cache_is_used() -> None:
    """Two processes: what the first compiles, the second finds."""
    command = [sys.executable, "-m", "bhemu", "warm", "NOP"]
    outputs = [
        subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout
        for _ in range(2)
    ]
    assert outputs[1].startswith("everything is there: the core and 1 instruction,")


@pytest.mark.parametrize(
    ("args", "message", "hint"),
    [
        (("SEMPSOT",), "no Tensix instruction is called 'SEMPSOT'", "SEMPOST"),
        (("MOP",), "the front end expands it", ""),
        (("--bogus",), "No such option", ""),
    ],
)
def test_bad_input_is_exit_code_2(bhemu, cache, args, message, hint) -> None:
    result = bhemu("warm", *args)
    assert (result.exit_code, result.stdout, cache.there) == (2, "", [])
    assert message in result.stderr.splitlines()[0]
    assert hint in result.stderr


def test_a_refused_instruction_says_why(bhemu, cache) -> None:
    refused = next(cls for cls in instructions().values() if cls.refused and cls.execute is None)
    result = bhemu("warm", refused.name)
    assert result.exit_code == 2
    assert refused.refused.split()[0] in result.stderr


def test_without_a_compiler_there_is_nothing_to_do() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "bhemu", "warm", "NOP"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_DISABLE_JIT": "1"},
    )
    assert result.returncode == 2
    assert result.stderr.startswith("error: NUMBA_DISABLE_JIT is set")
