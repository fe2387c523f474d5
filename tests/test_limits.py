"""Limits on what files state: kept before anything is allocated, settable, documented."""

import io
import re
import time
import tracemalloc
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from elf_builder import LOCAL, Elf, Sec, Seg, Sym

from bhemu.errors import InputError
from bhemu.machine.saved import Snapshot
from bhemu.memmap import L1_SIZE
from bhemu.program import files
from bhemu.program.input_files import read_array, read_image
from bhemu.program.loader import place, read_elf
from bhemu.program.schema import load_program

ROOT = Path(__file__).resolve().parents[1]


@contextmanager
def cheap(megabytes: int = 100, seconds: float = 5) -> Iterator[None]:
    """No more than so much memory and time."""
    tracemalloc.start()
    begin = time.process_time()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < megabytes << 20
        assert time.process_time() - begin < seconds
    finally:
        tracemalloc.stop()


def elf(tmp_path: Path, *segments: Seg, **parts: object) -> Path:
    path = tmp_path / "k.elf"
    path.write_bytes(bytes(Elf(list(segments), **parts)))
    return path


@pytest.mark.parametrize("vaddr", [0x10000, LOCAL])
def test_a_segment_of_4_gb_takes_no_memory(tmp_path: Path, vaddr: int) -> None:
    path = elf(tmp_path, Seg(vaddr, memsz=0xFFFFFFFF))
    with cheap(megabytes=10), pytest.raises(InputError, match=r"outside L1|beyond the local RAM"):
        place(read_elf(path), local="direct", core="brisc")


def test_segments_on_top_of_each_other_are_not_extended_first(tmp_path: Path) -> None:
    path = elf(tmp_path, *[Seg(0x10000, memsz=L1_SIZE - 0x10000)] * 200)
    with cheap(megabytes=10), pytest.raises(InputError, match="overlap"):
        place(read_elf(path), local="direct", core="brisc")


def test_segments_that_share_their_bytes_are_not_copied(tmp_path: Path) -> None:
    data = bytes(1 << 20)
    whole = bytearray(bytes(Elf([Seg(0x10000, b""), *[Seg(0x10000, b"")] * 200, Seg(0, data)])))
    for i in range(201):  # p_offset 0 and p_filesz, p_memsz of all of it
        at = 52 + 32 * i
        whole[at + 4 : at + 8] = bytes(4)
        whole[at + 16 : at + 24] = len(data).to_bytes(4, "little") * 2
    path = tmp_path / "k.elf"
    path.write_bytes(whole)
    with cheap(megabytes=20), pytest.raises(InputError, match="bytes to load, L1 has"):
        read_elf(path)


def test_too_many_headers_symbols_and_names(tmp_path: Path, monkeypatch) -> None:
    with pytest.raises(InputError, match="program headers: 257, the limit is 256"):
        read_elf(elf(tmp_path, *[Seg(0x10000)] * 257))
    sections = [Sec(f".{i}", 0x10000) for i in range(20)]
    symbols = [Sym(f"s{i}", 0x10000 + i, section=None) for i in range(100)]
    path = elf(tmp_path, Seg(0x10000), sections=sections, symbols=symbols)
    assert read_elf(path).symbols.address("s7") == 0x10007
    monkeypatch.setenv("BHEMU_LIMIT_ELF_SYMBOLS", "99")
    with pytest.raises(InputError, match="symbols: 101, the limit is 99"):
        read_elf(path).symbols.address("s7")
    monkeypatch.undo()
    monkeypatch.setenv("BHEMU_LIMIT_ELF_NAMES", "100")
    with pytest.raises(InputError, match=r"symbol names: \d+, the limit is 100"):
        read_elf(path).symbols.address("s7")
    monkeypatch.setenv("BHEMU_LIMIT_ELF_SECTIONS", "20")
    with pytest.raises(InputError, match="section headers: 24, the limit is 20"):
        read_elf(path)
    monkeypatch.setenv("BHEMU_LIMIT_ELF_BYTES", "1K")
    with pytest.raises(InputError, match=r"k\.elf: bytes: \d+, the limit is 1024") as caught:
        read_elf(path)
    assert caught.value.hint == "BHEMU_LIMIT_ELF_BYTES sets the limit"


def test_16_mb_of_symbols_are_refused_at_once(tmp_path: Path) -> None:
    whole = bytearray(bytes(Elf([Seg(0x10000)], symbols=[Sym("a", 1, section=None)])))
    headers = int.from_bytes(whole[32:36], "little")
    at = headers + 40  # .symtab is the first section
    whole[at + 16 : at + 24] = (len(whole)).to_bytes(4, "little") + (16 << 20).to_bytes(4, "little")
    path = tmp_path / "k.elf"
    path.write_bytes(bytes(whole) + b"\1\0\0\0" * (4 << 20))
    with cheap(megabytes=100), pytest.raises(InputError, match="symbols: 1048576, the limit is"):
        read_elf(path).symbols.address("a")


def packed(path: Path, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(f"{name}.npy", data)
    return path


def npy(shape: tuple[int, ...], data: bytes = b"", dtype: str = "|u1") -> bytes:
    file = io.BytesIO()
    head = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, head)
    return file.getvalue() + data


