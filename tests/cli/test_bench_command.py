"""`bhemu bench`: figures that are rates of the counted work, and where the time goes."""

import json
from pathlib import Path

import pytest

import bhemu as package
from bhemu.bench.measure import run_once
from bhemu.bench.rows import benchmarks
from bhemu.tensix.insn import REGISTRY
from bhemu.tensix.jit import JIT

ELFS = Path(package.__file__).parent.parent / "elfs"
COUNTED = {  # benchmark: instruction that is counted, instructions per unit of work
    "mvmul": ("MVMUL", 1),
    "elwadd": ("ELWADD", 1),
    "sfpmad": ("SFPMAD", 1),
    "sfpu_chain": ("SFPSTORE", 32),
    "unpack": ("UNPACR", 1),
    "pack": ("PACR", 16),
    "matmul_lofi": ("MVMUL", 16),
}


@pytest.mark.skipif(not JIT, reason="the interpreted mode needs minutes for a benchmark")
@pytest.mark.parametrize("name", COUNTED)
def test_the_count_of_a_row_is_what_its_program_executes(name: str) -> None:
    row = next(b for b in benchmarks(ELFS) if b.name == name)
    _, tile = run_once(row.case(), name)
    mnemonic, each = COUNTED[name]
    opcode = next(op for op, cls in REGISTRY.items() if cls.name == mnemonic)
    assert tile.state.op_count[:, opcode].sum() == pytest.approx(row.count * each, rel=0.01)


def test_a_row_as_json(bhemu) -> None:
    done = bhemu("bench", "riscv", "--json", "--elfs", str(ELFS))
    assert done.exit_code == 0, done.output
    (row,) = json.loads(done.stdout)["rows"]
    assert (row["name"], row["unit"], row["ttsim"], row["ratio"]) == ("riscv", "MIPS", None, None)
    assert row["bhemu"] > 1


@pytest.mark.skipif(not JIT, reason="nothing is compiled in the interpreted mode")
def test_profile_names_the_instruction_that_costs(bhemu) -> None:
    done = bhemu("bench", "elwadd", "--profile", "--json", "--elfs", str(ELFS))
    assert done.exit_code == 0, done.output
    parts = json.loads(done.stdout)["profile"]["elwadd"]
    first = parts[0]
    assert (first["part"], first["calls"]) == ("ELWADD", 8 * 8 * 3000)
    assert all(0 <= part["seconds"] <= first["seconds"] for part in parts)


def test_wrong_names_and_libraries_are_refused_in_one_line(bhemu) -> None:
    done = bhemu("bench", "mvmull", "--elfs", str(ELFS))
    assert (done.exit_code, done.stderr.count("\n")) == (2, 2)
    assert "no benchmark mvmull" in done.stderr
    done = bhemu("bench", "riscv", "--ttsim", "missing.so", "--elfs", str(ELFS))
    assert done.exit_code == 2
    assert "missing.so" in done.stderr
