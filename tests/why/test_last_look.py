"""The last look at a run that is right: the whole run late, and the agent whose delay is enough."""

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import planted
from corpus import found

from bhemu.launch import Launched
from bhemu.program.options import Acts, Lateness
from bhemu.program.schema import load_program
from bhemu.why.question import context
from bhemu.why.witness import Witness, _narrowed, _tried

BARRIER = "    noc_read_barrier(noc);\n"
WAIT = "    while (load(noc->niu + NOC_READ_RESPONSES) + args->tiles <= noc->reads) {\n    }\n"
TOO_FEW = planted.Bug(
    name="a wait for one of several reads",
    pain=12,
    program="scatter",
    changes=(("scatter/scatter_brisc.c", BARRIER, WAIT),),
    core="brisc",
)


def test_an_agent_whose_delay_is_enough_is_named(compiler: ModuleType, tmp_path: Path) -> None:
    """The count of answers orders nothing that a check could blame, and the plain run is right."""
    made = planted.make(TOO_FEW, tmp_path / "bug", compiler)
    (first,) = found(made.folder)
    assert (first["check"], first["severity"]) == ("order", "error")
    assert (first["culprit"]["core"], first["culprit"]["role"]) == ("brisc", "late")
    assert "the result depends on time" in first["text"]
    command = first["evidence"][0].partition("bhemu run ")[2].partition(": ")[0].split()
    assert command[1] == "--late" and command[2].startswith("3:noc@0x")
    again = subprocess.run(
        [sys.executable, "-m", "bhemu", "run", "-q", *command], capture_output=True, text=True
    )
    assert again.returncode == 1 and "elements differ" in again.stdout, again


def test_a_core_that_is_late_on_all_tiles_is_narrowed(compiler: ModuleType, tmp_path: Path) -> None:
    """The acts of a run with one core late are those of each tile, at one pc."""
    made = planted.make(TOO_FEW, tmp_path / "bug", compiler)
    target = Launched(load_program(made.folder))
    target.prepare_checks()
    asked = context(target, target.finish())
    late = Lateness(1, (Acts("brisc"),))
    seen = _tried(asked, late)
    assert seen is not None
    assert [one.agent for one in _narrowed(asked, Witness(late, seen)).late.acts] == ["brisc"]


def test_its_twin_is_right_late(compiler: ModuleType, tmp_path: Path) -> None:
    made = planted.make(TOO_FEW, tmp_path / "twin", compiler, twin=True)
    assert found(made.folder) == []
    assert found(made.folder, "--late", "1") == []
