"""What a stranger's files cannot do: act on the terminal, end in a traceback or a wrong code."""

import json
import os
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from elf_builder import Elf, Raw, Sec, Seg, Sym

from bhemu.errors import BhemuError
from bhemu.machine.saved import SAVED
from bhemu.machine.tile import Tile
from bhemu.riscv.assembly import EBREAK, PARK, code
from bhemu.system import interrupts
from bhemu.text import one_line, printable

ROOT = Path(__file__).resolve().parents[2]
EVIL = "\x1b]0;owned\x07\nerror: forged\r\u202egnp.\x9b31m"
BASE = 0x10000


def visible(text: str) -> None:
    """No character acts on the terminal and no line is forged."""
    assert all(c.isprintable() or c in "\n\t" for c in text), repr(text)
    assert not any(line.startswith("error: forged") for line in text.splitlines())


def line_table() -> bytes:
    """Every address of the code comes from line 1 of a file with that name."""
    head = bytes([1, 1, 1, 0xFB, 14, 13]) + bytes([0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0])
    head += EVIL.encode() + b".c\0\0\0\0\0"
    program = b"\0\x05\x02" + BASE.to_bytes(4, "little") + b"\x01\x02\x40\0\x01\x01"
    body = b"\x04\0" + len(head).to_bytes(4, "little") + head + program
    return len(body).to_bytes(4, "little") + body


@pytest.fixture
def evil(tmp_path: Path) -> Path:
    """A program all of whose names are hostile; its core stops on ebreak."""
    folder = tmp_path / EVIL.replace("/", "")
    folder.mkdir()
    elf = Elf(
        [Seg(BASE, code(EBREAK, PARK))],
        [Sec(".text", BASE), Sec(EVIL, BASE + 0x1000)],
        [Sym(EVIL, BASE, 64), Sym("data" + EVIL, BASE + 0x100, 4, "OBJECT")],
        raw=[Raw(".debug_line", line_table())],
    )
    (folder / f"{EVIL}.elf").write_bytes(bytes(elf))
    (folder / f"{EVIL}.c").write_text(EVIL.replace("\n", "") * 2)
    np.save(folder / f"{EVIL}.npy", np.zeros(4, np.float32))
    name = json.dumps(EVIL, ensure_ascii=True)
    tensor = 'dtype = "bf16"\nlayout = "rows"\nat = 0x50000\nshape = [4]\nNAME'
    text = f"bhemu = 1\nname = {name}\n[cores]\n"
    text += f"trisc0 = {{ elf = {json.dumps(EVIL + '.elf')} }}\n"
    text += f"[[input]]\n{tensor}".replace("NAME", f"file = {json.dumps(EVIL + '.npy')}\n")
    text += f"[[output]]\nname = {name}\n{tensor}".replace(
        "NAME", f"save = {json.dumps(EVIL + '2.npy')}\nexpect = {json.dumps(EVIL + '.npy')}\n"
    )
    (folder / "PROGRAM.toml").write_text(text)
    return folder


@pytest.mark.parametrize("words", [(EBREAK, PARK), (PARK,)], ids=["assert", "park"])
@pytest.mark.parametrize(
    "command",
    [
        ("run", "-v"),
        ("run", "--json"),
        ("check",),
        ("trace",),
        ("numerics",),
        ("dump",),
        ("step", "-x", "where; dis pc 2; info; step; continue; where; bt"),
        ("disasm",),
        ("run", "--until", "NAME=1"),
        ("run", "--set", f"{EVIL}=u32:1"),
        ("run", "--core", f"{EVIL}=x"),
        ("disasm", "--symbol", EVIL),
        ("isa", EVIL),
        (EVIL,),
    ],
)
def test_no_text_of_a_file_acts_on_the_terminal(evil: Path, bhemu, command, words) -> None:
    elf = evil / f"{EVIL}.elf"
    elf.write_bytes(elf.read_bytes().replace(code(EBREAK, PARK), code(*words).ljust(8, b"\0")))
    target = [elf if command[0] == "disasm" else evil] if command[0] in PROGRAM_COMMANDS else []
    result = bhemu(command[0], *target, *command[1:])
    assert result.exit_code in (0, 2, 3, 6), result.stderr
    visible(result.stdout + result.stderr)
    if command[:2] == ("run", "-v") and words[0] == EBREAK:
        assert printable(EVIL.encode().decode()) in result.stderr


PROGRAM_COMMANDS = ("run", "check", "trace", "numerics", "dump", "step", "disasm")


