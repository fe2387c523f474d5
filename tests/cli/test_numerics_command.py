"""`bhemu numerics`: ULP by tile, and the causes of the first NaN or infinity."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bhemu as package
from bhemu.tensix.insn import decode

ELFS = Path(package.__file__).parent.parent / "elfs"
RECIPROCAL, RELU = 2, 7


@pytest.fixture
def sfpu(tmp_path: Path) -> Any:
    """sfpu(op, x, exact): the shipped program with another operation and input."""

    def create(op: int, x: np.ndarray[Any, Any], exact: np.ndarray[Any, Any]) -> Path:
        folder = tmp_path / "sfpu"
        shutil.copytree(ELFS / "sfpu", folder)
        np.save(folder / "in.npy", x.astype(np.float32))
        np.save(folder / "exact.npy", exact)
        text = (folder / "PROGRAM.toml").read_text()
        (folder / "PROGRAM.toml").write_text(
            text.replace('"u32:2", "u32:0", "u32:0"', f'"u32:2", "u32:{op}", "u32:0"')
        )
        return folder

    return create


def assemble_field(word: int, name: str) -> int:
    cls = decode(word)
    assert cls is not None
    return cls.operands(word)[name]


def numbers() -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.linspace(1, 9, 64 * 32, dtype=np.float32).reshape(64, 32)


def measured(bhemu: Any, folder: Path, *more: str) -> dict[str, Any]:
    result = bhemu("numerics", folder, "--against", f"D={folder / 'exact.npy'}", "--json", *more)
    assert result.exit_code == 0, result.output
    output: dict[str, Any] = json.loads(result.stdout)["outputs"][0]
    return output


def test_the_shipped_program(bhemu) -> None:
    """The errors are those of exp against float64, to the last digit."""
    folder = ELFS / "sfpu"
    output = measured_exp(bhemu, folder)
    assert 0.5 < output["max_ulp"] < 1.0
    assert [tile["tile"] for tile in output["tiles"]] == [
        {"tile_row": row, "tile_column": 0} for row in (0, 1)
    ]
    for tile in output["tiles"]:
        index = tuple(tile["index"])
        exact = float(np.load(folder / "exp64.npy")[index])
        unit = 2.0 ** (np.floor(np.log2(exact)) - 23)
        assert tile["most"] == abs(tile["got"] - exact) / unit
    assert output["max_ulp"] == max(tile["most"] for tile in output["tiles"])
    assert output["first_not_finite"] is None


def measured_exp(bhemu: Any, folder: Path) -> dict[str, Any]:
    result = bhemu("numerics", folder, "--against", f"D={folder / 'exp64.npy'}", "--json")
    output: dict[str, Any] = json.loads(result.stdout)["outputs"][0]
    return output


def test_the_expected_file_is_the_default(bhemu) -> None:
    result = bhemu("numerics", ELFS / "sfpu")
    assert result.exit_code == 0
    assert "D  64x32 fp32  1 ULP at most" in result.stdout
    assert "tile (1, 0), face" in result.stdout


def test_a_nan_is_traced_to_the_store_that_brought_it_into_dst(sfpu, bhemu) -> None:
    """1 / 0 makes a NaN in the second Newton step; tile 1 is in the second half."""
    x = numbers()
    x[40, 5] = 0
    with np.errstate(divide="ignore"):
        folder = sfpu(RECIPROCAL, x, 1 / x.astype(np.float64))
    output = measured(bhemu, folder)
    first = output["first_not_finite"]
    assert (output["not_finite"], first["value"], first["index"]) == (1, "nan", [40, 5])
    assert first["place"]["face"] == 0
    written, made, *chain = links = first["origin"]["links"]
    assert [link["depth"] for link in links] == list(range(len(links)))
    assert (written["place"], word(written)) == ("D[40,5]", "PACR")
    assert made["place"] == f"dst:{512 + 16}:5"  # storage row of 32-bit row 8
    assert (word(made), made["where"]["thread"]) == ("SFPSTORE", 1)
    assert made["where"]["file"].endswith("math.c")
    lane = 5 // 2  # row 8 of the tile is the first of four, and lanes go by pairs of columns
    assert {link["place"].split(":")[2] for link in chain} == {str(lane)}
    register = assemble_field(made["where"]["word"], "lreg_ind")
    assert chain[0]["place"] == f"lreg:{register}:{lane}"
    clocks = [link["clock"] for link in links]
    assert clocks == sorted(clocks, reverse=True)
    assert (word(chain[0]), word(chain[-1])) == ("SFPMAD", "SFPARECIP")
    assert chain[-1]["after"] == 0x7F800000, "1 / 0"
    assert chain[0]["after"] == 0x7FC00000
    assert output["tiles"][0]["infinite"] == 0
    assert output["tiles"][1]["infinite"] == 1


def word(link: dict[str, Any]) -> str:
    return str(link["where"]["decoded"].split()[0])


def test_the_word_is_the_one_at_which_dst_changes(sfpu, bhemu) -> None:
    """Two of the 32 stores of a tile differ in the row they write: the right one is named."""
    clocks = []
    for row in (0, 4):
        x = numbers()
        x[row, 0] = 0
        with np.errstate(divide="ignore"):
            folder = sfpu(RECIPROCAL, x, 1 / x.astype(np.float64))
        origin = measured(bhemu, folder)["first_not_finite"]["origin"]
        clocks.append(origin["links"][1]["clock"])
        shutil.rmtree(folder)
    # 4 rows on are two stores later: even columns, then odd ones; 7 words per round, a clock each.
    assert clocks[1] - clocks[0] == 2 * 7


def test_an_infinity_of_the_input_comes_from_the_unpacker(sfpu, bhemu) -> None:
    """relu leaves the infinity that UNPACR had brought, and makes 0 of the negative one."""
    x = numbers()
    x[0, 1] = -np.inf
    folder = sfpu(RELU, x, np.maximum(x, 0).astype(np.float64))
    output = measured(bhemu, folder)
    assert output["not_finite"] == 0
    x[0, 1] = np.inf
    shutil.rmtree(folder)
    folder = sfpu(RELU, x, x.astype(np.float64))
    output = measured(bhemu, folder)
    links = output["first_not_finite"]["origin"]["links"]
    assert [word(link) for link in links] == ["PACR", "UNPACR"]
    assert output["max_ulp"] == 0.0  # infinite as it should be


def test_text_names_both_words(sfpu, bhemu) -> None:
    x = numbers()
    x[1, 1] = 0
    with np.errstate(divide="ignore"):
        folder = sfpu(RECIPROCAL, x, 1 / x.astype(np.float64))
    result = bhemu("numerics", folder, "--against", f"D={folder / 'exact.npy'}", "--tiles", 1)
    assert "the first is nan at tile (0, 0), face 0, row 1, column 1" in result.stdout
    assert "\nD[1,1]: 0x0 -> 0x7fc00000, clock " in result.stdout and "PACR" in result.stdout
    assert "\n  dst:1:1: 0x" in result.stdout and "SFPSTORE" in result.stdout
    assert "\n    lreg:" in result.stdout and "SFPARECIP" in result.stdout
    assert "1 more tiles, none worse" in result.stdout


def test_without_exact_values_only_what_is_not_finite_is_told(write, bhemu) -> None:
    """The datum lies there before anything runs: nothing in the run wrote it."""
    from bhemu.riscv.assembly import PARK, tt

    more = '[[output]]\nat = 0x20000\ndtype = "fp32"\nlayout = "rows"\nshape = [1, 4]\n'
    more += '[[set]]\nat = 0x20008\nvalues = ["u32:0xff800000"]\n'
    result = bhemu("numerics", write(tt("NOP"), PARK, more=more))
    assert result.exit_code == 0, result.output
    assert "nothing to compare with: --against output=FILE.npy" in result.stdout
    assert "1 not finite; the first is -inf at row 0, column 2" in result.stdout
    assert "output[0,2] = 0xff800000: nothing has changed it since power-up" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--against", "D"], "not NAME=FILE.npy"),
        (["--against", "E=x.npy"], "no output is called 'E'"),
        (["--against", "D=missing.npy"], "missing.npy cannot be read"),
        (["--tiles", "0"], "--tiles"),
    ],
)
def test_bad_arguments(bhemu, arguments: list[str], message: str) -> None:
    result = bhemu("numerics", ELFS / "sfpu", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_program_without_outputs(write, bhemu) -> None:
    from bhemu.riscv.assembly import PARK

    result = bhemu("numerics", write(PARK))
    assert result.exit_code == 2
    assert "has no output" in result.stderr


def test_a_run_that_fails_has_the_exit_code_of_run(bhemu) -> None:
    result = bhemu("numerics", ELFS / "sfpu", "--limit", 10)
    assert result.exit_code == 7


def test_a_block_float_output_has_an_origin_too(write, bhemu) -> None:
    """Sign without magnitude is minus infinity; nothing but the loader put it there."""
    from bhemu.riscv.assembly import PARK, tt

    more = '[[output]]\nat = 0x20000\ndtype = "bfp8"\nlayout = "rows"\nshape = [1, 16]\n'
    more += '[[set]]\nat = 0x20010\nvalues = ["u32:0x00800000"]\n'
    result = bhemu("numerics", write(tt("NOP"), PARK, more=more), "--json")
    assert result.exit_code == 0, result.output
    first = json.loads(result.stdout)["outputs"][0]["first_not_finite"]
    assert (first["index"], first["value"]) == ([0, 2], "-inf")
    (link,) = first["origin"]["links"]
    assert (link["place"], link["after"], link["where"]) == ("output[0,2]", 0x80, None)
    assert "nothing has changed it" in link["text"]
