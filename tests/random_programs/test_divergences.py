"""Every row of the table of known divergences has a program that shows it."""

import os

import pytest

from bhemu.oracle.libttsim import DIFFERENT, ENVIRONMENT, Emulator, Pair, find
from random_programs.dice import Dice
from random_programs.divergences import ALWAYS, TABLE, Divergence, match
from random_programs.units.accept import probe

needs_library = pytest.mark.skipif(
    not os.environ.get(ENVIRONMENT), reason="the library is the user's own"
)
CASES = pytest.mark.parametrize("row", TABLE, ids=lambda row: row.id)


def test_ids_are_unique_and_every_field_is_filled() -> None:
    assert len({row.id for row in TABLE}) == len(TABLE)
    for row in TABLE:
        assert row.what
        assert row.follows
        assert row.why
        assert {name for name, _ in row.example} & set(row.instructions)


@CASES
def test_bhemu_ends_as_the_table_says(row: Divergence) -> None:
    outcome = Emulator(**row.options).run(probe(Dice("divergence", 0, 0))([row.steps()]))
    assert outcome.kind == row.ends[0], str(outcome)


@CASES
def test_the_setting_matters(row: Divergence) -> None:
    """Rows of another setting than the default: the default gives something else."""
    if row.when == ALWAYS:
        assert row.options == {}
        return
    case = probe(Dice("divergence", 0, 0))([row.steps()])
    special, usual = Emulator(**row.options).run(case), Emulator().run(case)
    same = special.l1 is not None and usual.l1 is not None and (special.l1 == usual.l1).all()
    assert not same


@needs_library
@CASES
def test_the_models_differ_as_the_table_says(row: Divergence) -> None:
    case = probe(Dice("divergence", 0, 0))([row.steps()])
    ours = Emulator(**row.options).run(case)
    pair = Pair(bhemu=ours, ttsim=find(None).run(case, clocks=50_000))
    assert pair.verdict == DIFFERENT
    assert (pair.bhemu.kind, pair.ttsim.kind) == row.ends
    if row.options.get("ub") is None:
        reference = str(row.options.get("reference", "ttsim"))
        assert match(pair, row.instructions[0], reference) == row
