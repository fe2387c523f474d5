"""Bugs with corrected twins: small programs whose source is the list of words that a test gives.

A kernel is a list of lines; each is a word or a list of words and has its number (from 1) as line
of the file CORE.s. `folder` writes ELFs, data and PROGRAM.toml; `found` asks `bhemu why`.
"""

import json
import shutil
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from click.testing import CliRunner
from elf_builder import Elf, Raw, Sec, Seg, Sym

import bhemu as package
from bhemu.cli import main
from bhemu.riscv.assembly import PARK, code, li, sw
from bhemu.why.findings import CLASS_OF

ROOT = Path(package.__file__).parent.parent
TEXT = {
    "brisc": 0x4000, "trisc0": 0x10000, "trisc1": 0x14000, "trisc2": 0x18000, "ncrisc": 0x1C000,
}  # fmt: skip
Line = int | list[int]


def store(address: int, value: int, width: int = 2) -> list[int]:
    """One line: value to address; t0 and t1 are overwritten."""
    low = (address & 0xFFF) - ((address & 0x800) << 1)
    return [*li(6, value), *li(5, address - low), sw(6, 5, low, width)]


def _uleb(value: int) -> bytes:
    return bytes([value & 0x7F | 0x80]) + _uleb(value >> 7) if value > 0x7F else bytes([value])


def _line_table(name: str, base: int, kernel: Sequence[Line]) -> bytes:
    """.debug_line, DWARF 4: every line from its first word on."""
    lengths = bytes([0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1])
    header = struct.pack("<BBBbBB", 1, 1, 1, -5, 14, 13) + lengths
    header += b"\0" + name.encode() + b"\0\0\0\0\0"
    rows = b"\0\x05\x02" + struct.pack("<I", base)
    for line in kernel:
        words = len(line) if isinstance(line, list) else 1
        rows += b"\x01" + b"\x02" + _uleb(4 * words) + b"\x03\x01"  # copy, advance pc, next line
    rows += b"\0\x01\x01"
    body = struct.pack("<HI", 4, len(header)) + header + rows
    return struct.pack("<I", len(body)) + body


def elf(core: str, kernel: Sequence[Line]) -> bytes:
    """The ELF of a kernel that parks at its end."""
    kernel = [*kernel, PARK]
    text = code(*kernel)
    base = TEXT[core]
    return bytes(
        Elf(
            segments=[Seg(base, text)],
            sections=[Sec(".text", base, len(text))],
            symbols=[Sym("main", base, len(text))],
            raw=[Raw(".debug_line", _line_table(f"{core}.s", base, kernel))],
            entry=base,
        )
    )


def folder(
    path: Path,
    kernels: Mapping[str, Sequence[Line]],
    *,
    inputs: Mapping[int, Sequence[int]] | None = None,
    outputs: Mapping[int, Sequence[int] | int] | None = None,
    more: str = "",
    run: str = "",
) -> Path:
    """A program: kernels by core, int32 words before (by address), those expected after.

    An output that is a number is that many words which are compared with nothing.
    """
    path.mkdir(parents=True, exist_ok=True)
    text = ['bhemu = 1\nname = "bug"\nkind = "elf"\n[cores]']
    for core, kernel in kernels.items():
        (path / f"{core}.elf").write_bytes(elf(core, kernel))
        text.append(f'{core} = {{ elf = "{core}.elf" }}')
    for at, words in (inputs or {}).items():
        np.save(path / f"in_{at:x}.npy", np.array(words, np.uint32).view(np.int32))
        text.append(f'[[input]]\nat = {at:#x}\nfile = "in_{at:x}.npy"\ndtype = "int32"')
        text.append(f'layout = "raw"\nshape = [{len(words)}]')
    for at, wanted in (outputs or {}).items():
        count = wanted if isinstance(wanted, int) else len(wanted)
        text.append(f'[[output]]\nname = "out_{at:x}"\nat = {at:#x}\ndtype = "int32"')
        text.append(f'layout = "raw"\nshape = [{count}]')
        if not isinstance(wanted, int):
            np.save(path / f"expect_{at:x}.npy", np.array(wanted, np.uint32).view(np.int32))
            text.append(f'expect = "expect_{at:x}.npy"\ncompare = "bits"')
    text += [more, "[run]", run or "limit = 1_000_000"]
    (path / "PROGRAM.toml").write_text("\n".join(text) + "\n")
    return path


def shipped(path: Path, name: str, **elfs: bytes) -> Path:
    """A copy of the program elfs/`name`, the ELFs of some cores replaced."""
    shutil.copytree(ROOT / "elfs" / name, path)
    for core, data in elfs.items():
        (path / f"{core}.elf").write_bytes(data)
    return path


def found(path: Path, *arguments: str) -> list[dict[str, Any]]:
    """What `bhemu why PATH --json` finds; its exit code agrees."""
    done = CliRunner().invoke(main, ["why", "-q", "--json", str(path), *arguments])
    assert done.exit_code in (0, 1), done.output
    findings: list[dict[str, Any]] = json.loads(done.stdout)["findings"]
    assert done.exit_code == (1 if findings else 0)
    return findings


def checked(path: Path, names: str) -> list[dict[str, Any]]:
    """What these checks find in PATH; faster than all that fit."""
    done = CliRunner().invoke(main, ["run", "-q", "--json", "--check", names, str(path)])
    findings: list[dict[str, Any]] = json.loads(done.stdout)["findings"]
    return findings


def unordered(path: Path) -> list[dict[str, Any]]:
    """What `bhemu check --tool order` finds in PATH: those that no late run has shown, too."""
    done = CliRunner().invoke(main, ["check", "-q", "--json", "--tool", "order", str(path)])
    findings: list[dict[str, Any]] = json.loads(done.stdout)["findings"]
    assert done.exit_code == (1 if findings else 0)
    return findings


def check_bug(bad: Path, twin: Path, check: str, core: str, line: int, file: str = "") -> None:
    """The first finding for the bug has the class of `check`, names core and line (2 off at most).

    Nothing is found in the twin.

    file: of the culprit; empty for CORE.s.
    """
    look = unordered if CLASS_OF[check] == "order" else found
    findings = look(bad)
    assert findings, "nothing was found"
    first = findings[0]
    culprit = first["culprit"]
    assert first["check"] == CLASS_OF[check], first["text"]
    assert culprit["core"] == core, first["text"]
    assert culprit["file"] == (file or f"{core}.s"), first["text"]
    assert abs(culprit["line"] - line) <= 2, (culprit["line"], first["text"])
    assert look(twin) == []
