"""Moves between SrcA, SrcB and Dst against a literal model (MOV pages, Wormhole ISA; ttsim)."""

import pytest
from move_model import (
    BF16,
    BFP2,
    BFP4,
    BFP8,
    FIVE_BIT,
    FP8,
    FP16,
    FP32,
    INT8,
    INT32,
    LLK,
    TF32,
    UINT16,
    A,
    B,
    Model,
    filled,
    flushed,
    rule,
    section,
)
from unit_runner import numbers, run

from bhemu.machine import sentences
from bhemu.tensix import rules
from bhemu.tensix.rules import counted
from bhemu.tensix.units import MODULES

assert MODULES

ANY_HALF = (FP32, BF16, BFP8, INT32, UINT16, BFP2)


@pytest.mark.parametrize("keep", [0, 1])
@pytest.mark.parametrize(
    ("fmt", "low"),
    [*((f, half) for f in ANY_HALF for half in (0, 1)), (TF32, 0), *((f, 0) for f in FIVE_BIT)],
)
def test_mova2d(fmt: int, keep: int, low: int) -> None:
    s = filled(fmt, fmt)
    s.cfg[0, 2] = keep  # ALU_ACC_CTRL_Zero_Flag_disabled_src
    s.rwc[0] = (16, 3, 40, 0)
    s.thread_cfg[0, 1] = 0x1F0
    section(s, 6)
    model = Model(s)
    for i in range(8):
        cells = flushed(model.src[A][1][24 + 16 + i], keep)
        model.put(8 + 40 + 0x1F0 + i, cells, fmt, low)
    fields = {"dst": 8, "src": 24, "instr_mod": 2, "addr_mode": 6, "dest_32b_lo": low}
    assert run(s, "MOVA2D", **fields) == rules.DONE
    model.check(s)
    assert s.rwc[0].tolist() == [24, 7, 56, 1]
    assert s.matrix_bank.tolist() == [1, 0]


def b2d(seed: int, fmt_a: int, fmt_b: int, mode: int, low: int, llk: bool = False) -> None:
    s = filled(seed, fmt_a)
    s.cfg[1, 1] = fmt_a << 17 | fmt_b << 21 | int(llk) << 29
    s.thread_cfg[0, 0] = 1
    s.thread_cfg[0, 2:4] = 1  # formats from the configuration
    s.src_fmt[:] = UINT16
    s.reference[0] = LLK if llk or mode < 2 else 0
    s.rwc[0] = (0, 8, 1000, 2)
    section(s, 1)
    model = Model(s)
    mask = {FP16: 0x8FFFE000, TF32: 0xFFFFFFFF}.get(fmt_b, 0xFFFF0000)
    if fmt_a == fmt_b and fmt_a in FIVE_BIT:
        mask = 0x8FFFE000
    rows, at = ((1, 5), (8, 0), (4, 0))[mode >> 1]  # one row may lie anywhere
    for i in range(rows):
        row = model.src[B][0][8 + 16 + at + (i if mode >= 4 else 0)]
        cells = [v & mask for v in flushed(row, 0)]
        model.put(
            (32 + at + 1000 + i) % 1024, cells[:1] * 16 if mode & 1 else cells, fmt_a, low, llk
        )
    fields = {"dst": 32 + at, "src": 16 + at, "movb2d_instr_mod": mode}
    assert run(s, "MOVB2D", **fields, addr_mode=1, dest_32b_lo=low) == rules.DONE
    model.check(s)
    assert s.rwc[0].tolist() == [8, 12, 1016, 3]


@pytest.mark.parametrize("fmt_b", [FP16, TF32, BF16, INT8])
@pytest.mark.parametrize("fmt_a", [FP16, TF32, BF16, INT32])
def test_movb2d(fmt_a: int, fmt_b: int) -> None:
    for mode in range(6):
        b2d(mode, fmt_a, fmt_b, mode, 0)


@pytest.mark.parametrize("mode", range(6))
def test_movb2d_into_low_halves(mode: int) -> None:
    b2d(20 + mode, BF16, TF32, mode, 1)


@pytest.mark.parametrize("mode", range(6))
def test_movb2d_writes_32_bit_datums_by_the_tests_of_tt_llk(mode: int) -> None:
    """Reference llk with Fp32_enabled; the low half holds what B's format leaves of the cell."""
    b2d(30 + mode, BF16, BF16, mode, 0, llk=True)
    b2d(40 + mode, BFP8, TF32, mode, 0, llk=True)
    b2d(50 + mode, FP16, FP16, mode, 0, llk=True)  # 5-bit exponents stay 16-bit datums


