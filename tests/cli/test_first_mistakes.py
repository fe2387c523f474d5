"""What a first use gets wrong: an ELF for a program, quotes, names, a wrong end."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner

import bhemu
from bhemu.cli import COMMANDS, main
from bhemu.cli.new import TEMPLATE
from bhemu.cli.options import FilePath

ELFS = Path(bhemu.__file__).parent.parent / "elfs"


def said(*arguments: object) -> tuple[int, str, str]:
    done = CliRunner().invoke(main, [str(one) for one in arguments])
    return done.exit_code, done.stdout, done.stderr


@pytest.fixture
def add1(tmp_path: Path) -> Callable[..., Path]:
    """add1 with changes of its PROGRAM.toml: text, replacement."""

    def made(*changes: tuple[str, str]) -> Path:
        folder = shutil.copytree(ELFS / "add1", tmp_path / "add1")
        text = (folder / "PROGRAM.toml").read_text()
        for old, new in changes:
            assert old in text
            text = text.replace(old, new, 1)
        (folder / "PROGRAM.toml").write_text(text)
        return folder

    return made


@pytest.mark.parametrize("command", ["run", "check", "why"])
def test_an_elf_runs_on_the_core_that_is_named(command: str) -> None:
    elf = ELFS / "hang_timeout" / "trisc0.elf"
    code, out, err = said(command, "-q", elf)
    assert code == 2
    assert f"{elf}: an ELF runs on one core, and none is named" in err
    assert "hint: --core trisc0" in err  # as the file is called
    code, out, err = said(command, "-q", elf, "--core", "trisc0", "--json")
    assert code == {"run": 3, "check": 0, "why": 1}[command], err
    assert "trisc0" in out
    assert said(command, "-q", elf, "--core", "trisc0", "--core", "trisc1")[0] == 2
    assert "2 of them are named" in said(command, elf, "--core", "trisc0", "--core", "trisc1")[2]


def test_an_elf_of_any_name_may_run_on_any_core(tmp_path: Path) -> None:
    elf = shutil.copy(ELFS / "hang_timeout" / "trisc0.elf", tmp_path / "kernel.elf")
    assert "hint: --core CORE, one of brisc, trisc0, trisc1, trisc2, ncrisc" in said("run", elf)[2]


@pytest.mark.parametrize("key", ["set", "buffer", "semaphores", "cores"])
def test_what_belongs_to_a_tile_of_a_chip_is_named_where_it_stands(
    tmp_path: Path, key: str
) -> None:
    folder = shutil.copytree(ELFS / "add1_chip", tmp_path / "chip")
    text = (folder / "PROGRAM.toml").read_text()
    tables = {"set": "[[set]]\nat = 0", "buffer": "[[buffer]]\nindex = 1", "cores": "[cores]\n"}
    if key in tables:
        text = f"{text}\n{tables[key]}\n"
    else:
        text = text.replace("[firmware]", f"{key} = [1]\n[firmware]")
    (folder / "PROGRAM.toml").write_text(text)
    line = 1 + next(
        n
        for n, one in enumerate(text.splitlines())
        if one in (f"[[{key}]]", f"[{key}]") or one.startswith(f"{key} =")
    )
    err = said("check", folder)[2]
    assert f"{key} beside [[tile]]" in err and f"\n  at PROGRAM.toml:{line}\n" in err


def test_what_is_no_text_is_no_program(tmp_path: Path) -> None:
    path = shutil.copy(ELFS / "add1" / "in.npy", tmp_path / "program")
    code, _, err = said("run", path)
    assert code == 2 and "not TOML, but no text, from byte 0 on" in err


def test_an_unknown_key_lists_each_allowed_key_once(add1: Callable[..., Path]) -> None:
    code, _, err = said("check", add1(("timeout_s = 60", 'timeot_s = 60\nstochastic = "off"')))
    assert code == 2
    allowed = err.partition("allowed: ")[2].splitlines()[0].split(", ")
    assert len(allowed) == len(set(allowed)) and "stochastic" in allowed


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        ("at = 0x40000", 'at = "0x40000"', "drop the quotes: at = 0x40000"),
        ("limit = 50_000_000", 'limit = "50_000_000"', "drop the quotes: limit = 50_000_000"),
        ("word = 0x100", 'word = "0x100"', "drop the quotes: word = 0x100"),
        ("release = false", 'release = "false"', "drop the quotes: release = false"),
        ("shape = [32, 32]", 'shape = "[32, 32]"', "drop the quotes: shape = [32, 32]"),
    ],
)
@pytest.mark.parametrize("command", ["run", "check", "trace"])
def test_a_value_in_quotes_and_its_line(
    command: str, old: str, new: str, hint: str, add1: Callable[..., Path]
) -> None:
    line = (ELFS / "add1" / "PROGRAM.toml").read_text().partition(old)[0].count("\n") + 1
    code, _, err = said(command, folder := add1((old, new)))
    assert code == 2
    assert hint in err
    assert f"\n  at PROGRAM.toml:{line}\n" in err
    if command != "trace":
        told = json.loads(said(command, "--json", folder)[1])
        assert told["where"] == {"file": "PROGRAM.toml", "line": line}


def test_a_missing_key_names_what_may_have_been_meant_for_it(add1: Callable[..., Path]) -> None:
    code, _, err = said("check", add1(('file = "in.npy"\ndtype', 'file = "in.npy"\ndtyp')))
    assert code == 2
    assert "[[input]] 1: missing key dtype" in err and "hint: is dtyp meant for it?" in err


def test_a_mistake_that_only_a_launch_finds_has_its_line(add1: Callable[..., Path]) -> None:
    folder = add1(('at = "runtime_args"', 'at = "runtime_argz"'))
    assert "\n  at PROGRAM.toml:14\n" in said("run", folder)[2]
    assert "PROGRAM.toml" not in said("run", "--core", "trisc9=x.elf", folder)[2]


def test_why_tells_of_a_bad_file_once(add1: Callable[..., Path]) -> None:
    code, out, err = said("why", add1(('at = "runtime_args"', 'at = "runtime_argz"')))
    assert (code, out) == (2, "")
    assert err.count("runtime_argz") == 1 and "at PROGRAM.toml:14" in err


def test_an_output_on_top_of_an_input_is_a_warning(add1: Callable[..., Path]) -> None:
    code, _, err = said("check", "-q", add1(("at = 0xC0000", "at = 0x40400")))
    assert code == 0
    assert "warning: input in.npy" in err and "output y" in err and "overlap at 0x40400" in err


@pytest.mark.parametrize(
    "command",
    [
        *("run", "why", "dump", "explain", "coverage", "coverage --opcodes", "disasm"),
        *("profile --diff", "isa --coverage", "explain --coverage"),
    ],
)
def test_every_command_names_the_line(command: str, add1: Callable[..., Path]) -> None:
    folder = add1(('dtype = "bf16"', 'dtype = "bf17"'))
    name, *flags = command.split()
    before = [ELFS / "add1"] if name == "profile" else []
    code, _, err = said(name, *before, *flags, folder)
    assert code == 2 and "\n  at PROGRAM.toml:21\n" in err, err


def test_the_program_of_the_current_folder_has_lines_too(
    add1: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(add1(('dtype = "bf16"', 'dtype = "bf17"')))
    assert "\n  at PROGRAM.toml:21\n" in said("run")[2]


def test_of_several_programs_the_line_is_that_of_the_wrong_one(add1: Callable[..., Path]) -> None:
    folder = add1(('at = "runtime_args"', 'at = "runtime_args'))
    told = json.loads(said("coverage", "--json", ELFS / "add1", folder)[1])
    assert told["where"] == {"file": "PROGRAM.toml", "line": 14}
    assert "PROGRAM.toml:" not in said("coverage", ELFS / "add1", ELFS / "nosuch")[2]


@pytest.mark.parametrize(
    "flags",
    [
        ("run", "--in", f"{ELFS}/add1/in.npy@0x40000:bf17"),
        ("run", "--in", f"{ELFS}/add1/in.npy@0x40000:bf16:tile32:99x32"),
        ("run", "--in", f"{ELFS}/add1/expected.npy@0x1FFFF0:bf16"),
        ("run", "--until", "nosuch=1"),
        ("run", "--core", f"trisc0={ELFS}/add1/in.npy"),
        ("why", "--until", "nosuch=1"),
        ("numerics", "--against", "z=in.npy"),
    ],
)
def test_a_mistake_in_a_flag_is_none_of_the_file(flags: tuple[str, ...]) -> None:
    code, _, err = said(flags[0], ELFS / "add1", *flags[1:])
    assert code == 2 and "PROGRAM.toml" not in err, err
    assert flags[1] in err or flags[2].partition("=")[2] in err


def test_a_name_of_any_length_is_no_program() -> None:
    code, _, err = said("explain", "A" * 5000)
    assert code == 2 and err.startswith("error: nothing is called")


def test_a_word_of_until_that_is_no_symbol_has_its_line(add1: Callable[..., Path]) -> None:
    folder = add1(("word = 0x100", 'word = "nosuch"'))
    assert (
        "[run] until: no symbol or register nosuch\n  at PROGRAM.toml:36\n"
        in said("run", folder)[2]
    )


_A_PATH = re.compile(r"FILE|FOLDER|LIB|SESSION|GCC|PROGRAM|OTHER|[.](npz|toml|html|json|elf)")
_MORE = ("WORD", "@", "NAME=", "CORE=")  # than a path alone
PATHS = [
    (name, option)
    for name in COMMANDS
    for option in main.get_command(click.Context(main), name).params  # type: ignore[union-attr]
    if isinstance(option.type, FilePath)
    or (_A_PATH.search(option.metavar or "") and not any(one in option.metavar for one in _MORE))
]


@pytest.mark.parametrize(("name", "option"), PATHS, ids=[f"{n} {o.name}" for n, o in PATHS])
def test_an_empty_path_is_refused_by_name(name: str, option: click.Parameter) -> None:
    flag = option.opts[:1] if isinstance(option, click.Option) else []
    code, _, err = said(name, *flag, "")
    assert code == 2 and "no file or folder has an empty name" in err, err
    assert (flag or [option.make_metavar(click.Context(main))])[0].rstrip(".") in err


@pytest.mark.parametrize(
    ("command", "hint"),
    [
        ("sweep x.npz", "docs/sweep.md shows one"),
        ("build x.npz", "bhemu new NAME --kernel writes one with its sources"),
        ("sweep bytes", "docs/sweep.md shows one"),
        ("check empty.toml", "begin with bhemu = 1, the version of the schema"),
        ("check add1/far.toml", "did you mean brisc.elf?"),
        ("check new/PROGRAM.toml", "bhemu build new"),
        ("build add1/PROGRAM.toml", "beside PROGRAM.toml: bhemu new NAME --kernel"),
        ("gdb add1 --port 0 --host 999.1.1.1", "--host takes an address of this machine"),
        ("warm ZZZZZ", "bhemu explain lists all of them"),
        ("run add1 --plugin add2/x.py", "there is no folder add2"),
        ("run add1 --plugin x.np", "did you mean x.npz?"),
        ("run add1 --log-commits no/x", "name another folder"),
        ("coverage add1 --html bytes", "name another folder"),
        ("bench", "go to bhemu's checkout"),
        ("bench --elfs no", "go to bhemu's checkout"),
    ],
)
def test_a_hint_leads_on(
    command: str, hint: str, add1: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder := add1().parent)
    np.savez(folder / "x.npz", a=np.zeros(100_000))
    (folder / "bytes").write_bytes(b"\xff")
    (folder / "empty.toml").write_text("")
    text = (folder / "add1" / "PROGRAM.toml").read_text()
    (folder / "add1" / "far.toml").write_text(text.replace("brisc.elf", "brisk.elf"))
    shutil.copytree(TEMPLATE, folder / "new")
    code, _, err = said(*command.split())
    assert code == 2 and re.search(f"hint: .*{re.escape(hint)}", err), err


def test_an_end_that_was_nearly_met_says_what_stands_there(add1: Callable[..., Path]) -> None:
    code, _, err = said("run", "-q", add1(("equals = 0xD0E0", "equals = 0xD0E1")))
    assert code == 3
    assert "word 0x100 was 0xd0e1 (it is 0xd0e0)" in err


def test_a_livelock_says_it_too() -> None:
    """trisc0 has written 0x104 and goes round; 0x100 holds nothing, which says nothing."""
    flags = ("--until", "0x104=0x7", "--until", "0x100=0x7", "--set", "0x104=u32:9")
    code, _, err = said("run", "-q", ELFS / "hang_timeout", *flags)
    assert code == 3
    assert "the run was to end when word 0x104 was 0x7 (it is 0x9)" in err
    assert "0x100" not in err


def test_a_new_program_with_a_dot_in_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, err = said("new", "v1.2")
    assert code == 2
    assert "v1.2 is taken for a file, which ends in .2: that of a program ends in .toml" in err
    assert "hint: v1.2.toml, or in a folder of that name v1.2/PROGRAM.toml" in err
    assert said("new", "v1.2/PROGRAM.toml")[0] == 0


def test_print_says_that_a_name_is_not_in_scope() -> None:
    _, out, err = said("step", ELFS / "add1", "-x", "break main; continue; print nothing_so")
    shown = out + err
    assert "nothing_so is not in scope here, in " in shown
    assert "hint: info locals lists what is" in shown
