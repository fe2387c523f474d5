"""What runs take of instructions without importing their classes is what the classes say."""

import subprocess
import sys
from typing import Any

from bhemu.jit import build
from bhemu.tensix import compiled, insn
from bhemu.tensix.insn import instructions

REGISTERED = """
import importlib, pkgutil, sys
from bhemu.tensix import rules
importlib.import_module(sys.argv[1])
before = len(rules.RULES), len(rules.CONDITIONS)
import bhemu
for about in pkgutil.walk_packages(bhemu.__path__, "bhemu."):
    if about.name.split(".")[1] in ("tensix", "devices", "riscv", "noc", "timing", "machine"):
        importlib.import_module(about.name)
print(before == (len(rules.RULES), len(rules.CONDITIONS)))
"""


def test_what_is_noted_is_what_the_classes_declare() -> None:
    """`stall_mask` and the others of a class, by opcode, whoever has noted them."""
    known = compiled.known()
    assert known.keys() == instructions().keys()
    for opcode, cls in instructions().items():
        one = known[opcode]
        assert (one.name, one.module, one.unit) == (cls.__name__, cls.__module__, cls.unit)
        assert (one.stall_mask, one.wakes) == (cls.stall_mask, cls.wakes)
        assert one.executes == (cls.execute is not None)
    assert len({one.name for one in known.values()}) == 137


def test_each_slot_has_a_second_entry() -> None:
    assert instructions()
    assert insn.NAMES.keys() == insn.ENTRIES.keys()
    for slot, (execute, _) in insn.ENTRIES.items():
        assert compiled.second_entry(slot).path == f"{execute.__module__}.{execute.__name__}"


def test_notes_of_other_sources_are_not_taken(monkeypatch: Any) -> None:
    monkeypatch.setattr(build.host, "fingerprint", lambda: "other")
    build._known_notes.cache_clear()
    monkeypatch.setattr(build.cache, "write", lambda name, data: None)
    try:
        assert build.noted("instructions", lambda: ["made"]) == ["made"]
    finally:
        build._known_notes.cache_clear()


def registered(module: str) -> str:
    command = [sys.executable, "-c", REGISTERED, module]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_importing_the_sentences_registers_every_rule_and_condition() -> None:
    assert registered("bhemu.machine.sentences") == "True"
    assert registered("bhemu.machine.tile") == "False"
