"""The packer drops translated code when it writes a page that a core has executed."""

from collections.abc import Callable

import numpy as np
import pack_runner
from pack_model import Pack

from bhemu.tensix.state import PAGE


def packed(mark: Callable[[np.ndarray, int], None]) -> bool:
    """Whether one PACR asks for a flush; `mark` says which pages hold code, given its own."""
    s, _ = pack_runner.setup(Pack())
    before = s.l1.copy()
    probe, _ = pack_runner.setup(Pack())
    assert pack_runner.execute(probe, last=1) == 0
    page = int(np.flatnonzero(probe.l1 != before)[0]) // PAGE
    mark(s.code_page, page)
    assert pack_runner.execute(s, last=1) == 0
    assert len(set(s.flush)) == 1
    assert bool(s.flush[0]) == bool(s.attention[0])
    return bool(s.flush[0])


def test_the_packer_flushes_when_it_writes_code_and_only_then() -> None:
    def only(pages: np.ndarray, page: int) -> None:
        pages[page] = 1

    def others(pages: np.ndarray, page: int) -> None:
        pages[:] = 1
        pages[page : page + 2] = 0

    assert packed(only)
    assert not packed(others)
