"""A new instruction and a new register, each declared in one place: everything else finds them.

The copy of the package has a vector instruction SFPTWICE and an inert register FICTITIOUS, which no
hardware has.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
INSTRUCTION = '''

class SFPTWICE(sfpu.OneSource, Instruction, opcode=0x9A, unit="vector", facts=sfpu.NOTICES_VC):
    """Twice the source as an integer, and a post of semaphore 3 (no hardware has this)."""

    reads = lreg("lreg_c")
    writes = lreg("lreg_dest") | sem("8", Kind.POSTS)

    def execute(s: Any, t: Any, f: Any) -> Any:
        for lane in range(32):
            s.lreg[f.lreg_dest & 7, lane] = s.lreg[f.lreg_c & 7, lane] * np.uint32(2)
        return DONE
'''
REGISTER = """        window.inert(_PREFIX + "CG_CTRL_EN", 0x244, _GATING),
"""
LOOK = """
import sys
from bhemu.devices.bus.address_map import INERT, block_name
from bhemu.errors import NoProgress
from bhemu.riscv.assembly import PARK, code, ttinsn
from bhemu.machine.saved import Snapshot
from bhemu.kernel import c_header
from bhemu.tensix.insn import assemble, disassemble
from bhemu.tensix.units.vector import schedule, sfpu
from bhemu.machine.tile import Tile

word = assemble("SFPTWICE", lreg_dest=2, lreg_c=1)
assert disassemble(word) == "SFPTWICE lreg_dest=0x2 lreg_c=0x1"
assert "#define TT_OP_SFPTWICE(" in c_header()
assert schedule.SUB_UNIT[0x9A] == sfpu.SIMPLE
assert schedule.reads.py_func(word) == 1 << 1

tile = Tile()
load = assemble("SFPLOADI", lreg_ind=1, instr_mod0=2, imm16=21)
tile.write(0x10000, code([ttinsn(load), ttinsn(word)], PARK))
tile.core["trisc1"].set_reset_pc(0x10000)
tile.core["trisc1"].release()
traced = tile.trace()
tile.run()
assert tile.tensix.lreg[2, 5] == 42
assert "SFPTWICE" in " ".join(str(step) for step in traced), list(traced)

stuck = Tile()
init = assemble("SEMINIT", sem_sel=1 << 3, max_value=2)
wait = assemble("SEMWAIT", sem_sel=1 << 3, wait_sem_cond=1, stall_res=1 << 8)
math = assemble("SEMWAIT", sem_sel=1 << 4, wait_sem_cond=1, stall_res=1 << 8)
nop = assemble("SFPNOP")
stuck.write(0x10000, code([ttinsn(w) for w in (init, wait, nop)], PARK))
stuck.write(0x11000, code([ttinsn(w) for w in (math, word)], PARK))
for core, start in (("trisc0", 0x10000), ("trisc1", 0x11000)):
    stuck.core[core].set_reset_pc(start)
    stuck.core[core].release()
try:
    stuck.run()
    sys.exit("no hang")
except NoProgress as hang:
    assert "SFPTWICE lreg_dest=0x2 lreg_c=0x1 at its own gate" in str(hang), str(hang)

address = next(a for a, register in INERT.items() if register.name.endswith("FICTITIOUS"))
assert address == 0xFFB12250
tile.write32("FICTITIOUS", 5)
assert tile.read32("RISCV_DEBUG_REG_FICTITIOUS") == 5
tile.snapshot().save(sys.argv[1])
other = Tile()
other.restore(Snapshot.load(sys.argv[1]))
assert other.read32(address) == 5
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    ignored = shutil.ignore_patterns("__pycache__")
    for folder in ("bhemu", "scripts", "tests/random_programs", "docs"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=ignored)
    shutil.copy(ROOT / "README.md", tmp_path)
    vector = tmp_path / "bhemu" / "tensix" / "units" / "vector" / "integer.py"
    imports = (
        "import numpy as np\n"
        "from bhemu.tensix.spaces import Kind, lreg, sem\n"
        "from bhemu.tensix.units.vector import sfpu\n"
    )
    vector.write_text(vector.read_text() + "\n\n" + imports + INSTRUCTION)
    debug = tmp_path / "bhemu" / "devices" / "debug_regs.py"
    text = debug.read_text()
    assert REGISTER in text
    new = REGISTER.replace("CG_CTRL_EN", "FICTITIOUS").replace("0x244", "0x250")
    debug.write_text(text.replace(REGISTER, REGISTER + new))
    return tmp_path


def run(project: Path, *command: str | Path) -> str:
    folders = os.pathsep.join((str(project), str(project / "tests")))
    done = subprocess.run(
        [sys.executable, *map(str, command)],
        cwd=project,
        env={**os.environ, "PYTHONPATH": folders},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_everything_finds_what_is_declared_once(project: Path) -> None:
    run(project, "-c", LOOK, project / "state.npz")
    assert "Twice the source" in run(project, "-m", "bhemu", "isa", "SFPTWICE")
    run(project, "scripts/make_models.py")
    models = (project / "docs" / "models.md").read_text()
    assert "RISCV_DEBUG_REG_FICTITIOUS" in models
    assert "SFPTWICE" in models
    dump = run(project, "-m", "bhemu", "dump", project / "state.npz", "inert")
    assert "FICTITIOUS" in dump