@pytest.mark.parametrize("mode", [2, 3, 4, 5])
@pytest.mark.parametrize("fmt", [*FIVE_BIT, BFP2, BFP4, UINT16])
def test_movb2d_of_formats_that_ttsim_refuses(fmt: int, mode: int) -> None:
    """Both formats the same: the bits of the SrcB cell that Dst has room for (MOVB2D, ISA)."""
    b2d(60 + mode, fmt, fmt, mode, 0)


def test_movb2d_takes_both_formats_from_the_srcb_bank() -> None:
    s = filled(3, FP16)
    s.src_fmt[A] = TF32
    model = Model(s)
    for i in range(4):
        model.put(i, [v & 0x8FFFE000 for v in flushed(model.src[B][0][i], 0)], FP16, 0)
    assert run(s, "MOVB2D", movb2d_instr_mod=4) == rules.DONE
    model.check(s)


D2 = [
    *((fmt, 0, 0) for fmt in (*FIVE_BIT[1:], INT32, UINT16, BFP2)),
    (BFP2, 1, 0),
    (UINT16, 1, 0),
    (FP16, 0, 0),
    (BF16, 0, 0),
    (FP32, 0, 0),
    (BFP8, 1, 0),
    (TF32, 1, 0),
    (BF16, 1, 0),
]


@pytest.mark.parametrize("int8", [0, 1])
@pytest.mark.parametrize(("fmt", "in_32", "low"), D2)
def test_movd2a(fmt: int, in_32: int, low: int, int8: int) -> None:
    s = filled(60 + fmt, fmt)
    s.src_valid[:] = 0  # does not wait
    s.cfg[0, 1] = in_32 << (31 if int8 else 29)  # INT8_math_enabled or Fp32_enabled
    s.rwc[0] = (60, 0, 20, 0)
    section(s, 0)
    model = Model(s)
    for i in range(4):
        model.src[A][1][(4 + 60) % 64 + i] = model.get(8 + 20 + i, fmt, bool(in_32), low)
    assert run(s, "MOVD2A", dst=8, src=4, instr_mod=2, dest_32b_lo=low) == rules.DONE
    model.check(s)
    assert s.rwc[0].tolist() == [4, 4, 36, 1]


@pytest.mark.parametrize("mode", [0, 2])
@pytest.mark.parametrize(("fmt", "in_32", "low"), [*D2, (BF16, 1, 1), (INT32, 1, 0), (INT32, 1, 1)])
def test_movd2b(fmt: int, in_32: int, low: int, mode: int) -> None:
    s = filled(70 + fmt, fmt)
    s.src_fmt[A] = UINT16  # the format is that of the SrcB bank
    s.src_valid[:] = 0
    s.cfg[0, 1] = in_32 << 29
    s.rwc[0] = (0, 16, 300, 0)
    section(s, 2)
    model = Model(s)
    for i in range(4 if mode else 1):
        model.src[B][0][24 + i] = model.get(304 + i, fmt, bool(in_32), low)
    fields = {"dst": 4, "src": 8, "instr_mod": mode, "dest_32b_lo": low, "addr_mode": 2}
    assert run(s, "MOVD2B", **fields) == rules.DONE
    model.check(s)
    assert s.rwc[0].tolist() == [8, 20, 316, 1]


@pytest.mark.parametrize("keep", [0, 1])
def test_movb2a(keep: int) -> None:
    s = filled(80 + keep, BF16)
    s.src_valid[A] = 0  # waits for SrcB only
    s.cfg[0, 2] = keep
    s.rwc[0] = (8, 16, 0, 0)
    section(s, 3)
    model = Model(s)
    for i in range(4):
        model.src[A][1][12 + i] = flushed(model.src[B][0][24 + i], keep)
    assert run(s, "MOVB2A", srca=4, srcb=8, instr_mod=2, addr_mode=3) == rules.DONE
    model.check(s)
    assert s.rwc[0].tolist() == [16, 20, 16, 1]


def test_trnspsrcb() -> None:
    s = filled(90, BF16)
    want = s.src.copy()
    want[B, 0, 16:32] = s.src[B, 0, 16:32].T
    assert run(s, "TRNSPSRCB") == rules.DONE
    assert (s.src == want).all()


@pytest.mark.parametrize(
    ("mnemonic", "which", "fields"),
    [
        ("MOVA2D", A, {"instr_mod": 2}),
        ("MOVB2D", B, {"movb2d_instr_mod": 4}),
        ("MOVB2A", B, {"instr_mod": 2}),
        ("TRNSPSRCB", B, {}),
    ],
)
def test_blocks_without_effect_until_its_bank_is_valid(
    mnemonic: str, which: int, fields: dict[str, int]
) -> None:
    s = filled(1, BF16)
    section(s, 0)
    s.src_valid[which, s.matrix_bank[which]] = 0
    before = s.buffer.copy()
    number = run(s, mnemonic, **fields)
    name = f"Src{'AB'[which]} bank {s.matrix_bank[which]} to become valid"
    assert sentences.CONDITIONS[number].text.startswith(name)
    assert (s.buffer == before).all()
    s.src_valid[which, s.matrix_bank[which]] = 1
    assert run(s, mnemonic, **fields) == rules.DONE