def test_escapes() -> None:
    assert printable("a\x1b\u202e\udc80\U000e0001é") == "a\\x1b\\u202e\\udc80\\U000e0001é"
    assert one_line("a\n b\x00") == "a b\\x00"
    shown = one_line(f"no place is called {'x' * 50_000}{'y' * 50_000}, of all names")
    assert shown == f"no place is called {'x' * 100}[...]{'y' * 99}, of all names"
    assert len(one_line("x " * 100_000)) < 2100


# Saved states


@pytest.fixture(scope="module")
def state(tmp_path_factory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("state") / "s.npz"
    Tile().snapshot().save(path)
    with np.load(path) as archive:
        return {name: archive[name] for name in archive.files}


@pytest.mark.parametrize("number", [-1, 100, 1 << 40, -(1 << 63), (1 << 63) - 1])
def test_no_number_in_a_saved_state_is_an_internal_error(
    state: dict[str, Any], tmp_path: Path, bhemu, number: int
) -> None:
    wide = [m.name for m in SAVED if np.dtype(m.dtype) == np.int64]
    for name in ("all", "core_state", "fifo_write", "gate_core", "src_fmt", "cc_depth", "mop_on"):
        chosen = wide if name == "all" else [name]
        arrays = {n: np.full_like(a, number) if n in chosen else a for n, a in state.items()}
        arrays["gate_full"] = np.ones_like(state["gate_full"])
        np.savez(tmp_path / "s.npz", **arrays)
        result = bhemu("dump", tmp_path / "s.npz", "--all")
        assert result.exit_code in (0, 2), (name, result.stderr)
        assert name in ("all", "src_fmt") or name.removesuffix("_write") in result.stderr


# Mistakes of a user


def test_addresses_and_counts_of_any_length(write, bhemu) -> None:
    path = write(PARK)
    for text in ("9" * 20, "9" * 5000, "0x1" + "0" * 5000, "1" + "0" * 12):
        for command in ("until", "break", "mem", "dis", "x/4", "step", "lreg", "delete", "list"):
            result = bhemu("step", path, "-x", f"{command} {text}")
            assert result.exit_code in (0, 2), (command, text[:30], result.stderr)
    for flag in ("--until", "--set", "--in", "--expect"):
        for text in (f"x+{'9' * 5000}", f"0x1{'0' * 5000}"):
            ending = {"--until": "=1", "--set": "=u32:1"}.get(flag, ":bf16")
            lead = "" if flag in ("--until", "--set") else "a.npy@"
            assert bhemu("run", path, flag, f"{lead}{text}{ending}").exit_code == 2


@pytest.mark.parametrize(
    "line",
    [
        "seed = 0x1" + "0" * 5000,
        "limit = 99999999999999999999999999",
        "until = [{ word = 0x" + "f" * 5000 + ", equals = 1 }]",
        "until = [{ word = 'x+" + "9" * 5000 + "', equals = 1 }]",
        "timeout_s = 1e999",
    ],
    ids=range(5),
)
def test_numbers_of_a_program_file(write, bhemu, line: str) -> None:
    assert bhemu("run", write(PARK, run=line)).exit_code == 2


@pytest.mark.parametrize("name", ["a" * 300, "x/" * 3000, "\udcff"])
@pytest.mark.parametrize("command", ["run", "check", "dump", "disasm", "step", "trace"])
def test_names_that_no_file_has(bhemu, command: str, name: str) -> None:
    for argument in (name, f"{name}.toml", f"{name}.npz"):
        result = bhemu(command, argument)
        assert result.exit_code == 2, result.stderr
        visible(result.stderr)
    if command in ("run", "check", "step", "trace"):
        assert bhemu(command, "--core", f"trisc0={name}").exit_code == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ("new", "NAME"),
        ("bench", "--markdown", "NAME", "add1"),
        ("bench", "--ttsim", "NAME", "add1"),
        ("diff", "elfs/add1", "--ttsim", "NAME"),
        ("isa", "--coverage", "NAME"),
        ("isa", "--coverage", "/proc/kmsg"),
        ("numerics", "elfs/add1", "--against", "y=NAME"),
        ("numerics", "elfs/add1", "--against", "y=/proc/kmsg"),
        ("dump", "NAME.npz", "--diff", "NAME"),
        ("disasm", "/proc/kmsg"),
        ("run", "/proc/kmsg"),
        ("run", "elfs/add1", "--save", "/dev/null"),
        ("run", "elfs/add1", "--save", "elfs/add1/in.npy"),
        ("run", "elfs/add1", "--save", "NAME"),
    ],
    ids=" ".join,
)
def test_files_that_no_command_can_use(bhemu, monkeypatch, arguments: tuple[str, ...]) -> None:
    monkeypatch.chdir(ROOT)
    result = bhemu(*(text.replace("NAME", "a" * 300) for text in arguments))
    empty = arguments[1:] == ("--coverage", "/proc/kmsg")  # it says that it holds nothing
    assert result.exit_code == (0 if empty else 2), result.stderr


