"""Runs the blocks of a Markdown page as a reader would: files are written, commands executed.

A block with a title is a file. `sh` and `python` blocks must succeed. In a `console` block each
line behind "$ " is a command; what follows are lines that it must print, in order, others between
them. A line may be cut off at its end. `console { .exit-3 }` states the exit code. Other blocks are
for the eye.
"""

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

_EXIT = re.compile(r"\.exit-(\d+)")
_BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> Iterator[tuple[str, str, str]]:
    """(language, the rest of the fence, text) of each block, in order."""
    for match in _BLOCK.finditer(page.read_text(encoding="utf-8")):
        yield match[1], match[2].strip(), match[3]


def commands(text: str) -> Iterator[tuple[str, list[str]]]:
    """The commands of a console block, each with the lines that it must print."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, *lines = part.rstrip("\n").split("\n")
        yield command, [line for line in lines if line.strip()]


def missing(printed: str, wanted: list[str]) -> str | None:
    """The first of `wanted` that does not stand, in this order, in what was printed."""
    rest = iter(printed.splitlines())
    for line in wanted:
        if not any(line.strip() in got for got in rest):
            return line
    return None


def run(page: Path, folder: Path, environment: Mapping[str, str]) -> int:
    """Run a page in `folder`; the number of blocks that ran."""
    count = 0
    for language, about, text in blocks(page):
        title = re.search(r'title="([^"]+)"', about)
        if title is not None:
            (folder / title[1]).write_text(text, encoding="utf-8")
        elif language == "sh":
            shell(text, folder, environment)
        elif language == "python":
            done = subprocess.run([sys.executable, "-c", text], cwd=folder, check=False)
            assert done.returncode == 0, text
        elif language == "console":
            code = int(match[1]) if (match := _EXIT.search(about)) else 0
            for command, wanted in commands(text):
                printed = shell(command, folder, environment, code)
                line = missing(printed, wanted)
                assert line is None, f"{command}\ndoes not print\n{line}\nbut\n{printed}"
        else:
            continue
        count += 1
    return count


def shell(text: str, folder: Path, environment: Mapping[str, str], code: int = 0) -> str:
    """Run commands as they are written; what they print. They must end with `code`."""
    done = subprocess.run(
        ["sh", "-e", "-c", text],
        cwd=folder,
        env=dict(environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )
    assert done.returncode == code, f"{text}\nexit {done.returncode}:\n{done.stdout}"
    return done.stdout