REFUSED = [
    ("MOVA2D", {"instr_mod": 1}, BF16, "MOV-MODE", [1]),
    ("MOVA2D", {"instr_mod": 2, "dst": 4}, BF16, "MOV-DST-ROW", [4, 8]),
    ("MOVA2D", {"instr_mod": 2, "src": 4}, BF16, "MOV-SRC-ROW", [4, 8]),
    ("MOVA2D", {"instr_mod": 2, "addr_mode": 7}, BF16, "ADDR-MOD-BIAS", [7, 1]),
    ("MOVA2D", {"instr_mod": 2}, 12, "MOV-FORMAT", [12]),
    ("MOVA2D", {"instr_mod": 2, "dest_32b_lo": 1}, FP8, "MOV-FP16-LOW", [FP8]),
    ("MOVA2D", {"instr_mod": 2, "dest_32b_lo": 1}, TF32, "MOV-TF32-LOW", []),
    ("MOVB2D", {"movb2d_instr_mod": 1}, BF16, "MOV-MODE", [1]),
    ("MOVB2D", {"movb2d_instr_mod": 6}, BF16, "MOV-MODE", [6]),
    ("MOVB2D", {"movb2d_instr_mod": 2, "dst": 4}, BF16, "MOV-DST-ROW", [4, 8]),
    ("MOVB2D", {"movb2d_instr_mod": 5, "src": 2}, BF16, "MOV-SRC-ROW", [2, 4]),
    ("MOVB2D", {"movb2d_instr_mod": 5, "addr_mode": 7}, BF16, "ADDR-MOD-BIAS", [7, 1]),
    ("MOVB2D", {"movb2d_instr_mod": 4}, 13, "MOV-FORMAT", [13]),
    ("MOVB2D", {"movb2d_instr_mod": 4, "dest_32b_lo": 1}, FP16, "MOV-FP16-LOW", [FP16]),
    ("MOVB2D", {"movb2d_instr_mod": 4, "dest_32b_lo": 1}, TF32, "MOV-TF32-LOW", []),
    ("MOVB2A", {"instr_mod": 0}, BF16, "MOV-MODE", [0]),
    ("MOVB2A", {"instr_mod": 2, "srca": 1}, BF16, "MOV-SRC-ROW", [1, 4]),
    ("MOVB2A", {"instr_mod": 2, "srcb": 2}, BF16, "MOV-SRC-ROW", [2, 4]),
    ("MOVD2A", {"instr_mod": 0}, BF16, "MOV-MODE", [0]),
    ("MOVD2A", {"instr_mod": 2, "dst": 2}, BF16, "MOV-DST-ROW", [2, 4]),
    ("MOVD2A", {"instr_mod": 2}, 12, "MOV-FORMAT", [12]),
    ("MOVD2A", {"instr_mod": 2, "dest_32b_lo": 1}, BF16, "MOV-LOW-OF-16", []),
    ("MOVD2A", {"instr_mod": 2}, TF32, "MOV-TF32-OF-16", []),
    ("MOVD2B", {"instr_mod": 1}, BF16, "MOV-MODE", [1]),
    ("MOVD2B", {"instr_mod": 2, "src": 1}, BF16, "MOV-SRC-ROW", [1, 4]),
    ("MOVD2B", {"instr_mod": 0, "dest_32b_lo": 1}, BF16, "MOV-LOW-OF-16", []),
    ("MOVD2B", {"instr_mod": 2}, 13, "MOV-FORMAT", [13]),
]


DOWN = [
    ("MOVA2D", {"instr_mod": 2, "dst": 10, "src": 19}, {"dst": 8, "src": 16}),
    ("MOVB2D", {"movb2d_instr_mod": 2, "dst": 15, "src": 3}, {"dst": 8, "src": 3}),
    ("MOVB2D", {"movb2d_instr_mod": 4, "dst": 11, "src": 7}, {"dst": 8, "src": 4}),
    ("MOVB2A", {"instr_mod": 2, "srca": 63, "srcb": 6}, {"srca": 60, "srcb": 4}),
    ("MOVD2A", {"instr_mod": 2, "dst": 7, "src": 5}, {"dst": 4, "src": 4}),
    ("MOVD2B", {"instr_mod": 2, "dst": 7, "src": 5}, {"dst": 4, "src": 4}),
    ("MOVD2B", {"instr_mod": 0, "dst": 7, "src": 5}, {"dst": 7, "src": 5}),
]


