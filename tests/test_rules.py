"""Every rule that can stop a program is named in a test, by its id or by its constant."""

import importlib
import importlib.util
import pkgutil
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import bhemu
from bhemu.machine.sentences import RULES

TESTS = Path(__file__).parent
EXEMPT = {
    "RV-TRAP": "the engine gives no other cause for what these cores execute",
}
BUILT = ("test_pack_rules.py", "test_unpack.py")  # their cases build the ids from field names
CATEGORIES = {"UndefinedBehavior", "NonContractualBehavior", "Unsupported", "Unimplemented"}
CATEGORIES |= {
    "MissingSpecification",
    "GuestFault",
    "Unmapped",
    "Alignment",
    "IllegalWord",
    "Internal",
}


def constants() -> dict[int, set[str]]:
    """Number of a rule -> names of the module-level constants that hold it."""
    found: dict[int, set[str]] = {}
    for module in pkgutil.walk_packages(bhemu.__path__, "bhemu."):
        if (
            ".stand_in" in module.name
            or ".data." in module.name
            or module.name.endswith("__main__")
        ):
            continue
        for name, value in vars(importlib.import_module(module.name)).items():
            if isinstance(value, int) and value in RULES:
                found.setdefault(value, set()).add(name)
    return found


def words_of_tests() -> set[str]:
    """Identifiers and ids in the tests' sources and in the values their cases are made of."""
    found: set[str] = set()
    for path in sorted(TESTS.rglob("*.py")):
        if path.name != Path(__file__).name:
            found |= set(re.findall(r"[\w-]+", path.read_text(encoding="utf-8")))
        if path.name in BUILT:
            found |= set(strings(vars(module(path))))
    return found


def module(path: Path) -> ModuleType:
    """A test module under a name of its own."""
    sys.path.append(str(path.parent))
    spec = importlib.util.spec_from_file_location(f"cases_of_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    sys.path.remove(str(path.parent))
    return loaded


def strings(value: object) -> Iterator[str]:
    """Every string inside lists, tuples and dictionaries."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, part in value.items():
            yield from strings(name) if not str(name).startswith("__") else ()
            yield from strings(part) if not str(name).startswith("__") else ()
    elif isinstance(value, list | tuple):
        for part in value:
            yield from strings(part)


def test_every_rule_has_a_sentence_and_a_category() -> None:
    for rule in RULES.values():
        assert rule.category in CATEGORIES, rule
        assert rule.text.strip() == rule.text and rule.text, rule


def test_every_rule_is_provoked_by_a_test() -> None:
    names, words = constants(), words_of_tests()
    missing = []
    for number, rule in RULES.items():
        by_name = {name for name in names.get(number, ()) if len(name) > 3 and name in words}
        if rule.rule not in words and not by_name and rule.rule not in EXEMPT:
            missing.append(rule.rule)
    assert missing == []
