"""Runs the blocks of a Markdown page as a reader would: files are written, commands executed.

A block with a title is a file. `sh` and `python` blocks must succeed. In a `console` block each
line behind "$ " is a command; what follows are lines that it must print, in order, others between
them. A line may be cut off at its end, and the time that something took may be another.
`console { .exit-3 }` states the exit code. A `toml` block without a title, a part of a program, is
loaded as one. Other blocks are for the eye.

Before a block that cannot run stands `<!-- not run: WHY -->`, before one that has a test of its own
`<!-- run by tests/FILE.py -->`; `<!-- all run by tests/FILE.py -->` is about every block of a page.
"""

import re
import subprocess
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bhemu.program.schema import load_program

RUN = ("sh", "python", "console", "toml")
_EXIT = re.compile(r"\.exit-(\d+)")
_BLOCK = re.compile(
    r"^(?:<!-- (?P<not>not run: [^\n]+|run by [^\n]+) -->\n)?"
    r"```(?P<language>\w*)(?P<about>[^\n]*)\n(?P<text>.*?)^```",
    re.MULTILINE | re.DOTALL,
)
_TIME = re.compile(r"\b\d+\.\d+ s$")


class Block(NamedTuple):
    """A block of a page; not_run: why it is not run, or what runs it, "" = it is."""

    language: str
    about: str
    text: str
    not_run: str


def blocks(page: Path) -> Iterator[Block]:
    """Each block, in order."""
    text = page.read_text(encoding="utf-8")
    every = re.search(r"^<!-- all (run by .+) -->$", text, re.MULTILINE)
    for match in _BLOCK.finditer(text):
        not_run = every[1] if every else match["not"] or ""
        yield Block(match["language"], match["about"].strip(), match["text"], not_run)


def commands(text: str) -> Iterator[tuple[str, list[str]]]:
    """The commands of a console block, each with the lines that it must print."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, *lines = part.rstrip("\n").split("\n")
        yield command, [line for line in lines if line.strip() not in ("", "...")]


def missing(printed: str, wanted: list[str]) -> str | None:
    """The first of `wanted` that does not stand, in this order, in what was printed."""
    rest = (_TIME.sub("", line) for line in printed.splitlines())
    for line in wanted:
        shown = _TIME.sub("", line).strip()
        if not any(shown in got for got in rest):
            return line
    return None


def run(page: Path, folder: Path, environment: Mapping[str, str]) -> int:
    """Run a page in `folder`; the number of blocks that ran."""
    count = 0
    for language, about, text, not_run in blocks(page):
        title = re.search(r'title="([^"]+)"', about)
        if not_run:
            continue
        if title is not None:
            (folder / title[1]).write_text(text, encoding="utf-8")
        elif language == "sh":
            shell(text, folder, environment)
        elif language == "python":
            performed(["python", "-c", text], folder, environment)
        elif language == "console":
            code = int(match[1]) if (match := _EXIT.search(about)) else 0
            for command, wanted in commands(text):
                printed = shell(command, folder, environment, code)
                line = missing(printed, wanted)
                assert line is None, f"{command}\ndoes not print\n{line}\nbut\n{printed}"
        elif language == "toml":
            load_part(text, folder / "part")
        else:
            continue
        count += 1
    return count


def load_part(text: str, folder: Path) -> None:
    """Load a part of a PROGRAM.toml, with what it leaves out and empty files of the names in it."""
    keys = tomllib.loads(text)
    for name in re.findall(r'"([\w./-]+\.(?:elf|npy))"', text):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
        if name.endswith(".npy"):
            np.save(folder / name, np.zeros((32, 32), np.float32))
    if not {"cores", "tile"} & set(keys):
        folder.mkdir(exist_ok=True)
        (folder / "some.elf").touch()
        text += '\n[cores]\nbrisc = { elf = "some.elf" }\n'
    kind = "tt-metal" if {"tile", "firmware"} & set(keys) else "elf"
    head = f'bhemu = 1\nname = "part"\nkind = "{kind}"\n'
    (folder / "PROGRAM.toml").write_text(head + text, encoding="utf-8")
    load_program(folder / "PROGRAM.toml")


def shell(text: str, folder: Path, environment: Mapping[str, str], code: int = 0) -> str:
    """Run commands as they are written; what they print. They must end with `code`."""
    return performed(["sh", "-e", "-c", text], folder, environment, code)


def performed(
    command: list[str], folder: Path, environment: Mapping[str, str], code: int = 0
) -> str:
    """Run a command; what it prints. It must end with `code`."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=dict(environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )
    assert done.returncode == code, f"{command[-1]}\nexit {done.returncode}:\n{done.stdout}"
    return done.stdout
