"""Values that nothing has written, and state that a launch leaves: bugs and corrected twins."""

import shutil
from pathlib import Path
from typing import NamedTuple

import pytest
from corpus import ROOT, Line, check_bug, folder, found, store

import bhemu.tensix.units  # noqa: F401  (declares the instructions)
from bhemu.riscv.assembly import A0, A1, A2, SP, T0, T1, ZERO, add, addi, beq, bne, li, lw, sw, tt
from bhemu.tensix.thread_fields import DEST_TARGET_REG_CFG_MATH_Offset

IN, OUT = 0x20000, 0x20200
PC_BUF_SYNC, GPR, DST_WINDOW = 0xFFE80004, 0xFFE00000, 0xFFBD8000
SYNC = [*li(T0, PC_BUF_SYNC), sw(ZERO, T0), lw(T1, T0), 0x00637033]  # and zero, t1, t1
LOCAL, MAILBOXES = 0xFFB00000, 0xFFEC0000


class Bug(NamedTuple):
    """A kernel with the bug and without; whose line is to be named."""

    name: str
    check: str
    bad: list[Line]
    good: list[Line]
    line: int
    core: str = "trisc0"
    inputs: int = 4


def gpr(number: int, value: int) -> list[int]:
    return [
        tt("SETDMAREG", reg_index_16b=2 * number, payload_sig_sel=value),
        tt("SETDMAREG", reg_index_16b=2 * number + 1),
    ]


def copy(source: int, target: int) -> list[int]:
    return [*li(A0, source), lw(A1, A0), *li(A0, target), sw(A1, A0)]


def sums(count: int) -> list[Line]:
    """The sum of `count` words of the input, of which there are four."""
    loop = [lw(A2, A0), add(T1, T1, A2), addi(A0, A0, 4), bne(A0, A1, -12)]
    begin = [*li(A0, IN), *li(A1, IN + 4 * count), addi(T1, ZERO, 0)]
    return [begin, loop, [*li(A0, OUT), sw(T1, A0)]]


def dst_cell(mode: int = 3) -> list[Line]:
    """LReg 1 to Dst row 0 and back to the core, by GPRs that both halves need."""
    return [tt("SFPSTORE", lreg_ind=1, instr_mod0=mode), SYNC]


def dst_read() -> list[int]:
    return [*li(A0, DST_WINDOW), lw(A1, A0), *li(A0, OUT), sw(A1, A0)]


def branch_on(address: int) -> list[int]:
    """Store 1 or 2, as the word at an address says."""
    return [
        *li(A0, address), lw(A1, A0), addi(A2, ZERO, 1), beq(A1, ZERO, 8), addi(A2, ZERO, 2),
        *li(A0, OUT), sw(A2, A0),
    ]  # fmt: skip


STACK = [*li(SP, LOCAL + 0x800), lw(A1, SP, -8), *li(A0, OUT), sw(A1, A0)]
PUSHED = [*li(SP, LOCAL + 0x800), addi(A1, ZERO, 5), sw(A1, SP, -8)]
LOAD_1 = tt("SFPLOADI", imm16=0x3F80, lreg_ind=1)
HIGH_HALF = tt("SFPLOADI", imm16=0x3F80, instr_mod0=8, lreg_ind=1)
LOW_HALF = tt("SFPLOADI", imm16=1, instr_mod0=10, lreg_ind=1)
GPR_READ = copy(GPR + 4 * 9, OUT)
RWC_RESET = tt("SETRWC", bit_mask=0xF)
INCREMENT = tt("INCRWC", rwc_d=8)
STORE_LREG = tt("SFPSTORE", lreg_ind=1, instr_mod0=3)
ZERO_ROWS = [tt("ZEROACC", clear_mode=3), tt("STALLWAIT", wait_res=0x10, stall_res=1 << 8)]


def offset(rows: int) -> int:
    return tt("SETC16", setc16_reg=DEST_TARGET_REG_CFG_MATH_Offset.word, setc16_value=rows)


CFG_AT = 0xFFEF0000 + 4 * 60
SET_60 = store(CFG_AT, 0x55)
CLEAR_60 = store(CFG_AT, 0)
CFG_TO_OUT = copy(CFG_AT, OUT)

