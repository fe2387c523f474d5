"""`bhemu bench`: figures that are rates of the counted work, and where the time goes."""

import json
from pathlib import Path

import pytest

import bhemu as package
from bhemu.bench import benchmarks, run_once, select
from bhemu.jit.subset import JIT
from bhemu.tensix.insn import instructions
from random_programs.format_benchmarks import sweep
from random_programs.units import pack
from random_programs.units.unpack_source import TO_DST, TO_SRC

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
    opcode = next(op for op, cls in instructions().items() if cls.name == mnemonic)
    assert tile.state.op_count[:, opcode].sum() == pytest.approx(row.count * each, rel=0.01)


def test_a_row_as_json(bhemu) -> None:
    done = bhemu("bench", "riscv", "--json", "--elfs", str(ELFS))
    assert done.exit_code == 0, done.output
    (row,) = json.loads(done.stdout)["rows"]
    assert (row["name"], row["unit"], row["ttsim"], row["ratio"]) == ("riscv", "MIPS", None, None)
    assert row["bhemu"] > 1


@pytest.mark.skipif(not JIT, reason="the interpreted mode needs minutes for a benchmark")
def test_both_engines_side_by_side(bhemu) -> None:
    done = bhemu("bench", "add1", "--engine", "both", "--elfs", str(ELFS))
    assert done.exit_code == 0, done.output
    head, line = done.stdout.splitlines()
    assert head.split()[:4] == ["benchmark", "unicorn", "compiled", "times"]
    unicorn, compiled, times = line.split()[1:4]
    assert float(compiled) / float(unicorn) == pytest.approx(float(times.rstrip("x")), rel=0.1)


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


def test_every_pair_of_formats_that_the_golden_model_takes_has_a_row() -> None:
    names = [b.name for b in sweep()]
    assert len(set(names)) == len(names)
    assert all(b.case().image for b in sweep()[::17])
    packs = [name for name in names if name.startswith("pack:") and name.count(":") == 2]
    assert len(packs) == sum(len(pairs) for _, pairs in pack.KINDS)
    for target, pairs in (("SrcA", TO_SRC), ("SrcB", TO_SRC), ("Dst", TO_DST)):
        assert len([name for name in names if name.endswith(f":{target}")]) == len(pairs)


@pytest.mark.skipif(not JIT, reason="the interpreted mode needs minutes for a benchmark")
@pytest.mark.parametrize(
    ("name", "mnemonic", "each"),
    [
        ("unpack:bfp8-bfp8:SrcA-tilize", "UNPACR", 1),
        ("unpack:int32-int32:Dst", "UNPACR", 1),
        ("pack:32:fp32-bfp4", "PACR", 16),
        ("pack:16:fp16-fp16:add:2row", "PACR", 32),
    ],
)
def test_a_row_of_formats_counts_tiles(name: str, mnemonic: str, each: int) -> None:
    (row,) = select(ELFS, (name,))
    _, tile = run_once(row.case(), name)
    opcode = next(op for op, cls in instructions().items() if cls.name == mnemonic)
    executed = tile.state.op_count[:, opcode].sum()
    assert executed == pytest.approx(row.count * each, rel=0.05)
