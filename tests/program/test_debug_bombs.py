"""Debug information that would be read for ever ends, and what is wrong of it is bad input."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import debug_bombs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bhemu
from bhemu.debug.places import Value
from bhemu.errors import InputError
from bhemu.program import variables
from bhemu.program.dwarf import Debug
from bhemu.program.variables import Frame

ROOT = Path(bhemu.__file__).parent.parent
SECONDS, BYTES = 2.0, 200 << 20
READ = """
import sys, pathlib
from bhemu.program.dwarf import Debug
print(Debug(pathlib.Path(sys.argv[1]).read_bytes(), "k.elf").problem)
"""


# A process of its own starts the command: what a test's process holds counts as its child's memory.
WATCH = """
import json, os, resource, sys
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
both = [(os.POSIX_SPAWN_DUP2, 1, 2)]
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=both)
_, status, used = os.wait4(pid, 0)
seconds = used.ru_utime + used.ru_stime
print("\\n" + json.dumps([os.waitstatus_to_exitcode(status), seconds, used.ru_maxrss]))
"""


def ended(*command: str) -> tuple[int, str, float, int]:
    """Exit code, what was printed, seconds of the processor and bytes of memory of a process."""
    watched = [sys.executable, "-c", WATCH, sys.executable, *command]
    ran = subprocess.run(watched, cwd=ROOT, capture_output=True, text=True, check=True)
    said, _, figures = ran.stdout.rstrip("\n").rpartition("\n")
    code, seconds, memory = json.loads(figures)
    return code, said, seconds, memory << 10


@pytest.fixture(params=debug_bombs.BOMBS)
def bomb(request, tmp_path: Path) -> Path:
    path = tmp_path / f"{request.param}.elf"
    path.write_bytes(debug_bombs.BOMBS[request.param]())
    return path


def test_reading_it_ends(bomb: Path) -> None:
    code, said, seconds, memory = ended("-c", READ, str(bomb))
    assert (code, "Traceback" in said) == (0, False)
    assert seconds < 10, said
    assert memory < BYTES


COMMANDS: Sequence[Sequence[str]] = (
    ("check", "--core", "brisc={}"),
    ("disasm", "{}"),
    ("run", "--core", "brisc={}", "-q"),
    ("step", "--core", "brisc={}", "-q", "-x", "continue; bt; info source"),
)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
@pytest.mark.parametrize("name", debug_bombs.LINE_BOMBS)
def test_counts_of_entries_without_bytes(tmp_path: Path, name: str, command: Sequence[str]) -> None:
    """2^40 folders, or files, of a format of no bytes."""
    path = tmp_path / "k.elf"
    path.write_bytes(debug_bombs.LINE_BOMBS[name]())
    assert path.stat().st_size < 700
    words = (word.format(path) for word in command)
    code, said, seconds, memory = ended("-m", "bhemu", *words)
    assert code == {"check": 0, "disasm": 0}.get(command[0], 6), said  # 6: the ELF's own ebreak
    assert seconds < SECONDS
    assert memory < BYTES


def shown(data: bytes) -> str:
    """The global v as `print v` shows it."""
    debug = Debug(data, "k.elf")
    assert debug.problem == ""
    frame = Frame(debug, debug_bombs.BASE, [0] * 32, lambda at, size: bytes(size))
    found = Value.variable(frame, "v", 0)
    assert found is not None
    return found.text("")


def test_a_structure_of_structures_is_shown_as_far_as_that_takes() -> None:
    with pytest.raises(InputError, match="read again and again"):
        shown(debug_bombs.records())


def test_an_array_of_itself_has_no_size() -> None:
    assert shown(debug_bombs.array())


@pytest.mark.parametrize("form", [debug_bombs.REF4, debug_bombs.REF_ADDR])
def test_a_reference_outside_of_its_unit_is_bad_input(form: int) -> None:
    with pytest.raises(InputError, match="damaged debug information"):
        shown(debug_bombs.outside(form))


def test_layouts_are_read_within_bounds(tmp_path: Path) -> None:
    path = tmp_path / "k.elf"
    path.write_bytes(debug_bombs.records())
    with pytest.raises(InputError, match=r"structures without end|again and again"):
        variables.structure(path, "s")
    for data in (debug_bombs.sibling(), debug_bombs.outside(debug_bombs.REF4)):
        path.write_bytes(data)
        assert variables.structure(path, "s") is None


HELD = [ROOT / "elfs" / name for name in ("llk_like/trisc1.elf", "matmul/trisc2.elf")]


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(HELD), st.data())
def test_damage_anywhere_is_bad_input(path: Path, data: st.DataObject) -> None:
    """Of an ELF as a compiler writes it: every variable is shown, or InputError."""
    built = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 8))):
        built[data.draw(st.integers(0x400, len(built) - 1))] = data.draw(st.integers(0, 255))
    debug = Debug(bytes(built), "k.elf")
    for block in debug.blocks[:20]:
        frame = Frame(debug, block.ranges[0].lo, [0x1000] * 32, lambda at, size: bytes(size))
        for name in [*debug.globals, "p", "i"][:8]:
            try:
                found = Value.variable(frame, name, 0)
                assert found is None or isinstance(found.text(""), str)
            except InputError:
                pass
