"""Packs and unpacks of whole rows stay in the entries of their instructions (insn.py).

Anything else would cost every program the compilation of the other modes.
"""

import os
import subprocess
import sys
from types import ModuleType
from typing import Any

import pack_runner
import pytest
import test_unpack
import unit_runner
from pack_model import Pack
from unpack_model import Unpack

from bhemu.jit.subset import JIT
from bhemu.tensix import rules
from bhemu.tensix.units.pack import pacr
from bhemu.tensix.units.unpack import unpacr


def forbid(monkeypatch: pytest.MonkeyPatch, module: ModuleType) -> None:
    """The second entry must not be called."""

    def asked(s: Any, t: Any, word: Any) -> Any:
        pytest.fail(f"{module.__name__} goes stage by stage: {word:#x}")

    monkeypatch.setattr(module, "stage_by_stage", asked)


def test_the_entries_of_common_modes() -> None:
    """The tests below, where they can see which function is called: interpreted."""
    if JIT:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__],
            env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout


if not JIT:

    @pytest.mark.parametrize(("wide", "fmt"), [(0, 5), (1, 0), (1, 5)])
    @pytest.mark.parametrize("select", [0, 15])
    @pytest.mark.parametrize("last", [0, 1])
    def test_packs(
        monkeypatch: pytest.MonkeyPatch, wide: int, fmt: int, select: int, last: int
    ) -> None:
        """Four rows of bf16 or fp32, from rows in one piece."""
        for offset in (0, 4, 20):
            s, _ = pack_runner.setup(Pack(wide=wide, fmt=fmt, out=fmt, offset=offset))
            s.adc[0, 2, 1, 0], s.dst_valid[:] = 15, 1
            forbid(monkeypatch, pacr)
            assert pack_runner.execute(s, read_intf_sel=select, last=last) == rules.DONE

    @pytest.mark.parametrize("u", [0, 1])
    @pytest.mark.parametrize("k", [0, 1])
    @pytest.mark.parametrize(("fmt", "out"), [(5, 5), (1, 1), (0, 4), (0, 5), (9, 9)])
    def test_unpacks(monkeypatch: pytest.MonkeyPatch, u: int, k: int, fmt: int, out: int) -> None:
        """Whole rows of 16- and 32-bit datums to Src, in both contexts."""
        for count, set_dat_valid in ((16, 0), (128, 0), (1024, 1)):
            s = test_unpack.fresh()
            case = Unpack(u=u, k=k, fmt=fmt, out=out, count=count, set_dat_valid=set_dat_valid)
            case.program(s)
            forbid(monkeypatch, unpacr)
            word = case.operands()
            assert unit_runner.run(s, "UNPACR", **word) == rules.DONE