def test_archives_are_not_unpacked_before_their_shape_is_known(tmp_path: Path) -> None:
    big = npy((200 << 20,), bytes(200 << 20))
    path = packed(tmp_path / "s.npz", l1=big, in_addr=npy((0,)), in_len=npy((0,)), in_data=big)
    with cheap(), pytest.raises(InputError, match=r"no array|l1 is uint8 \[209715200\]"):
        Snapshot.load(path)
    with cheap(), pytest.raises(InputError, match=r"not an .npz image: in_data: 209715200 bytes"):
        read_image(path)


def test_a_header_that_states_more_than_the_file_holds(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    for shape in ((1 << 39,), (1 << 20, 1 << 20), (1 << 62, 4), (3,)):
        path.write_bytes(npy(shape, b"xx"))
        with cheap(), pytest.raises(InputError, match=r"a\.npy is not a \.npy array of numbers"):
            read_array(path, "bf16", "here")


def test_an_archive_of_a_million_members(tmp_path: Path) -> None:
    path = tmp_path / "many.npz"
    with zipfile.ZipFile(path, "w") as archive:
        for i in range(5000):
            archive.writestr(f"{i}.npy", b"")
    with cheap(), pytest.raises(InputError, match="more than 4096 members"):
        Snapshot.load(path)


def damaged(path: Path, method: int | None = None) -> Path:
    """An archive whose first member is no deflate stream, or packed by another method."""
    packed(path, l1=npy((100,), bytes(range(100))), in_addr=npy((1,)), in_len=npy((1,)))
    whole = bytearray(path.read_bytes())
    entry = whole.index(b"PK\x01\x02")
    if method is None:
        whole[40:60] = b"\xff" * 20
    else:
        whole[8:10] = whole[entry + 10 : entry + 12] = method.to_bytes(2, "little")
    path.write_bytes(whole)
    return path


@pytest.mark.parametrize("method", [None, 1, 12, 14, 99])
def test_a_damaged_archive_is_bad_input(tmp_path: Path, method: int | None) -> None:
    path = damaged(tmp_path / "s.npz", method)
    with pytest.raises(InputError, match="not a saved state"):
        Snapshot.load(path)


@pytest.mark.parametrize(
    "header", [b"{'descr': (((", b"(" * 9000, b"-" * 9000 + b"1", b"{'descr': '|O', 'shape': (1,)"]
)
def test_a_header_that_is_no_header(tmp_path: Path, header: bytes) -> None:
    path = tmp_path / "a.npy"
    size = len(header).to_bytes(2, "little")
    path.write_bytes(b"\x93NUMPY\x01\x00" + size + header)
    with pytest.raises(InputError, match=r"a\.npy is not a \.npy array of numbers"):
        read_array(path, "bf16", "here")


def program(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "PROGRAM.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "[" * 100_000,
        "x = " + "{a=" * 50_000,
        ".".join("a" * 100_000) + " = 1",
        "[" + ".".join("a" * 100_000) + "]",
        "x = [" + '""""""", ' + "[" * 100_000,
        "x = [" + "'''a''''', " + "[" * 100_000,
        '"' + '\\"' * 100_000,
        "x = {" + "a.b = " * 30_000,
    ],
    ids=range(8),
)
def test_a_program_file_that_nests_is_refused_at_once(tmp_path: Path, text: str) -> None:
    path = program(tmp_path, text)
    with cheap(seconds=2), pytest.raises(InputError, match=r"nesting: 17, the limit|not TOML"):
        load_program(path)


def test_a_program_file_that_is_too_long(tmp_path: Path) -> None:
    path = program(tmp_path, "#" * (300 << 10))
    with pytest.raises(InputError, match="the limit is 262144"):
        load_program(path)


def test_strings_and_comments_do_not_nest(tmp_path: Path) -> None:
    deep = "[" * 30 + "." * 30
    text = f"bhemu = 1 # {deep}\nname = \"{deep}\"\n[x.'{deep}']\ny = '''\n{deep}'''\n"
    with pytest.raises(InputError, match=r"no core is released|unknown key x"):
        load_program(program(tmp_path, text))


def test_a_limit_that_is_no_number(monkeypatch) -> None:
    monkeypatch.setenv("BHEMU_LIMIT_ELF_BYTES", "lots")
    with pytest.raises(InputError, match="BHEMU_LIMIT_ELF_BYTES = 'lots' is no limit"):
        files.limit("ELF_BYTES")
    for text, value in (("7", 7), ("2K", 2048), ("3M", 3 << 20), ("1G", 1 << 30)):
        monkeypatch.setenv("BHEMU_LIMIT_ELF_BYTES", text)
        assert files.limit("ELF_BYTES") == value


def test_every_limit_is_documented() -> None:
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]+?) \|", text, re.MULTILINE))
    assert rows == {name: shown(one.default) for name, one in files.LIMITS.items()}
    assert all(one.doc in text for one in files.LIMITS.values())


def shown(value: int) -> str:
    """The number as the page and the environment write it."""
    for unit, bits in (("M", 20), ("K", 10)):
        if value % (1 << bits) == 0:
            return f"{value >> bits}{unit}"
    return str(value)
