"""Files of a program stay in its folder; outputs go to regular files and overwrite no input."""

import os
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from elf_builder import Elf, Seg

from bhemu.errors import InputError
from bhemu.launch import launch
from bhemu.program.files import check_writable, read_bytes, write_whole
from bhemu.program.schema import load_program
from bhemu.riscv.assembly import PARK, code

HEAD = 'bhemu = 1\nkind = "elf"\n[cores]\ntrisc0 = { elf = "k.elf" }\n'
INPUT = '[[input]]\nat = 0x50000\ndtype = "bf16"\nlayout = "rows"\nfile = '
SHAPE = "shape = [4]\n"
OUTPUT = '[[output]]\nat = 0x50000\ndtype = "bf16"\nlayout = "rows"\n' + SHAPE


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A program's folder with an array inside, and one outside of it."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "k.elf").write_bytes(bytes(Elf([Seg(0x10000, code(PARK))])))
    for place in (home, tmp_path):
        np.save(place / "a.npy", np.zeros(4, np.float32))
    return home


def load(folder: Path, text: str, **how: bool) -> Any:
    (folder / "PROGRAM.toml").write_text(HEAD + text)
    return load_program(folder, **how)


OUTSIDE = {
    "absolute": lambda folder: str(folder.parent / "a.npy"),
    "upwards": lambda folder: "../a.npy",
    "up and down": lambda folder: "sub/../../a.npy",
    "link": lambda folder: "link.npy",
    "folder link": lambda folder: "out/a.npy",
}


@pytest.fixture
def links(folder: Path) -> Path:
    (folder / "sub").mkdir()
    (folder / "link.npy").symlink_to(folder.parent / "a.npy")
    (folder / "out").symlink_to(folder.parent)
    return folder


@pytest.mark.parametrize("how", OUTSIDE)
@pytest.mark.parametrize("key", ["input", "expect", "save", "elf"])
def test_a_path_that_leaves_the_folder_is_refused(links: Path, how: str, key: str) -> None:
    path = OUTSIDE[how](links)
    text = {
        "input": f"{INPUT}{path!r}\n",
        "expect": f"{OUTPUT}expect = {path!r}\n",
        "save": f"{OUTPUT}save = {path!r}\n",
        "elf": f"trisc1 = {{ elf = {path!r} }}\n",
    }[key]
    with pytest.raises(InputError, match="leaves the folder of the program") as caught:
        load(links, text)
    assert caught.value.hint.startswith("--allow-outside")
    program = load(links, text, allow_outside=True)
    if key != "elf" and how != "link":
        launch(program)


def test_paths_inside_are_taken_however_they_are_written(links: Path) -> None:
    (links / "inner.npy").symlink_to("a.npy")
    for path in ("a.npy", "./a.npy", "sub/../a.npy", "inner.npy", str(links / "a.npy")):
        assert load(links, f"{INPUT}{path!r}\n").inputs[0].file.samefile(links / "a.npy")


def test_an_image_that_lies_outside(folder: Path) -> None:
    (folder.parent / "l1.bin").write_bytes(b"x")
    text = 'bhemu = 1\nkind = "image"\n[cores]\ntrisc0 = { pc = 0 }\n[image]\nfile = "../l1.bin"\n'
    (folder / "PROGRAM.toml").write_text(text)
    with pytest.raises(InputError, match="leaves the folder"):
        load_program(folder)
    assert load_program(folder, allow_outside=True).image is not None


def test_a_folder_that_became_a_link_is_not_written_through(folder: Path) -> None:
    (folder / "results").mkdir()
    program = load(folder, f'{OUTPUT}save = "results/y.npy"\n')
    tile = launch(program)
    (folder / "results").rmdir()
    (folder / "results").symlink_to(folder.parent)
    with pytest.raises(InputError, match="leaves the folder"):
        tile.check()
    assert not (folder.parent / "y.npy").exists()


def save(path: Path, data: bytes = b"new") -> None:
    write_whole(path, lambda file: file.write(data), "here")


