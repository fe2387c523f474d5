"""`bhemu run --plugin FILE.py`: functions of a user that a run calls."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ELFS = ROOT / "elfs"


def plugin(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "plugin.py"
    path.write_text(text)
    return path


def test_the_example_counts_packed_bytes(bhemu) -> None:
    done = bhemu("run", ELFS / "add1", "--plugin", ROOT / "examples" / "packed_bytes.py")
    assert done.exit_code == 0
    assert "2048 bytes packed as bf16" in done.stdout and "pack.c:" in done.stdout
    assert "end condition met, clock 2688" in done.stdout


def test_a_chip_and_several_plugins(bhemu, tmp_path: Path) -> None:
    text = (
        "def install(machine):\n"
        "    seen = []\n"
        "    machine.on_pc('trisc1', 'main', lambda at: seen.append(at.tile.xy))\n"
        "    return lambda: print('mains on', sorted(seen))\n"
    )
    example = ROOT / "examples" / "packed_bytes.py"
    one = plugin(tmp_path, text)
    done = bhemu("run", ELFS / "matmul_mcast", "--plugin", example, "--plugin", one)
    assert done.exit_code == 0
    assert "mains on [(1, 2), (1, 3), (2, 2), (2, 3)]" in done.stdout
    assert "bytes packed as bf16" in done.stdout


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "def install(machine):\n    machine.on_word('PACR', lambda w: 1 // 0)\n",
            ":2: <lambda>: Zero",
        ),
        ("def install(machine):\n    machine.on_word('PACK', print)\n", ":2: install: no Tensix"),
        ("def install(machine):\n    return nothing\n", ":2: install: NameError"),
        ("import nothing_of_that_name\n", ":1: <module>: ModuleNotFoundError"),
        ("def install(machine)\n", ":1: SyntaxError"),
        ("def install(machine):\n    return lambda: {}[1]\n", ":2: <lambda>: KeyError"),
        ("x = 1\n", "has no function install"),
        ("import sys\nsys.exit(0)\n", ":2: <module>: SystemExit: 0"),
        ("def install(machine):\n    quit()\n", ":2: install: SystemExit"),
        ("def install(machine):\n    return lambda: exit(0)\n", ":2: <lambda>: SystemExit: 0"),
        (
            "def install(machine):\n    machine.on_word('PACR', lambda w: exit(0))\n",
            ":2: <lambda>: SystemExit: 0",
        ),
        ("def install(machine):\n    return 5\n", "install returns int"),
    ],
)
def test_what_is_wrong_names_file_and_line(bhemu, tmp_path: Path, text: str, told: str) -> None:
    path = plugin(tmp_path, text)
    done = bhemu("run", ELFS / "add1", "--plugin", path)
    assert done.exit_code == 2 and "Traceback" not in done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert told in line and str(path) in line
    assert ("SystemExit" in told) == ("a plugin ends by a return" in done.stderr)


def test_a_plugin_that_is_not_there(bhemu, tmp_path: Path) -> None:
    done = bhemu("run", ELFS / "add1", "--plugin", tmp_path / "nothing.py")
    assert done.exit_code == 2 and "nothing.py" in done.stderr


def test_the_plugins_of_the_page_run(bhemu, tmp_path: Path) -> None:
    """They tell who has sent requests to the NoC, and what is packed."""
    page = (ROOT / "docs" / "plugins.md").read_text()
    sent, packed = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    done = bhemu("run", ELFS / "matmul_mcast", "--plugin", plugin(tmp_path, sent))
    assert done.exit_code == 0
    assert re.search(r"^\('ncrisc', 'tile \(1,2\) ncrisc pc 0x.* in .*', \d+\)$", done.stdout, re.M)
    done = bhemu("run", ELFS / "add1", "--plugin", plugin(tmp_path, packed))
    assert done.exit_code == 0 and "2048 bytes of bf16\n" in done.stdout
    no = packed.replace("sizes[word.l1_format]", "sizes[len([word.l1_format, word.end])]")
    done = bhemu("run", ELFS / "add1", "--plugin", plugin(tmp_path, no))
    assert done.exit_code == 2 and "pack: makes a list, string, array" in done.stderr
