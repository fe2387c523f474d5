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
from bhemu.debug.precision import Lost, Steps, _tile, _units, by_tile, packed_of, refused
from bhemu.debug.shadow import FIDELITY, STORE, TRUE, UNPACK, Packed, Shadow
from bhemu.memmap import L1_SIZE
from bhemu.program import codecs, tensor
from bhemu.program.specs import OutputSpec

MATMUL = Path(package.__file__).parent.parent / "elfs" / "matmul"
PHASES, WIDE = "runtime_args+12", "runtime_args+32"
PACKED = 458752  # of golden cases


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
    (spec,) = program.outputs
    base = tile.address(spec.at)
    packed = packed_of(spec, base)
    Shadow(tile, [packed])
    tile.run()
    places = [
        [tensor.bit_offset((r, c), spec.shape, spec.dtype, spec.layout) for c in range(64)]
        for r in range(64)
    ]
    lost = by_tile(packed, base, tile.read(base, spec.size), spec)
    followed = packed.numbers(8 * base + np.array(places))[TRUE]
    return lost, factors[0] @ factors[1], followed


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
    packed = Packed(0, L1_SIZE, 32)
    shadow = Shadow(tile, [packed])
    tile.run()
    made = packed.numbers(32 * np.arange(L1_SIZE // 4))
    known = np.isfinite(made).all(axis=0)
    true, unpack, fidelity, _, store = made[: STORE + 1, known]
    held = made[:, known].sum(axis=0)
    assert known.sum() == 1024
    assert 0 < np.abs(unpack).max() < 2**-9 * np.abs(true).max()
    assert 0 < np.abs(fidelity).max() < 2**-9 * np.abs(true).max()
    assert np.abs(held - true - unpack - fidelity).max() < 2**-9 * np.abs(true).max()
    assert {*shadow.places} == {"unpack", "fidelity", "sum", "pack"}
    assert (TRUE, UNPACK, FIDELITY) == (0, 1, 2)
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
    assert {tuple(one["ulp"].values()) for one in output["steps"]} == {(0, 0, 0, 0, 0, 0)}
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
    assert [step for step, ulp in lost.ulp.items() if ulp] == ["store", "vector"]
    assert lost.ulp["vector"] < 2**-15, "fp32 sums beside bf16"
    assert "math.c:50" in steps.places["store"]


def test_one_great_value_does_not_hide_what_the_others_lose() -> None:
    fmt = codecs.FORMATS["bf16"]
    true = np.ones((32, 32))
    true[0, 0] = 1e38
    units = _units(true, np.full(true.shape, True), fmt)
    assert units[0, 1] == 2**-7 and units[0, 0] > 1e35
    assert _units(np.zeros((32, 32)), np.full((32, 32), True), fmt).max() < 1e-30


def packed_output(name: str, dtype: str, at: int) -> tuple[Lost, np.ndarray, np.ndarray]:
    """What a golden case loses in the tile that it packs, what it made of it, and the exact one."""
    case = load(name)
    tile = start(case)
    spec = OutputSpec("y", at, dtype, "tile32", (32, 32))
    packed = packed_of(spec, at)
    Shadow(tile, [packed])
    tile.run()
    assert case.differences(tile.l1) == []
    data = tile.read(at, spec.size)
    (lost,) = by_tile(packed, at, data, spec)
    places = [
        [tensor.bit_offset((r, c), spec.shape, dtype, spec.layout) for c in range(32)]
        for r in range(32)
    ]
    made = packed.numbers(8 * at + np.array(places))
    return lost, codecs.widen(tensor.decode(data, spec.shape, dtype, spec.layout)), made


def test_an_output_of_four_bits() -> None:
    """bf16 packed as bfp4: three bits of sixteen numbers that share an exponent."""
    lost, got, made = packed_output("copy_bf16_bfp4", "bfp4", PACKED)
    assert lost.most == "pack" and lost.followed == 1
    case = load("copy_bf16_bfp4")
    words = case.before.view(np.uint16).astype(np.uint32) << 16
    assert np.isin(made[TRUE], words.view(np.float32)).all()
    groups = np.abs(made[TRUE]).reshape(32, 2, 16).max(axis=2)
    unit = np.repeat(2.0 ** (np.floor(np.log2(groups)) - 2), 16, axis=1)
    least = np.median(np.abs(made[TRUE]))
    least = 2.0 ** (np.floor(np.log2(least)) - 2)
    error = (got - made[TRUE]) / np.maximum(unit, least)
    assert lost.ulp["pack"] == pytest.approx(np.sqrt((error**2).mean()))
    assert lost.ulp["pack"] > 0.1


def test_an_output_of_integers() -> None:
    """int8 times int8 as int32: nothing is lost in four phases."""
    lost, got, made = packed_output("mm_int8", "int32", PACKED)
    assert lost.followed == 1 and set(lost.ulp.values()) == {0.0}
    assert np.array_equal(made[TRUE], got) and np.abs(got).max() > 1000


def test_bfp8_that_is_multiplied_in_two_phases() -> None:
    lost, got, made = packed_output("mm_hifi2_bfp8", "bf16", PACKED)
    assert lost.followed == 1
    assert np.allclose(made.sum(axis=0), got, rtol=1e-12)
    assert lost.most == "fidelity" and lost.bits > 1


@pytest.mark.filterwarnings("error")
def test_with_exact_values_the_formula_has_its_share(tmp_path: Path) -> None:
    """exp: the vector unit's roundings are named, the polynomial is off by little."""
    folder = MATMUL.parent / "sfpu"
    x = np.load(folder / "in.npy").astype(np.float64)
    np.save(tmp_path / "exact.npy", np.exp(np.clip(x, -87.3, 88.72)))
    command = ["numerics", "-q", str(folder), "--steps", "--against", f"D={tmp_path}/exact.npy"]
    result = CliRunner().invoke(main, [*command, "--json"])
    assert result.exit_code == 0, result.output
    (output,) = json.loads(result.stdout)["outputs"]
    for one in output["steps"]:
        assert one["most"] == "vector" and one["followed"] == 1 and not one["doubtful"]
        assert 0 < one["ulp"]["method"] < 0.2 < one["ulp"]["vector"] < 0.5
    assert output["words"][0]["word"].startswith("SFPMAD")
    assert "math.c" in output["words"][0]["place"]
    text = CliRunner().invoke(main, command).stdout
    assert "method" in text and "vector: SFPMAD" in text


def test_a_program_that_means_something_else_than_it_computes_is_said_to() -> None:
    true, got = np.full((3, 32, 32), 0.0), np.ones((32, 32))
    true[TRUE], true[UNPACK] = 9.0, -8.0
    lost = _tile(true, got, codecs.FORMATS["bf16"], (0, 0), np.ones((32, 32)))
    assert lost.doubtful and lost.total == 0.0
    assert not _tile(true, got, codecs.FORMATS["bf16"], (0, 0), true[TRUE]).doubtful


def test_formats_without_numbers_are_refused_by_name() -> None:
    assert "bytes" in refused(OutputSpec("y", 0, "raw", "raw", (64,)))
    assert "rows" in refused(OutputSpec("y", 0, "bf16", "rows", (4, 64)))
    assert not refused(OutputSpec("y", 0, "bfp2", "tile32", (32, 32)))