@pytest.mark.parametrize("kind", ["link", "fifo", "device", "folder"])
def test_only_regular_files_are_replaced(tmp_path: Path, kind: str) -> None:
    path, victim = tmp_path / "y.bin", tmp_path / "victim"
    victim.write_bytes(b"old")
    if kind == "link":
        path.symlink_to(victim)
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path = Path("/dev/null")
    before = path.lstat().st_mode
    for action in (lambda: save(path), lambda: check_writable(path, "here")):
        with pytest.raises(InputError, match=r"symbolic link|no regular file|is a folder"):
            action()
    assert path.lstat().st_mode == before
    assert victim.read_bytes() == b"old"


def test_the_mode_of_a_file_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "y.bin"
    for mode in (0o600, 0o640, 0o666):
        path.write_bytes(b"old")
        path.chmod(mode)
        save(path)
        assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"new", mode)


def test_a_planted_link_is_not_followed(tmp_path: Path, monkeypatch) -> None:
    """However an intermediate file is named, it is created and never opened."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"old")
    monkeypatch.setattr("os.urandom", bytes)
    known = tmp_path / f".y.bin.{'00' * 8}"
    known.symlink_to(victim)
    (tmp_path / f".y.bin.{os.getpid()}").symlink_to(victim)
    with pytest.raises(InputError, match="File exists"):
        save(tmp_path / "y.bin")
    monkeypatch.undo()
    save(tmp_path / "y.bin")
    assert victim.read_bytes() == b"old"
    assert known.is_symlink()


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "c.bin"
    target.write_bytes(b"old")

    def fail(file: Any) -> None:
        file.write(b"half")
        raise OSError(28, "No space left on device")

    with pytest.raises(InputError, match="No space left"):
        write_whole(target, fail, "here")
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("c.bin", b"old")]


@pytest.mark.parametrize("name", ["PROGRAM.toml", "k.elf", "a.npy", "e.npy"])
def test_an_output_does_not_overwrite_an_input(folder: Path, name: str) -> None:
    np.save(folder / "e.npy", np.zeros(4, np.float32))
    load(folder, "")
    os.link(folder / name, folder / "other.npy")
    for target in (name, "other.npy"):
        text = f'{INPUT}"a.npy"\n{OUTPUT}expect = "e.npy"\nsave = "{target}"\n'
        before = (folder / name).read_bytes() if name != "PROGRAM.toml" else None
        with pytest.raises(InputError, match=r"is a file of the program|is not \.npy"):
            launch(load(folder, text))
        assert before is None or (folder / name).read_bytes() == before


def test_two_outputs_in_one_file(folder: Path) -> None:
    text = f'{OUTPUT}save = "y.npy"\n{OUTPUT}save = "./y.npy"\n'
    with pytest.raises(InputError, match="is a file of the program"):
        launch(load(folder, text))


@pytest.mark.parametrize("name", ["a" * 300, "a\0b", "a" * 5000, "\udcff.npy", "x/" * 3000])
def test_names_that_no_file_can_have(folder: Path, name: str) -> None:
    path = folder / name
    with pytest.raises(InputError, match="cannot be read"):
        read_bytes(path, "ELF_BYTES")
    with pytest.raises(InputError, match=r"cannot be written|is a folder"):
        check_writable(path, "here") if name != "\udcff.npy" else save(folder)
    with pytest.raises(InputError, match=r"no such|no file has the name"):
        load_program(path) if name == "\udcff.npy" else load(folder, f"{INPUT}{quoted(name)}\n")


def quoted(name: str) -> str:
    return '"' + name.replace("\0", "\\u0000") + '"'


def test_a_system_file_that_never_ends_is_not_waited_for() -> None:
    """It states a size of 0, and that is what is read."""
    assert read_bytes(Path("/proc/kmsg"), "ELF_BYTES") == b""
    for name in ("/dev/zero", "/dev/tty"):
        with pytest.raises(InputError, match=r"a device|cannot be read"):
            read_bytes(Path(name), "PROGRAM_BYTES")
