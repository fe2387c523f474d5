"""What a SWEEP.toml says, which runs come of it, and how its mistakes are named."""

import random
from pathlib import Path

import pytest

from bhemu.errors import InputError
from bhemu.sweeps.spec import Plan, load_sweep

GRID = """sweep = 1
program = "add1"
set = ["runtime_args+4=f32:{scalar}"]
[parameters]
scalar = [0.5, 1.0]
quantum = [7, 100, 1000]
"""


def plan(folder: Path, text: str, **options: bool) -> Plan:
    (folder / "SWEEP.toml").write_text(text)
    return Plan(load_sweep(folder, **options))


def points(found: Plan) -> list[tuple[object, ...]]:
    return [tuple(run.parameters.values()) for run in found.runs]


def refusal(folder: Path, text: str) -> str:
    with pytest.raises(InputError) as caught:
        plan(folder, text)
    return str(caught.value).replace(f"{folder}/", "")


def test_a_grid_is_every_combination_the_last_parameter_fastest(folder: Path) -> None:
    found = plan(folder, GRID)
    assert points(found) == [(s, q) for s in (0.5, 1.0) for q in (7, 100, 1000)]
    assert found.runs[4].command == ("bhemu run add1 --set runtime_args+4=f32:1.0 --quantum 100")


def test_a_list_takes_the_values_in_step(folder: Path) -> None:
    text = GRID.replace("program =", 'choose = "list"\nprogram =').replace("[0.5, 1.0]", "1.0")
    assert points(plan(folder, text)) == [(1.0, 7), (1.0, 100), (1.0, 1000)]
    two = text.replace("scalar = 1.0", "scalar = [1, 2]")
    assert "parameters of one length, not 2 and 3" in refusal(folder, two)


def test_random_runs_are_of_the_grid_each_once_and_the_seed_decides(folder: Path) -> None:
    text = GRID.replace("program =", 'choose = "random"\ncount = 4\nseed = 5\nprogram =')
    found = points(plan(folder, text))
    assert len(set(found)) == 4 and set(found) < set(points(plan(folder, GRID)))
    assert points(plan(folder, text)) == found
    assert points(plan(folder, text.replace("seed = 5", "seed = 6"))) != found
    assert "count = 7 of 6 runs" in refusal(folder, text.replace("count = 4", "count = 7"))


def test_a_program_has_parameters_of_its_own(folder: Path) -> None:
    text = """sweep = 1
[parameters]
quantum = [7, 100]
[[program]]
path = "hang_cycle"
[[program]]
path = "add1"
set = "runtime_args=u32:{tiles}"
[program.parameters]
tiles = { first = 1, last = 3 }
"""
    found = plan(folder, text)
    assert [(r.program, *r.parameters.values()) for r in found.runs] == [
        *(("hang_cycle", q) for q in (7, 100)),
        *(("add1", q, n) for q in (7, 100) for n in (1, 2, 3)),
    ]
    assert found.columns == ("quantum", "tiles")


def test_a_key_changes_with_a_file_and_with_a_flag_and_with_nothing_else(folder: Path) -> None:
    keys = {run.key for run in plan(folder, GRID).runs}
    assert keys == {run.key for run in plan(folder, GRID.replace("7, 100", "100, 7")).runs}
    assert len(keys) == 6
    data = (folder / "add1" / "in.npy").read_bytes()
    (folder / "add1" / "in.npy").write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    assert not keys & {run.key for run in plan(folder, GRID).runs}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("sweep = 1", "sweep = 2", "sweep = 2\nhint: this is schema version 1"),
        ("sweep = 1", "", "missing key sweep"),
        ("quantum =", "qantum =", "parameter qantum is neither an option of bhemu run nor used"),
        ("quantum =", "qantum =", "did you mean quantum?"),
        ("{scalar}", "{scaler}", "{scaler} stands for no parameter\nhint: did you mean scalar?"),
        ("[7, 100, 1000]", "[]", "quantum has no values"),
        ("[7, 100, 1000]", "[7, 7]", "7 stands there twice"),
        ("[7, 100, 1000]", "[7, 0]", "quantum = 0 must be an integer of 1 to"),
        ("[7, 100, 1000]", "{ first = 3, last = 1 }", "quantum has no values"),
        ("[7, 100, 1000]", "{ first = 3, lst = 1 }", "missing key last"),
        ("[0.5, 1.0]", '[0.5, "x"]', "values of one kind"),
        ("scalar = [0.5, 1.0]", "clock = [1]\nscalar = 1", "clock is a column of the results"),
        ("program =", "programs =", "missing key program"),
        ("program =", 'choose = "some"\nprogram =', 'choose = "some"\nhint: allowed: grid'),
        ("program =", "count = 3\nprogram =", 'count goes with choose = "random"'),
        ('"add1"', '"../add1"', "leaves the folder of the sweep"),
        ('"add1"', '"add2"', "add2: no such file"),
        ("set = [", 'in = ["/etc/passwd@0x40000:raw"]\nset = [', "leaves the folder of the sweep"),
        ("set = [", 'in = ["no.npy@0x40000:bf16"]\nset = [', "no.npy cannot be read"),
        ("f32:{scalar}", "f33:{scalar}", "'f33:0.5' is not a value"),
        ("set = [", "set = [1,", "set is not an array of strings"),
    ],
)
def test_a_mistake_is_named_before_anything_runs(
    folder: Path, old: str, new: str, said: str
) -> None:
    assert old in GRID
    assert said in refusal(folder, GRID.replace(old, new, 1))


TOKENS = [
    *("[]", "{}", '""', "-1", "true", "1e309", "nan", "[[1]]", '"{x}"', '"../x"', "1979-05-27"),
    *("99999999999999999999", "{ first = 1 }", "{ first = 0, last = 9 }", "[parameters]", "\x00"),
]


def test_a_damaged_file_is_an_input_error_or_a_sweep(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BHEMU_LIMIT_SWEEP_RUNS", "100")
    r, refused = random.Random(3), 0
    for _ in range(400):
        lines = GRID.splitlines()
        for _ in range(r.randrange(1, 3)):
            i = r.randrange(len(lines))
            key = lines[i].partition("=")[0]
            cut = lines[i][: r.randrange(len(lines[i]) + 1)]
            lines[i] = r.choice([f"{key}= {r.choice(TOKENS)}", cut, lines[i] + r.choice(TOKENS)])
        try:
            plan(folder, "\n".join(lines))
        except InputError:
            refused += 1
    assert 200 < refused < 400


def test_the_number_of_runs_has_a_limit(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = GRID.replace("[7, 100, 1000]", "{ first = 1, last = 1_000_000_000_000 }")
    assert "BHEMU_LIMIT_SWEEP_RUNS" in refusal(folder, text)
    monkeypatch.setenv("BHEMU_LIMIT_SWEEP_RUNS", "5")
    assert "6, the limit is 5" in refusal(folder, GRID)