BUGS = [
    Bug("read past the input", "unwritten", sums(5), sums(4), 2),
    Bug("flag that nobody set", "unwritten", [branch_on(0x20100)],
        [store(0x20100, 0), branch_on(0x20100)], 1),
    Bug("stack slot", "unwritten", [STACK], [PUSHED, STACK], 1),
    Bug("GPR", "unwritten", [gpr(8, 1), SYNC, GPR_READ], [gpr(9, 1), SYNC, GPR_READ], 3),
    Bug("LReg", "unwritten", [*dst_cell(), dst_read()], [LOAD_1, *dst_cell(), dst_read()], 1),
    Bug("low half of an LReg", "unwritten", [HIGH_HALF, *dst_cell(), dst_read()],
        [LOW_HALF, HIGH_HALF, *dst_cell(), dst_read()], 1),
    Bug("LReg whose high half is loaded later", "unwritten",
        [*dst_cell(), dst_read(), SYNC, HIGH_HALF],
        [LOAD_1, *dst_cell(), dst_read(), SYNC, HIGH_HALF, LOAD_1], 1),
    Bug("RWC counter", "unwritten",
        [ZERO_ROWS, LOAD_1, STORE_LREG, INCREMENT, SYNC, dst_read()],
        [ZERO_ROWS, RWC_RESET, LOAD_1, STORE_LREG, INCREMENT, SYNC, dst_read()], 3),
    Bug("Config word", "unwritten", [CFG_TO_OUT, SET_60], [CLEAR_60, CFG_TO_OUT, SET_60], 1),
    Bug("Dst offset of the last launch", "unwritten",
        [ZERO_ROWS, LOAD_1, STORE_LREG, offset(8), SYNC, dst_read()],
        [ZERO_ROWS, offset(0), LOAD_1, STORE_LREG, offset(8), SYNC, dst_read()], 3),
]  # fmt: skip


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name.replace(" ", "-"))
def test_a_bug_is_found_and_its_twin_is_silent(bug: Bug, tmp_path: Path) -> None:
    words = list(range(1, bug.inputs + 1))
    bad = folder(tmp_path / "bad", {bug.core: bug.bad}, inputs={IN: words}, outputs={OUT: 1})
    twin = folder(tmp_path / "twin", {bug.core: bug.good}, inputs={IN: words}, outputs={OUT: 1})
    check_bug(bad, twin, bug.check, bug.core, bug.line)


def test_a_message_left_in_a_mailbox_is_named_and_the_twin_is_silent(tmp_path: Path) -> None:
    """The next launch takes it for its own."""
    take = [*li(A0, MAILBOXES), lw(A1, A0)]
    send = [*li(A0, MAILBOXES + 0x1000), addi(A1, ZERO, 5), sw(A1, A0)]
    again = [*li(A0, MAILBOXES + 0x1000), addi(A1, ZERO, 6), sw(A1, A0)]
    show = [*li(A0, OUT), sw(A1, A0)]
    paths = []
    for kind, last in (("bad", [0x13]), ("twin", take)):
        kernels: dict[str, list[Line]] = {"brisc": [send, again], "trisc0": [take, show, last]}
        paths.append(folder(tmp_path / kind, kernels, outputs={OUT: 1}))
    check_bug(*paths, "unwritten", "brisc", 2)


def test_a_row_of_src_that_is_filled_in_part_is_the_fault_of_who_fills_it(tmp_path: Path) -> None:
    """Unpacker 1 of eltwise without its SETADCXX."""
    bad = Path(shutil.copytree(ROOT / "elfs" / "eltwise", tmp_path / "bad"))
    elf = bad / "trisc0.elf"
    words = [tt("SETADCXX", cnt_set_mask=2, x_end2=1023), tt("NOP")]
    before, after = (word.to_bytes(4, "little") for word in words)
    assert elf.read_bytes().count(before) == 1
    elf.write_bytes(elf.read_bytes().replace(before, after))
    first = found(bad)[0]
    assert (first["check"], first["culprit"]["core"]) == ("unwritten", "trisc0")
    assert "the rest of its row is written by" in first["evidence"][1]
    assert "UNPACR" in first["evidence"][1]


@pytest.mark.parametrize("places", [3, 4])
def test_places_that_are_not_shown_are_mentioned(places: int, tmp_path: Path) -> None:
    lines = [copy(0x30000 + 0x1000 * n, OUT + 4 * n) for n in range(places)]
    told = found(folder(tmp_path / "many", {"trisc0": lines}, outputs={OUT: places}))
    assert [one["check"] for one in told] == ["unwritten"] * 3
    more = ["they are not shown" in line for one in told for line in one["evidence"]]
    assert sum(more) == (places > 3)
    assert more[-1] == (places > 3)
