"""What the sentences of rules name is exactly what the checks give them (rules.refuse)."""

import ast
import importlib
import re
import string
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from bhemu.devices.bus.window import ACCESS
from bhemu.tensix import rules as status
from bhemu.tensix.rules import refuse
from bhemu.tensix.state import State
from bhemu.tensix.units.sync import SEM_INIT

ROOT = Path(__file__).parent.parent
_OF_STATE = ("refuse", "undefined", "undefined_unless_llk", "note_rule")
CHECKS = {**dict.fromkeys(_OF_STATE, 1), "fail": 2}  # position of the rule
MODULES = sorted(
    p for room in ("tensix", "riscv", "devices") for p in (ROOT / "bhemu" / room).rglob("*.py")
)


DEVICES = re.compile(r"MMIO|RV-ALIGN")  # address, value and size of an access, by number


def named(rule: status.Rule) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(rule.text) if name}


def module_of(path: Path) -> ModuleType:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return importlib.import_module(".".join(parts).removesuffix(".__init__"))


def numbers(value: Any) -> list[int]:
    """The rule numbers that a value of a module holds."""
    if isinstance(value, int | np.integer):
        return [int(value)] if int(value) in status.RULES else []
    if isinstance(value, tuple | np.ndarray):
        return [number for item in value for number in numbers(item)]
    return []


def rules(node: ast.expr, module: ModuleType) -> list[status.Rule]:
    """The rules that an argument may stand for: a constant of the module, or a table of them."""
    while isinstance(node, ast.Subscript):
        node = node.value
    value: Any = None
    if isinstance(node, ast.Name):
        value = getattr(module, node.id, None)
    elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        value = getattr(getattr(module, node.value.id, None), node.attr, None)
    return [status.RULES[number] for number in numbers(value)]


def calls(path: Path) -> Iterator[ast.Call]:
    for node in ast.walk(ast.parse(path.read_text())):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in CHECKS
        ):
            yield node


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT / "bhemu")))
def test_a_check_gives_what_the_sentence_of_its_rule_names(path: Path) -> None:
    for call in calls(path):
        where = f"{path.name}:{call.lineno}"
        at = CHECKS[call.func.id]  # type: ignore[attr-defined]
        assert len(call.args) == at + 1, f"{where}: details are given by name"
        found = rules(call.args[at], module_of(path))
        assert found, f"{where}: {ast.unparse(call.args[at])} is no rule, and no table of rules"
        given = {keyword.arg for keyword in call.keywords}
        for rule in found:
            if DEVICES.match(rule.rule):
                continue
            assert given == named(rule), f"{where}: {rule.rule} names {sorted(named(rule))}"


def test_a_rule_that_names_something_is_never_returned_bare() -> None:
    for path in MODULES:
        module = module_of(path)
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Return) and node.value is not None:
                for part in ast.walk(node.value):
                    if isinstance(part, ast.Name | ast.Attribute) and not calls_within(node, part):
                        for rule in rules(part, module):
                            bare = not named(rule) or rule.names == ACCESS  # the bus notes those
                            assert bare, f"{path.name}:{node.lineno}: {rule.rule}"


def calls_within(node: ast.Return, part: ast.expr) -> bool:
    """Whether `part` is an argument of a check inside the statement."""
    return any(
        part in ast.walk(argument)
        for call in ast.walk(node)
        if isinstance(call, ast.Call)
        for argument in call.args
    )


def test_details_have_names_and_no_numbers() -> None:
    for path in MODULES:
        for rule in rules_of(module_of(path)):
            assert not any(name.isdigit() for name in named(rule)) or DEVICES.match(rule.rule)


def rules_of(module: ModuleType) -> list[status.Rule]:
    return [status.RULES[n] for value in vars(module).values() for n in numbers(value)]


def test_details_are_stored_by_name_and_shown_by_name() -> None:
    s = State()
    assert refuse(s, SEM_INIT, max_value=3, init_value=7) == SEM_INIT
    assert status.RULES[SEM_INIT].details(s.detail) == {"init_value": 7, "max_value": 3}
    assert (
        status.RULES[SEM_INIT].sentence(s.detail) == "SEMINIT with init_value 7 above max_value 3"
    )
