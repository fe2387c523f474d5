"""Bugs planted in our kernels for many tiles: each ends with an error, a hang report or other data.

The kernels are compiled anew from edited sources, so the compiler must be there.
"""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from chip_program import copied, edited

from bhemu.errors import BhemuError, NoProgress
from bhemu.launch import Program
from bhemu.machine.machine import Chip

ROOT = Path(__file__).parents[2]
Change = tuple[str, str, str]  # source, text, replacement


@pytest.fixture
def broken(compiler: ModuleType, tmp_path: Path) -> Callable[..., Chip]:
    """broken(name, change, ...): the launched program with an edited source."""

    def launched(name: str, change: Change, **options: Any) -> Chip:
        source, text, replacement = change
        path = compiler.ROOT / "firmware" / source
        original = path.read_text()
        assert text in original
        program = edited(copied(tmp_path, name), ("limit = 50_000_000", "limit = 5_000_000"))
        path.write_text(original.replace(text, replacement, 1))
        try:
            for each in compiler.PROGRAMS:
                if each.moves and each.elf.startswith(f"elfs/{name}/"):
                    out = program.parent / Path(each.elf).name
                    compiler.build(each, out, compiler.ROOT / "firmware")
        finally:
            path.write_text(original)
        chip = Program.load(program).launch(**options)
        assert isinstance(chip, Chip)
        return chip

    return launched


def test_without_a_change_it_is_the_program_that_is_shipped(broken: Callable[..., Chip]) -> None:
    chip = broken("add1_chip", ("dataflow/reader.c", "NCRISC", "NCRISC"))
    assert chip.run().reason == "until"
    assert all(result.equal for result in chip.check())


HANGS = {
    "wrong number of receivers": (
        "matmul_mcast",
        ("matmul_mcast/in0.c", ".receivers = args->columns - 1", ".receivers = args->columns"),
        "ncrisc",
    ),
    "credit lost": ("add1_chip", ("dataflow/writer.c", "cb_pop(&cb, 1);", ""), "brisc"),
    "page never announced": ("add1_chip", ("dataflow/reader.c", "cb_push(&cb, 1);", ""), "ncrisc"),
    "semaphore never reset": (
        "matmul_mcast",
        ("matmul_mcast/send.h", "    semaphore_set(o->ready, 0);\n", ""),
        "brisc",
    ),
    "increment of another semaphore": (
        "matmul_mcast",
        ("matmul_mcast/send.h", "o->sender_xy, o->ready, 1", "o->sender_xy, o->valid, 1"),
        "ncrisc",
    ),
}


@pytest.mark.parametrize("bug", HANGS)
def test_a_hang_names_tiles_cores_and_lines(broken: Callable[..., Chip], bug: str) -> None:
    name, change, core = HANGS[bug]
    chip = broken(name, change)
    with pytest.raises(NoProgress) as caught:
        chip.run()
    text = str(caught.value)
    assert core in text
    assert "tile (" in text
    assert any(file in text for file in ("noc.h", "cb.h", "in0.c", "in1.c", "send.h"))


ERRORS = {
    "wrong coordinate": (
        ("lib/noc.h", "return noc_xy(17 + bank / 4", "return noc_xy(27 + bank / 4"),
    ),
    "misaligned read": (("dataflow/reader.c", "page, cb.pointer);", "page, cb.pointer + 4);"),),
    "write behind L1": (
        ("dataflow/writer.c", "page, cb.pointer);", "page, cb.pointer + 0x160000);"),
    ),
}


@pytest.mark.parametrize("bug", ERRORS)
def test_an_error_names_tile_core_and_line(broken: Callable[..., Chip], bug: str) -> None:
    (change,) = ERRORS[bug]
    chip = broken("copy_dram", change)
    with pytest.raises(BhemuError) as caught:
        chip.run()
    where = caught.value.where
    assert where is not None
    assert where.tile == (1, 2)
    assert where.core in ("brisc", "ncrisc")
    assert where.line is not None
    assert "noc.h:" in str(where), "the call that was inlined"


LATE = {
    "no read barrier": ("copy_dram", ("dataflow/reader.c", "noc_read_barrier(&noc);", "")),
    "everybody counts for itself": (
        "all_gather",
        ("all_gather/brisc.c", "noc_increment(&noc, next,", "noc_increment(&noc, noc.own,"),
    ),
}


@pytest.mark.parametrize("bug", LATE)
def test_a_missing_wait_is_seen_when_delivery_is_late(
    broken: Callable[..., Chip], bug: str
) -> None:
    chip = broken(*LATE[bug], delivery="late", seed=1)
    assert chip.run().reason == "until"
    assert not all(result.equal for result in chip.check())
