"""A wheel's machine code counts for exactly its sources, its processors and the usual settings."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from bhemu.errors import InputError
from bhemu.jit import build, host
from bhemu.jit.subset import JIT, signature

pytestmark = pytest.mark.skipif(not JIT, reason="nothing is compiled in the interpreted mode")
IMAGES = {"module one": b"first", "module two": b"second", "module empty": b""}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The file of this machine's level, in a folder of its own."""
    if not host.level():
        monkeypatch.setattr(host, "level", lambda: "x86-64-v3")
    monkeypatch.setattr(host, "FOLDER", tmp_path)
    host._entries.cache_clear()
    path = tmp_path / f"{host.level()}.code"
    path.write_bytes(host.pack(IMAGES))
    yield path
    host._entries.cache_clear()


def found() -> dict[str, bytes | None]:
    host._entries.cache_clear()
    return {label: host.find(label) for label in IMAGES}


def test_what_was_packed_is_found(file: Path) -> None:
    assert found() == IMAGES
    assert host.find("module three") is None


def test_damaged_code_is_not_found(file: Path) -> None:
    good = file.read_bytes()
    file.write_bytes(good.replace(b"second", b"secand"))
    assert found() == {**IMAGES, "module two": None}
    file.write_bytes(good[:-40])
    assert found()["module two"] is None
    file.write_bytes(b"\xff" * 100)
    assert not any(found().values())


@pytest.mark.parametrize("why", ["sources", "settings", "level", "absent"])
def test_it_does_not_count(file: Path, monkeypatch: pytest.MonkeyPatch, why: str) -> None:
    if why == "sources":
        monkeypatch.setattr(host, "fingerprint", lambda: "others")
    elif why == "settings":
        monkeypatch.setenv("NUMBA_BOUNDSCHECK", "1")
    elif why == "level":
        monkeypatch.setattr(host, "level", lambda: "")
    else:
        file.unlink()
    assert not any(found().values())


def test_an_entry_is_taken_from_there(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = build.Entry("one", "bhemu.one", signature("int64", "int64"), lambda x: x)
    file.write_bytes(host.pack({entry.path: b"carried"}))
    host._entries.cache_clear()
    assert build.image(entry) == b"carried"
    monkeypatch.setattr(host, "fingerprint", lambda: "")
    assert not entry.own()


FLAGS = {
    "x86-64-v4": host._LEVEL_4,
    "x86-64-v3": host._LEVEL_4.replace("avx512vl", ""),
    "x86-64-v2": host._LEVEL_3.replace("fma", ""),
    "": host._LEVEL_2.replace("ssse3", ""),
}


@pytest.mark.parametrize("level", FLAGS)
def test_the_best_level_that_the_processor_has(monkeypatch: pytest.MonkeyPatch, level: str) -> None:
    monkeypatch.setattr(host, "_flags", lambda: f"fpu {FLAGS[level]} sse2".split())
    assert host.level() == level
    monkeypatch.setattr(host.os, "uname", lambda: SimpleNamespace(machine="arm64"))
    assert host.level() == "aarch64"


def test_a_level_can_be_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    """BHEMU_LEVEL names the code that is compiled, keyed and loaded."""
    monkeypatch.setattr(host, "_flags", lambda: host._LEVEL_3.split())
    assert host.level() == "x86-64-v3"
    monkeypatch.setenv("BHEMU_LEVEL", "x86-64-v2")
    assert host.level() == "x86-64-v2"
    monkeypatch.setenv("BHEMU_LEVEL", "x86-64-v4")
    with pytest.raises(InputError, match="does not execute x86-64-v4: it has no avx512bw"):
        host.level()
    monkeypatch.setenv("BHEMU_LEVEL", "v3")
    with pytest.raises(InputError, match="no level v3"):
        host.level()