def command_line(arguments: str, memory: int = 0, **more: Any) -> subprocess.CompletedProcess[str]:
    limit = f"ulimit -v {memory}; " if memory else ""
    return subprocess.run(
        ["bash", "-c", f"{limit}exec {sys.executable} -m bhemu {arguments}"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=300,
        **more,
    )


def test_json_that_finds_no_room_is_said() -> None:
    for arguments in ("run nosuch.toml --json", "run --bad --json", "isa --json"):
        result = command_line(f"{arguments} >/dev/full")
        assert (result.returncode, result.stdout) == (2, "")
        assert result.stderr.startswith("error: "), arguments


@pytest.mark.parametrize("kilobytes", [60_000, 120_000, 200_000, 300_000, 400_000, 450_000])
def test_low_memory_is_a_limit(kilobytes: int) -> None:
    """Not 1, "an output differs": the engine and OpenBLAS would end the process so."""
    result = command_line(f"run -q {ROOT / 'elfs' / 'add1'}", kilobytes)
    assert (result.returncode, result.stdout) == (7, "")
    assert result.stderr.startswith("error: [MEMORY] there is not enough memory")


def test_an_interrupt_is_no_traceback_however_early() -> None:
    for delay in (0.01, 0.03, 0.06, 0.1, 0.15, 0.2, 0.3, 0.5, 0.8):
        code, said = interrupted(delay)
        assert (code, "Traceback" in said) == (130, False), (delay, said)


def test_what_is_imported_before_the_command_is_little() -> None:
    """An interrupt while Python imports the package itself could only be a traceback."""
    script = (
        "import sys; before = set(sys.modules); import bhemu\n"
        "print(*sorted({name.partition('.')[0] for name in set(sys.modules) - before}))"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "BHEMU_COVERAGE": ""},
    )
    allowed = {"bhemu", "importlib", "os", "stat", "posixpath", "genericpath", "warnings"}
    assert set(done.stdout.split()) <= allowed | {"_stat", "_collections_abc", "errno"}


@pytest.mark.parametrize("module", ["bhemu.system.interrupts", "bhemu.cli", "numpy"])
def test_an_interrupt_in_the_middle_of_an_import_is_no_traceback(module: str) -> None:
    script = (
        "import sys\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {module!r}: raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupt())\n"
        "from bhemu.__main__ import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "run", str(ROOT / "elfs" / "add1")],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr.strip() == "interrupted"


def interrupted(delay: float) -> tuple[int, str]:
    """(exit code, stderr) of a run that never ends by itself, `delay` after Python has started."""
    program = (
        "import sys\nfrom bhemu.__main__ import main\n"
        "sys.stdout.write('ready\\n'); sys.stdout.flush(); main()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, "run", "--livelock", "0", str(ROOT / "elfs/hang_flag")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)[1]
    return process.returncode, said


def test_an_interrupt_that_was_swallowed_ends_the_next_run() -> None:
    """Some libraries and every C callback swallow exceptions."""
    tile = Tile()
    tile.write(BASE, code(PARK))
    tile.core["trisc0"].set_reset_pc(BASE)
    tile.core["trisc0"].release()
    with pytest.raises(KeyboardInterrupt):
        interrupts._on_interrupt(signal.SIGINT, None)
    assert tile.run("idle").reason == "interrupt"
    assert tile.run("idle").reason == "idle"


def test_an_error_that_is_raised_again_does_not_grow() -> None:
    tile = Tile()
    tile.write(BASE, code(EBREAK))
    tile.core["trisc0"].set_reset_pc(BASE)
    tile.core["trisc0"].release()
    lengths = []
    for _ in range(6):
        with pytest.raises(BhemuError) as caught:
            tile.run("idle")
        lengths.append(len(traceback.extract_tb(caught.value.__traceback__)))
    assert len(set(lengths[1:])) == 1, lengths
