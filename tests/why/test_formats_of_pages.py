"""Formats of pages that come from a tensor in DRAM."""

from types import SimpleNamespace
from typing import Any

import pytest

from bhemu.errors import Where
from bhemu.program.specs import InputSpec
from bhemu.why.checks import contract
from bhemu.why.checks.contract import Operands
from bhemu.why.findings import Finding
from bhemu.why.order.conflicts import Transfer
from bhemu.why.steps import Instruction, Word

SETTER = 44  # the line that sets the format


def use(first: int, fmt: str, line: int = 33) -> Transfer:
    step = Word(7, 0, 0x42000000, 0x100 + line, 1, 0x100 + line)
    return Transfer(step, True, first, first + 0x400, fmt, 0, Instruction(5, 1, SETTER, 0), None)


def held(at: int, dtype: str) -> Any:
    """A tensor of DRAM at an address of L1."""
    spec = InputSpec.__new__(InputSpec)
    for name, value in (("dtype", dtype), ("file", SimpleNamespace(name="a.npy"))):
        object.__setattr__(spec, name, value)
    return at, at + 0x400, spec


def compared(monkeypatch: pytest.MonkeyPatch, *uses: Transfer) -> list[Finding]:
    place = lambda tile, step: Where(core="trisc0", pc=step.pc, file="k.cpp", line=step.pc)  # noqa: E731
    monkeypatch.setattr(contract, "where", place)
    monkeypatch.setattr(contract, "place", lambda where, clock, tile=None: where.as_dict())
    seen = SimpleNamespace(transfers=lambda: uses, tile=None)
    program = SimpleNamespace(path=None, inputs=(), outputs=())
    context: Any = SimpleNamespace(program=program)
    look = Operands(context, seen)  # type: ignore[arg-type]
    look.compare([held(0x1000, "bf16"), held(0x2000, "fp32")])
    return list(look.found.values())


def test_a_format_that_fits_nothing_is_wrong_where_it_is_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (found,) = compared(monkeypatch, use(0x2000, "fp32"), use(0x1000, "fp32"))
    assert found.severity == "warning"
    assert found.culprit["line"] == SETTER
    assert compared(monkeypatch, use(0x2000, "fp32"), use(0x1000, "bf16")) == []
