"""When the Unicorn engine begins to translate: which code runs in the compiled loop before."""

import numpy as np
import pytest

from bhemu.errors import InputError
from bhemu.jit.record import PAGE
from bhemu.machine.tile import Tile
from bhemu.riscv import engine
from bhemu.riscv.assembly import (
    A0,
    A1,
    A2,
    A3,
    PARK,
    RA,
    T0,
    ZERO,
    addi,
    bne,
    code,
    jalr,
    li,
    sw,
    word,
)

START, FUNCTION, STORES = 0x10000, 0x11000, 0x12000
OLD, NEW, RETURN = addi(A0, ZERO, 1), addi(A0, ZERO, 2), jalr(ZERO, RA)


def tile_of(after: int | None, monkeypatch: pytest.MonkeyPatch) -> Tile:
    """A Unicorn tile with BHEMU_TRANSLATE_AFTER, None = not set."""
    if after is None:
        monkeypatch.delenv("BHEMU_TRANSLATE_AFTER", raising=False)
    else:
        monkeypatch.setenv("BHEMU_TRANSLATE_AFTER", str(after))
    return Tile(engine="unicorn")


def run(tile: Tile, *parts: int | list[int]) -> Tile:
    """trisc0 executes `parts`."""
    tile.write(START, code(*parts, PARK))
    tile.core["trisc0"].set_reset_pc(START)
    tile.core["trisc0"].release()
    assert tile.run(timeout_s=20).reason == "idle"
    return tile


def loop(times: int) -> list[int]:
    return [*li(A1, times), addi(A0, A0, 1), addi(A1, A1, -1), bne(A1, ZERO, -8)]


@pytest.mark.parametrize(("after", "counts"), [(0, 0), (100, 100), (3000, 3000), (None, 8192)])
def test_a_loop_is_translated_once_its_page_has_run_so_often(
    after: int | None, counts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    tile = run(tile_of(after, monkeypatch), loop(10_000))
    page, s = START // PAGE, tile.state
    assert counts <= s.page_count[1, page] < counts + 10
    assert s.code_page[page] == 1 << 1 and s.translated[1] == 1
    assert tile.core["trisc0"].regs[A0] == 10_000


def test_code_that_runs_once_is_never_translated(monkeypatch: pytest.MonkeyPatch) -> None:
    tile = run(tile_of(None, monkeypatch), [addi(A0, A0, 1)] * 3000)
    assert not tile.state.code_page.any() and not tile.state.translated.any()
    assert tile.core["trisc0"].regs[A0] == 3000


CALL = [*li(T0, FUNCTION), jalr(RA, T0)]
CALLS = [*li(A3, 40), *CALL, addi(A3, A3, -1), bne(A3, ZERO, -16)]
ADDED = NEW - OLD


@pytest.mark.parametrize(
    "change",
    [
        [*li(A2, NEW), sw(A2, A1)],
        [*li(A2, NEW >> 16), addi(A1, A1, 2), sw(A2, A1, 0, 1)],
        [*li(A2, ADDED), word("amoadd.w", ZERO, A2, A1)],
    ],
    ids=["word", "half", "atomic"],
)
@pytest.mark.parametrize("l0", ["off", "model"])
def test_untranslated_code_overwrites_translated_code(
    change: list[int], l0: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The function's page is translated, the page that stores to it is not."""
    tile = tile_of(60, monkeypatch)
    tile.state.l0[0] = l0 == "model"
    tile.write(FUNCTION, code(OLD, RETURN))
    back = [*li(T0, START + 0x800), jalr(ZERO, T0)]
    tile.write(STORES, code(li(A1, FUNCTION), change, back))
    tile.write(START + 0x800, code(CALL, PARK))
    run(tile, CALLS, li(T0, STORES), jalr(ZERO, T0))
    assert tile.core["trisc0"].regs[A0] == 2
    stores = tile.state.page_count[1] >= engine.TRANSLATED
    assert list(np.flatnonzero(stores)) == [STORES // PAGE]
    assert tile.state.page_count[1, ~stores].max() < 60 and tile.state.flush[1] == 0


def test_after_a_flush_it_begins_again(monkeypatch: pytest.MonkeyPatch) -> None:
    tile = run(tile_of(100, monkeypatch), loop(1000))
    tile.backend.engine.flush(1)
    assert not tile.state.page_count[1].any()


def test_pages_are_counted_for_each_core(monkeypatch: pytest.MonkeyPatch) -> None:
    tile = run(tile_of(1000, monkeypatch), loop(50))
    assert tile.state.page_count.any(axis=1).tolist() == [False, True, False, False, False]


@pytest.mark.parametrize("text", ["-1", "many", "1e3", "9" * 12])
def test_what_is_no_number_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BHEMU_TRANSLATE_AFTER", text)
    with pytest.raises(InputError, match="BHEMU_TRANSLATE_AFTER"):
        Tile(engine="unicorn")