@pytest.mark.parametrize(("mnemonic", "fields", "down"), DOWN)
@pytest.mark.parametrize("mode", [{"reference": LLK}, {"ub_mode": 1}])
def test_rows_are_rounded_down(
    mnemonic: str, fields: dict[str, int], down: dict[str, int], mode: dict[str, int]
) -> None:
    """By the ISA text: as the move of the rows that `down` names, which one row may be."""
    s, model = filled(2, BF16), Model(filled(2, BF16))
    for name, value in mode.items():
        getattr(s, name)[0] = value
    assert run(s, mnemonic, **fields) == rules.DONE
    named = {sentences.RULES[n].rule for n in counted(s)}
    assert named and named <= {"MOV-DST-ROW", "MOV-SRC-ROW"}
    rows = 8 if mnemonic == "MOVA2D" or fields.get("movb2d_instr_mod") == 2 else 4
    rows = 1 if fields.get("instr_mod") == 0 else rows
    for i in range(rows):
        if mnemonic == "MOVA2D":
            model.put(down["dst"] + i, flushed(model.src[A][1][down["src"] + i], 0), BF16, 0)
        elif mnemonic == "MOVB2D":
            row = down["src"] + (i if rows == 4 else 0)
            model.put(down["dst"] + i, flushed(model.src[B][0][row], 0), BF16, 0)
        elif mnemonic == "MOVB2A":
            model.src[A][1][down["srca"] + i] = flushed(model.src[B][0][down["srcb"] + i], 0)
        else:
            bank = model.src[A][1] if mnemonic == "MOVD2A" else model.src[B][0]
            bank[down["src"] + i] = model.get(down["dst"] + i, BF16, False, 0)
    model.check(s)


@pytest.mark.parametrize(("mnemonic", "fields", "fmt", "name", "detail"), REFUSED)
def test_refused_before_any_effect(
    mnemonic: str, fields: dict[str, int], fmt: int, name: str, detail: list[int]
) -> None:
    s = filled(2, fmt)
    section(s, 0)
    s.thread_cfg[0, 47 + 7] = 1  # ADDR_MOD_BIAS_SEC7_BiasIncr
    before = s.buffer.copy()
    assert rule(run(s, mnemonic, **fields)) == name
    assert numbers(s, name) == detail
    s.detail[:] = 0
    assert (s.buffer == before).all()


@pytest.mark.parametrize(
    ("mnemonic", "fmt", "low"), [("MOVD2A", FP16, 0), ("MOVD2A", BF16, 1), ("MOVD2B", TF32, 1)]
)
def test_reads_of_32_bit_dst_that_ttsim_refuses(mnemonic: str, fmt: int, low: int) -> None:
    s = filled(4, fmt)
    s.cfg[0, 1] = 1 << 29
    assert rule(run(s, mnemonic, instr_mod=2, dest_32b_lo=low)) == "MOV-FROM-32"
    assert numbers(s, "MOV-FROM-32") == [fmt, low]


@pytest.mark.parametrize("row", [64, 60])
def test_src_row_beyond_the_bank(row: int) -> None:
    """Only MOVD2A wraps at 64 (ttsim)."""
    s = filled(5, BF16)
    s.rwc[0] = (row - 16, row - 16, 0, 0)
    for mnemonic, fields in (
        ("MOVA2D", {"src": 16, "instr_mod": 2}),
        ("MOVB2D", {"src": 16, "movb2d_instr_mod": 4}),
        ("MOVD2B", {"src": 16, "instr_mod": 2}),
    ):
        want = row == 60 and mnemonic != "MOVA2D"  # eight rows need a multiple of 8
        number = run(s, mnemonic, **fields)
        assert number == rules.DONE if want else rule(number) == "MOV-SRC-ROW"


def test_movd2a_refuses_the_format_override() -> None:
    s = filled(6, BF16)
    s.cfg[0, 0] = 1 << 4
    assert rule(run(s, "MOVD2A", instr_mod=2)) == "MOV-OVERRIDE"


@pytest.mark.parametrize(
    ("mnemonic", "which", "fields"),
    [("MOVA2D", A, {"instr_mod": 2}), ("MOVB2D", B, {"movb2d_instr_mod": 2})],
)
def test_tf32_low_on_silicon(mnemonic: str, which: int, fields: dict[str, int]) -> None:
    """The low half takes the bf16 cell as well (MOVA2D, MOVB2D, Wormhole ISA)."""
    s = filled(7, TF32)
    number = run(s, mnemonic, dest_32b_lo=1, **fields)
    s.ub_mode[0] = 1
    model = Model(s)
    for i in range(8):
        row = model.src[which][s.matrix_bank[which]][i if which == A else 0]
        model.put(i, flushed(row, 0), TF32, 1)
    assert run(s, mnemonic, dest_32b_lo=1, **fields) == rules.DONE
    model.check(s)
    assert counted(s).get(number, 0) == 1
