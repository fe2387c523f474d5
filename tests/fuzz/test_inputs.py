"""Damaged ELFs, PROGRAM.toml files and images: one line of bhemu's own, never a traceback."""

import shutil
from pathlib import Path

import pytest
from campaign import campaign
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import bhemu as package
from bhemu.cli import main

ADD1 = Path(package.__file__).parent.parent / "elfs" / "add1"
EXITS = {0, 1, 2, 3, 4, 5, 6, 7}  # everything but internal error and interruption
HEADER = 0x400  # ELF header, program headers and the first code

Edit = tuple[str, int, int]
edits = st.lists(
    st.tuples(
        st.sampled_from(["set", "flip", "cut", "insert", "word"]),
        st.one_of(st.integers(0, HEADER), st.integers(0, 1 << 14)),
        st.one_of(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF, 0xFFFFFFFF]), st.integers(0, 1 << 32)),
    ),
    min_size=1,
    max_size=4,
)


def damaged(data: bytes, changes: list[Edit]) -> bytes:
    out = bytearray(data)
    for kind, where, value in changes:
        at = where % max(len(out), 1)
        if kind == "cut":
            del out[at:]
        elif kind == "insert":
            out[at:at] = bytes([value & 0xFF]) * (1 + value % 7)
        elif kind == "word":
            out[at : at + 4] = (value & 0xFFFFFFFF).to_bytes(4, "little")
        elif at < len(out):
            out[at] = value & 0xFF if kind == "set" else out[at] ^ (1 << value % 8)
    return bytes(out)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("fuzz") / "add1"
    shutil.copytree(ADD1, target)
    return target


def run(folder: Path, name: str, data: bytes, *command: str) -> None:
    """The command on the folder with one file replaced: an exit code of the contract, few words."""
    path = folder / name
    good = path.read_bytes()
    path.write_bytes(data)
    try:
        done = CliRunner().invoke(main, [*command, str(folder / "PROGRAM.toml")])
    finally:
        path.write_bytes(good)
    said = done.stderr
    assert done.exception is None or isinstance(done.exception, SystemExit), repr(done.exception)
    assert done.exit_code in EXITS, said
    assert "Traceback" not in said
    if done.exit_code == 2:
        assert said.count("\n") <= 3, said


@given(edits, st.sampled_from(["brisc.elf", "trisc0.elf", "trisc2.elf"]))
@campaign(60, 10_000)
def test_damaged_elfs(folder: Path, changes: list[Edit], name: str) -> None:
    data = damaged((ADD1 / name).read_bytes(), changes)
    run(folder, name, data, "run", "-q", "--limit", "200000", "--timeout", "20")


@given(edits)
@campaign(100, 10_000)
def test_damaged_program_files(folder: Path, changes: list[Edit]) -> None:
    data = damaged((ADD1 / "PROGRAM.toml").read_bytes(), changes)
    run(folder, "PROGRAM.toml", data, "check")


@given(edits)
@campaign(40, 3_000)
def test_damaged_arrays(folder: Path, changes: list[Edit]) -> None:
    data = damaged((ADD1 / "in.npy").read_bytes(), changes)
    run(folder, "in.npy", data, "check")
