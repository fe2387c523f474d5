"""A device load changes nothing, or says that it acts (`s.load_acted`): pollers rely on it."""

import numpy as np
import pytest

from bhemu.devices.bus.address_map import WINDOWS
from bhemu.devices.bus.window import Effect, Window
from bhemu.machine.tile import Tile
from bhemu.memmap import HOST, MAILBOX_BASE, PC_BUF_BASE
from bhemu.tensix.state import DTYPE

SCRATCH = {"loaded", "detail", "core_address", "load_acted", "window_entry", "sync_entry"}


def prepared() -> Tile:
    """A tile with something in every queue and register."""
    tile = Tile(ub="silicon")
    s, r = tile.state, np.random.default_rng(0)
    for name in ("stream", "niu_counter", "niu_config", "gpr", "local", "sem", "thread_cfg"):
        member = getattr(s, name)
        member[...] = r.integers(0, 100, member.shape)
    s.mailbox_write[:], s.pcbuf_write[:] = 2, 3
    return tile


def changed(before: bytes, after: np.ndarray) -> set[str]:
    """Members that differ, scratch excepted."""
    places = np.flatnonzero(np.frombuffer(before, np.uint8) != after)
    found = set()
    for name, (kind, offset) in ((n, f[:2]) for n, f in (DTYPE.fields or {}).items()):
        if ((places >= offset) & (places < offset + kind.itemsize)).any():
            found.add(name)
    return found - SCRATCH


def offsets(window: Window) -> list[int]:
    """Every register, or places all over the window."""
    if window.registers:
        return [r.offset for r in window.registers]
    size = window.high - window.low
    return sorted({0, 4, 8, size - 4, *(4 * n for n in range(8, 16)), *range(0, size, 0x1020)})


@pytest.mark.parametrize("window", WINDOWS, ids=lambda window: window.name)
def test_a_load_changes_nothing_unless_it_says_so(window: Window) -> None:
    tile = prepared()
    s = tile.state
    for core in (*range(5), HOST):
        for offset in offsets(window):
            before = s.buffer.tobytes()
            s.load_acted[0] = 0
            status, value = tile.backend.read(window.low + offset, 4, core)
            acted = int(s.load_acted[0])
            if status == 0 and not acted:
                where = f"core {core}, {window.low + offset:#x}"
                assert changed(before, s.buffer) == set(), where
                assert tile.backend.read(window.low + offset, 4, core) == (0, value), where
            s.buffer[:] = np.frombuffer(before, np.uint8)


@pytest.mark.parametrize("address", [MAILBOX_BASE + 0x1000, PC_BUF_BASE])
def test_a_load_that_takes_an_entry_says_so(address: int) -> None:
    tile = prepared()
    for expected in (1, 1):
        tile.state.load_acted[0] = 0
        assert tile.backend.read(address, 4, 1)[0] == 0
        assert int(tile.state.load_acted[0]) == expected


@pytest.mark.parametrize("window", WINDOWS, ids=lambda window: window.name)
def test_a_declared_effect_is_marked(window: Window) -> None:
    tile = prepared()
    s = tile.state
    for register in window.registers:
        if register.inert or register.effect is Effect.CLOCK:
            s.load_acted[0] = 0
            if tile.backend.read(window.low + register.offset, 4, 0)[0] == 0:
                assert s.load_acted[0] == 1, register.name
