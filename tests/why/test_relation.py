"""What a wrong output is of the expected one; and which of its inputs nothing reads."""

import shutil
from pathlib import Path

import numpy as np
import pytest

import bhemu
from bhemu import Program
from bhemu.program.specs import OutputSpec
from bhemu.program.tensor import decode, encode
from bhemu.why.origin import pair, relation

ELFS = Path(bhemu.__file__).parent.parent / "elfs"
SHAPE = (64, 96)


def said(tmp_path: Path, got, wanted, dtype: str = "bf16", shape=SHAPE) -> str:
    np.save(tmp_path / "y.npy", wanted.astype(np.float32))
    spec = OutputSpec("y", 0, dtype, "tile32", shape, expect=tmp_path / "y.npy")
    return relation(*pair(spec, encode(got, dtype, "tile32", "nearest")))


def values(seed: int, shape=SHAPE):
    """Random numbers that bf16 holds."""
    random = np.random.default_rng(seed).normal(size=shape)
    return decode(encode(random, "bf16", "tile32", "nearest"), shape, "bf16")


def summed(wanted):
    got = wanted.copy()
    got[32:, 32:64] += wanted[:32, 64:]
    return got


def faces_transposed(wanted):
    parts = wanted.reshape(4, 16, 6, 16)
    return parts.transpose(0, 3, 2, 1).reshape(SHAPE)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda y: -y, "; each that differs is the negative of what is expected"),
        (lambda y: y * 4, "; each that differs is 4 times what is expected"),
        (lambda y: y / 3, "; each that differs is 0.333 times what is expected"),
        (lambda y: y * 0, "; all that differ are 0"),
        (lambda y: np.maximum(y, 0), "; all that differ are 0, which are to be negative"),
        (faces_transposed, "; each block of 16x16 elements that differs is transposed"),
        (
            summed,
            "; the 32x32 elements at [32, 32] are those expected there plus those at [0, 64]",
        ),
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_a_relation_is_found(tmp_path: Path, change, sentence: str, seed: int) -> None:
    wanted = values(seed)
    assert said(tmp_path, change(wanted), wanted) == sentence


def test_a_missing_relu_and_a_transposed_matrix(tmp_path: Path) -> None:
    got = values(1, (32, 32))
    text = "; all that differ are negative, where 0 is expected"
    assert said(tmp_path, got, np.maximum(got, 0), shape=(32, 32)) == text
    assert said(tmp_path, got.T, got, shape=(32, 32)) == "; it is what is expected, transposed"


def test_a_constant_is_more_or_less(tmp_path: Path) -> None:
    wanted = np.arange(32 * 32).reshape(32, 32) % 100.0
    for more, than in ((3.0, "3 more"), (-3.0, "3 less")):
        text = f"; each that differs is {than} than expected"
        assert said(tmp_path, wanted + more, wanted, shape=(32, 32)) == text


@pytest.mark.parametrize("seed", range(20))
def test_numbers_without_a_relation_are_not_said_to_have_one(tmp_path: Path, seed: int) -> None:
    """Others at some places, small integers, values off by a rounding, and infinities."""
    random = np.random.default_rng(seed)
    wanted = random.integers(-3, 4, SHAPE).astype(np.float32)
    got = np.where(random.random(SHAPE) < 0.3, random.integers(-3, 4, SHAPE), wanted)
    assert said(tmp_path, got, wanted) == ""
    wanted = values(seed)
    assert said(tmp_path, wanted * (1 + 2.0**-7), wanted) == ""
    wanted[3], got = np.inf, wanted.copy()
    got[8:40, 5] = random.normal(size=32)
    assert said(tmp_path, got, wanted) == ""


def test_of_an_input_that_is_read_in_part_the_rest_is_named(tmp_path: Path) -> None:
    """The second tile of the input lies where nothing looks; the expected output is a wrong one."""
    shutil.copytree(ELFS / "add1", tmp_path, dirs_exist_ok=True)
    text = (tmp_path / "PROGRAM.toml").read_text()
    assert text.count("shape = [32, 32]") == 2
    (tmp_path / "PROGRAM.toml").write_text(text.replace("[32, 32]", "[64, 32]", 1))
    held, wanted = np.load(tmp_path / "in.npy"), np.load(tmp_path / "expected.npy")
    np.save(tmp_path / "in.npy", np.concatenate([held, held]))
    wanted[3, 3] = 1024
    np.save(tmp_path / "expected.npy", wanted)
    found = Program.load(tmp_path).launch().why()[0]
    text = "; of in.npy 1 of 2 blocks of 32x32 are never read, the first 0x800 bytes from its"
    assert text in found.text
    assert found.culprit["role"] == "read by"
    assert (found.culprit["core"], found.culprit["file"]) == ("trisc0", "unpack.c")
