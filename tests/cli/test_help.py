"""Help: the first screen, sections, one screen a command; old names; completion."""

import json
import os
import subprocess
import sys

import click
import pytest

from bhemu.cli import COMMANDS, main

SCREEN, FIRST_SCREEN = 40, 24  # lines of 80 columns
FIRST = "run step profile why report trace build new explain gdb sweep simulator"


def text(bhemu, *arguments: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COLUMNS", "80")
    result = bhemu(*arguments)
    assert result.exit_code == 0
    return result.stdout


def test_the_first_screen_has_the_commands_in_their_order(bhemu, monkeypatch) -> None:
    shown = text(bhemu, "--help", monkeypatch=monkeypatch)
    assert shown.count("\n") <= FIRST_SCREEN
    first = shown.split("Commands:\n")[1].partition("\n\n")[0]
    names = [line.split()[0] for line in first.splitlines() if line[2] != " "]
    assert names == FIRST.split()
    below = shown.split("More: ")[1].replace(",", " ").split()
    assert {*FIRST.split(), *below} == {*COMMANDS} - {"isa", "disasm"}
    assert " isa " not in shown and " disasm " not in shown


@pytest.mark.parametrize("name", COMMANDS)
def test_help_fits_a_screen_and_names_every_option(bhemu, monkeypatch, name: str) -> None:
    shown = text(bhemu, name, "--help", monkeypatch=monkeypatch)
    assert shown.count("\n") <= SCREEN
    command = main.get_command(click.Context(main), name)
    assert command is not None
    options = [param for param in command.params if isinstance(param, click.Option)]
    words = shown.replace(",", " ").split()
    assert [one.opts for one in options if not set(one.opts) <= set(words)] == []
    if "--help-all" in words:
        whole = text(bhemu, name, "--help-all", monkeypatch=monkeypatch)
        said = " ".join(whole.split())
        assert [one for one in options if " ".join((one.help or "").split()) not in said] == []


def test_options_stand_in_sections(bhemu, monkeypatch) -> None:
    shown = text(bhemu, "run", "--help", monkeypatch=monkeypatch)
    titles = [line for line in shown.splitlines() if line.endswith(":") and line[0] != " "]
    assert titles == [
        "Options:",
        "The program, beside its PROGRAM.toml:",
        "The machine and its run (docs/options.md):",
        "What is written:",
    ]
    assert "--gdb" in shown.split(titles[1])[0]
    assert "--late SEED" in shown.split(titles[2])[1]


def test_explain_has_what_isa_and_disasm_have(bhemu) -> None:
    assert bhemu("explain").stdout == bhemu("isa").stdout
    assert bhemu("explain", "--c-header").stdout == bhemu("isa", "--c-header").stdout
    about = bhemu("explain", "stallwait").stdout
    assert all(line.strip() in about for line in bhemu("isa", "stallwait").stdout.splitlines()[1:])
    told = json.loads(bhemu("explain", "stallwait", "--json").stdout)
    assert told["explained"][0]["instruction"] == json.loads(
        bhemu("isa", "stallwait", "--json").stdout
    )
    given = ("elfs/add1", "--core", "trisc1", "--symbol", "main")
    assert bhemu("explain", *given).stdout == bhemu("disasm", *given).stdout
    assert "main" in bhemu("explain", "elfs/add1/trisc1.elf").stdout
    assert bhemu("explain", "--riscv", "0x8067").stdout == "0x00008067  ret\n"


def complete(words: str) -> list[str]:
    """What the shell is told to offer for the last of the words."""
    variables = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    done = subprocess.run(
        [sys.executable, "-m", "bhemu"],
        env={**os.environ, **variables, "_BHEMU_COMPLETE": "bash_complete"},
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""
    return done.stdout.split()


def test_a_shell_completes_commands_options_values_and_files(bhemu) -> None:
    script = bhemu("completion", "bash").stdout
    assert "_BHEMU_COMPLETE=bash_complete" in script and "bhemu" in script
    assert complete("bhemu si") == ["plain,simulator"]
    assert complete("bhemu run --tim") == ["plain,--timeout", "plain,--timing"]
    assert complete("bhemu run --engine u") == ["plain,unicorn"]
    assert complete("bhemu run elfs/a") == ["file,elfs/a"]
    assert complete("bhemu check --tool races,or") == ["plain,races,order"]
    assert complete("bhemu explain cb_po") == ["plain,cb_pop", "file,cb_po"]
