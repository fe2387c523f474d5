"""Which step loses how much: a run followed in float64 beside itself."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from golden_case import load, start

import bhemu as package
from bhemu import Program, Tile
from bhemu.cli import main
from bhemu.debug.precision import Lost, Steps, _units, by_tile
from bhemu.debug.shadow import FIDELITY, HELD, TRUE, UNPACK, Shadow
from bhemu.program import codecs, tensor

MATMUL = Path(package.__file__).parent.parent / "elfs" / "matmul"
PHASES, WIDE = "runtime_args+12", "runtime_args+32"


def multiplied(phases: int, wide: int) -> tuple[list[Lost], np.ndarray, np.ndarray]:
    """What was lost in a product of random numbers, the exact one, and the followed one."""
    program = Program.load(MATMUL)
    tile, rng, factors = program.launch(), np.random.default_rng(phases), []
    tile.write32(PHASES, phases)
    tile.write32(WIDE, wide)
    for core in ("trisc1", "trisc2"):
        assert tile.core[core].images, "one copy of the arguments serves all cores"
    for spec in program.inputs:
        values = rng.standard_normal(spec.shape).astype(np.float32)
        data = tensor.encode(values, spec.dtype, spec.layout, "nearest")
        tile.write(tile.address(spec.at), data)
        factors.append(codecs.widen(tensor.decode(data, spec.shape, spec.dtype, spec.layout)))
    shadow, (spec,) = Shadow(tile), program.outputs
    tile.run()
    base = tile.address(spec.at)
    places = [
        [tensor.bit_offset((r, c), spec.shape, spec.dtype, spec.layout) // 8 for c in range(64)]
        for r in range(64)
    ]
    lost = by_tile(shadow, base, tile.read(base, spec.size), spec)
    return lost, factors[0] @ factors[1], shadow.l1[TRUE][base + np.array(places)]


@pytest.mark.parametrize(
    ("phases", "wide", "most"),
    [(1, 0, "fidelity"), (2, 1, "fidelity"), (4, 0, "sum"), (4, 1, "pack")],
)
def test_the_step_that_loses_most_follows_from_phases_and_width(phases, wide, most) -> None:
    lost, exact, followed = multiplied(phases, wide)
    assert np.allclose(followed, exact, rtol=1e-12, atol=1e-12)
    assert {one.most for one in lost} == {most}
    assert [one.tile for one in lost] == [
        {"tile_row": r, "tile_column": c} for r in range(2) for c in range(2)
    ]
    assert all(one.followed == 1 for one in lost)
    for one in lost:
        assert one.ulp["unpack"] == 0
        assert (one.ulp["fidelity"] == 0) == (phases == 4)
        assert (one.ulp["pack"] == 0) == (not wide)
        if most == "pack":
            assert one.ulp["pack"] == pytest.approx(0.29, abs=0.1)  # rounding alone
            assert one.bits < 0.5


def test_fewer_phases_lose_more() -> None:
    one, two = (multiplied(phases, 1)[0][0] for phases in (1, 2))
    assert one.ulp["fidelity"] > 3 * two.ulp["fidelity"]
    assert one.bits > two.bits + 1.5


def test_unpacking_to_fewer_bits() -> None:
    """fp32 to tf32 drops 13 bits of the mantissa; of SrcA the products leave out one more."""
    case = load("mm_hifi4_tf32")
    tile = start(case)
    shadow = Shadow(tile)
    tile.run()
    known = np.isfinite(shadow.l1).all(axis=0)
    true, unpack, fidelity, store, held = shadow.l1[:, known]
    assert known.sum() == 1024
    assert 0 < np.abs(unpack).max() < 2**-9 * np.abs(true).max()
    assert 0 < np.abs(fidelity).max() < 2**-9 * np.abs(true).max()
    assert np.abs(held - true - unpack - fidelity).max() < 2**-9 * np.abs(true).max()
    assert {step for step, seen in shadow.places.items() if seen} == {*shadow.places} - {"store"}
    assert (TRUE, UNPACK, FIDELITY, HELD) == (0, 1, 2, 4)
    assert not store.any()


@pytest.mark.parametrize(
    "name", ["mm_hifi2_bf16", "elwadd_bf16", "elwsub_fp32", "gapool", "mop_loops"]
)
def test_following_a_run_changes_nothing(name) -> None:
    case = load(name)
    tile = start(case)
    Shadow(tile)
    tile.run()
    assert case.differences(tile.l1) == []


def test_numerics_says_it() -> None:
    result = CliRunner().invoke(main, ["numerics", "-q", str(MATMUL), "--steps", "--json"])
    assert result.exit_code == 0, result.output
    (output,) = json.loads(result.stdout)["outputs"]
    assert [one["most"] for one in output["steps"]] == ["unpack"] * 4
    assert {tuple(one["ulp"].values()) for one in output["steps"]} == {(0, 0, 0, 0, 0)}
    assert "matmul_tile.h" in output["places"]["fidelity"]
    text = CliRunner().invoke(main, ["numerics", "-q", str(MATMUL), "--steps"]).stdout
    assert "error that each step adds" in text


@pytest.mark.filterwarnings("error")
def test_a_store_of_the_vector_unit_that_narrows_is_named() -> None:
    """fp32 lanes are cut to bf16; a tile with infinities and values of all sizes."""
    program = Program.load(MATMUL.parent / "add1")

    def launch() -> Tile:
        tile = program.launch()
        tile.write32("runtime_args+4", int(np.float32(0.3001).view(np.uint32)))
        return tile

    steps = Steps(program, launch)
    (lost,) = steps.lost(program.outputs[0])
    assert lost.most == "store" and lost.followed > 0.99
    assert 0.29 < lost.ulp["store"] < 3**-0.5, "cut, not rounded"
    assert [step for step, ulp in lost.ulp.items() if ulp] == ["store"]
    assert "math.c:50" in steps.places["store"]


def test_one_great_value_does_not_hide_what_the_others_lose() -> None:
    fmt = codecs.FORMATS["bf16"]
    true = np.ones((32, 32))
    true[0, 0] = 1e38
    units = _units(true, np.full(true.shape, True), fmt)
    assert units[0, 1] == 2**-7 and units[0, 0] > 1e35
    assert _units(np.zeros((32, 32)), np.full((32, 32), True), fmt).max() < 1e-30
