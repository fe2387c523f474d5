"""The check "slots": what a MOP issues of its template, and what only stands there."""

from pathlib import Path

import pytest
from corpus import Line, checked, folder, store

import bhemu.tensix.units  # noqa: F401  (declares the instructions)
from bhemu.memmap import MOP_CFG_BASE
from bhemu.riscv.assembly import tt
from bhemu.tensix.insn import assemble

NOP = 0x02000000
RECORD = tt("REPLAY", load_mode=1, start_idx=0, len=2)
PLAY, UNRECORDED = assemble("REPLAY", len=2), assemble("REPLAY", start_idx=1, len=2)


def kernel(template: dict[int, int], word: int) -> dict[str, list[Line]]:
    words = dict.fromkeys(range(2, 9), NOP) | template
    setup: list[Line] = [store(MOP_CFG_BASE + 4 * k, value) for k, value in words.items()]
    return {"trisc0": [RECORD, tt("NOP"), tt("NOP"), *setup, word]}


@pytest.mark.parametrize(
    ("template", "word", "found"),
    [
        ({0: 1, 1: 0, 3: PLAY, 4: UNRECORDED, 2: UNRECORDED, 7: UNRECORDED}, tt("MOP"), False),
        ({0: 1, 1: 1, 3: PLAY, 2: UNRECORDED}, tt("MOP"), True),
        ({0: 1, 1: 2, 3: PLAY, 6: UNRECORDED}, tt("MOP"), True),
        ({0: 1, 1: 1, 7: PLAY, 5: UNRECORDED, 8: UNRECORDED}, tt("MOP", mop_type=1), False),
        ({0: 1, 1: 2, 7: PLAY, 5: UNRECORDED}, tt("MOP", mop_type=1), True),
        ({0: 2, 1: 1, 7: PLAY, 8: UNRECORDED}, tt("MOP", mop_type=1), True),
        ({0: 1, 1: 1, 5: PLAY, 6: UNRECORDED}, tt("MOP", mop_type=1), False),
        ({0: 1, 1: 2, 5: PLAY, 6: UNRECORDED}, tt("MOP", mop_type=1), True),
    ],
)
def test_only_what_a_mop_issues_counts(
    tmp_path: Path, template: dict[int, int], word: int, found: bool
) -> None:
    seen = checked(folder(tmp_path / "p", kernel(template, word)), "slots")
    assert [one["check"] for one in seen] == ["unwritten"] * found
