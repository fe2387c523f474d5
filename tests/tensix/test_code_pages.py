"""The packer drops translated code when it writes a page that a core has executed."""

from collections.abc import Callable

import numpy as np
import pack_runner
from pack_model import Pack

from bhemu.jit.record import PAGE


def packed(mark: Callable[[np.ndarray, int], None]) -> list[int]:
    """The cores that one PACR wants flushed; `mark` says which pages hold code, given its own."""
    s, _ = pack_runner.setup(Pack())
    before = s.l1.copy()
    probe, _ = pack_runner.setup(Pack())
    assert pack_runner.execute(probe, last=1) == 0
    page = int(np.flatnonzero(probe.l1 != before)[0]) // PAGE
    mark(s.code_page, page)
    assert pack_runner.execute(s, last=1) == 0
    assert bool(s.flush.any()) == bool(s.attention[0])
    return [int(core) for core in np.flatnonzero(s.flush)]


def test_the_packer_flushes_the_cores_that_have_executed_the_page_and_no_other() -> None:
    def only(pages: np.ndarray, page: int) -> None:
        pages[page] = 0b10010

    def others(pages: np.ndarray, page: int) -> None:
        pages[:] = 0b11111
        pages[page : page + 2] = 0

    assert packed(only) == [1, 4]
    assert packed(others) == []
