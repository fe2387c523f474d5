"""Every check of PACR: an error by name, before any effect (checks of ttsim's Tensix model)."""

from collections.abc import Callable

import numpy as np
import pytest
from pack_model import PAIRS, RAW, ROUNDED, Pack
from pack_runner import execute, setup
from unpack_model import put, put_thread

from bhemu.tensix import config_fields as cf
from bhemu.tensix import rules as status
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.state import State


def change(name: str, value: int) -> Callable[[State], None]:
    return lambda s: put(s, getattr(cf, name), value)


def counter(channel: int, i: int, value: int) -> Callable[[State], None]:
    return lambda s: s.adc[0, 2, channel].__setitem__(i, value)


def address_mode(name: str) -> Callable[[State], None]:
    return lambda s: put_thread(s, 0, getattr(tf, name), 1)


def columns(first: int, last: int) -> Callable[[State], None]:
    return lambda s: s.adc[0, 2].__setitem__((slice(None), 0), (first, last))


def plane(row: int) -> Callable[[State], None]:
    return lambda s: s.pack_plane.__setitem__(0, row)


def begun(row: int, last: int) -> Callable[[State], None]:
    """A plane of which some rows were packed, and datums 0 to `last` of a row."""

    def alter(s: State) -> None:
        plane(row)(s)
        columns(0, last)(s)

    return alter


def nothing(s: State) -> None:
    del s


REFUSED: list[tuple[str, Pack, Callable[[State], None], dict[str, int]]] = [
    *(
        ("PACR-FIELDS", Pack(), nothing, {name: 1})
        for name in ("ctxt_ctrl", "addr_cnt_context", "row_pad_zero", "cfg_context")
    ),
    ("PACR-ADC-CONTEXT", Pack(), nothing, {"ovrd_thread_id": 1, "addr_cnt_context": 3}),
    *(
        ("PACR-INTERFACES", Pack(), nothing, {"read_intf_sel": k, "dst_access_mode": 1})
        for k in range(16)
        if k not in (0, 1, 3)
    ),
    ("PACR-STRIDED", Pack(), change("DEST_ACCESS_CFG_remap_addrs", 1), {"dst_access_mode": 1}),
    *(
        ("PACR-INTERFACE-GROUP", Pack(offset=4 + first), nothing, {"read_intf_sel": select})
        for first in range(1, 4)
        for select in range(16)
        if (select or 15) << first > 15
    ),
    *(
        (f"PACR-{name}", Pack(), change(name, 1), {})
        for name in (
            *("PACK_COUNTERS_SEC0_pack_yz_transposed", "DEST_TARGET_REG_CFG_PACK_SEC0_ZOffset"),
            *(
                f"THCON_SEC0_REG1_{name}"
                for name in (
                    *("Row_start_section_size", "Dis_shared_exp_assembler", "Enable_out_fifo"),
                    *("Add_l1_dest_addr_offset", "Add_tile_header_size"),
                    "Source_interface_selection",
                    *("Downsample_rate", "Auto_set_last_pacr_intf_sel", "pack_start_intf_pos"),
                )
            ),
            "PCK_EDGE_TILE_FACE_SET_SELECT_enable",
            *(f"ALU_ROUNDING_MODE_{name}" for name in ("GS_LF", "Bfp8_HF")),
            "ALU_ROUNDING_MODE_Gasket_srnd_en",
        )
    ),
    (
        "PACR-ALU_ROUNDING_MODE_Packer_srnd_en",
        Pack(out=6),
        change("ALU_ROUNDING_MODE_Packer_srnd_en", 1),
        {},
    ),
    ("PACR-DSTACC", Pack(), change("ALU_FORMAT_SPEC_REG2_Dstacc", 6), {}),
    ("PACR-DSTACC", Pack(), change("ALU_FORMAT_SPEC_REG_Dstacc_override", 1), {}),
    ("PACR-DSTACC", Pack(fmt=1, out=10, dstacc=5), nothing, {}),
    ("PACR-ROUND", Pack(round_fp16=1), nothing, {}),
    ("PACR-ROUND", Pack(fmt=1, out=1, round_fp16=1), nothing, {}),
    ("PACR-ROUND", Pack(wide=1, fmt=0, out=0, round_fp16=1), nothing, {}),
    ("PACR-NO-ROUND", Pack(wide=1, fmt=1, out=1), nothing, {}),
    *(
        ("PACR-READ-INT8", Pack(wide=w, fmt=f, out=o, raw=1), nothing, {})
        for w, f, o in ((0, 5, 6), (0, 1, 0), (0, 2, 6), (0, 6, 6), (1, 5, 6), (1, 6, 6))
    ),
    ("PACR-FP8", Pack(fmt=5, out=10, e4m3=1), nothing, {}),
    ("PACR-FP8", Pack(wide=1, fmt=0, out=10, e4m3=1), nothing, {}),
    ("PACR-INT-DESCALE", Pack(wide=1, fmt=14, out=14), change("INT_DESCALE_Enable", 1), {}),
    *(
        (
            "PACR-EXP-THRESHOLD",
            Pack(wide=1, fmt=f, out=f),
            change("THCON_SEC0_REG1_Exp_threshold_en", 1),
            {},
        )
        for f in (8, 9, 14)
    ),
    ("PACR-L1-ACC", Pack(out=6, accumulate=1), nothing, {}),
    ("PACR-RELU-MODE", Pack(relu=4), nothing, {}),
    ("PACR-RELU-THRESHOLD", Pack(relu=2, threshold=0x8000), nothing, {}),
    ("PACR-RELU-THRESHOLD", Pack(relu=3, threshold=0x8000), nothing, {}),
    ("PACR-RELU-FORMAT", Pack(fmt=9, out=9, relu=2), nothing, {}),
    ("PACR-RELU-FORMAT", Pack(fmt=10, out=10, raw=1, relu=1), nothing, {}),
    ("PACR-RELU-FORMAT", Pack(wide=1, fmt=8, out=8, relu=2), nothing, {}),
    ("PACR-STRIDE", Pack(strides=(1, 0, 0)), nothing, {}),
    ("PACR-STRIDE", Pack(wide=1, fmt=0, out=0, strides=(0, 0, 2)), nothing, {}),
    ("PACR-STRIDE", Pack(), change("PCK0_ADDR_CTRL_XY_REG_0_Xstride", 1), {}),
    ("PACR-ROW", Pack(), counter(0, 0, 8), {}),
    ("PACR-ROW", Pack(strides=(16, 0, 0)), counter(0, 1, 1), {}),
    ("PACR-COUNT", Pack(), counter(1, 0, 31), {}),
    ("PACR-COUNT", Pack(out=6), counter(1, 0, 7), {"read_intf_sel": 1}),
    ("PACR-COUNT", Pack(xstride=2), columns(9, 8), {}),
    ("PACR-COUNT", Pack(xstride=2), columns(9, 16), {}),
    ("PACR-DOWNSAMPLE", Pack(out=6), change("THCON_SEC0_REG1_Downsample_mask", 1), {}),
    ("PACR-DOWNSAMPLE", Pack(downsample=1, n=8), counter(1, 0, 7), {"read_intf_sel": 3}),
    ("PACR-ROWS", Pack(offset=1021), nothing, {}),
    ("PACR-ROWS", Pack(offset=1021), nothing, {"read_intf_sel": 10}),
    ("PACR-L1", Pack(address=0x17FFF), nothing, {}),
    ("PACR-L1", Pack(address=0x17FF8), nothing, {}),
    ("PACR-L1", Pack(out=6, address=0x17FF0), nothing, {}),
    *(
        ("PACR-EDGE-MODE", Pack(wide=w, fmt=f, out=f, masks=(1, 0), minus_infinity=1), nothing, {})
        for w, f in ((0, 1), (0, 9), (1, 8), (1, 14))
    ),
    # a tile begins in the middle of a plane, with masks that ttsim does not take
    ("PACR-TILE-POSITION", Pack(masks=(2, 0), sets=(0x55, 0)), plane(4), {}),
    *(
        ("PACR-TILE-POSITION", p, begun(4, last), {"read_intf_sel": 1})
        for last in (6, 8, 14)
        for p in (Pack(masks=(1, 0xFFFF), sets=(0x100, 0)),)
    ),
    ("PACR-TILE-POSITION", Pack(masks=(1, 0xFFFF), select=2, mapping2=0x10), plane(6), {}),
]


@pytest.mark.parametrize(("rule", "p", "alter", "word"), REFUSED)
def test_refused(rule: str, p: Pack, alter: Callable[[State], None], word: dict[str, int]) -> None:
    """Every check is an error by name, before any effect."""
    s, _ = setup(p)
    s.adc[0, 2, 1, 0] = 15
    alter(s)
    before = [(m.name, a.copy()) for m, a in s.members() if m.name != "detail"]
    number = execute(s, **{"last": 1} | word)
    assert status.RULES[number].rule == rule
    assert status.RULES[number].sentence(s.detail)
    for name, was in before:
        assert np.array_equal(getattr(s, name), was), name


@pytest.mark.parametrize("how", ["plain", "rounded", "raw"])
def test_all_other_format_pairs_are_refused(how: str) -> None:
    """The pairs of the model are modelled; the others are an error by name."""
    p = Pack(round_fp16=int(how == "rounded"), raw=int(how == "raw"))
    s, _ = setup(p)
    s.adc[0, 2, 1, 0] = 15
    known = {"plain": PAIRS, "rounded": ROUNDED, "raw": RAW}[how]
    rules = {"plain": {"PACR-FORMATS", "PACR-NO-ROUND"}, "rounded": {"PACR-FORMATS", "PACR-ROUND"}}
    allowed = rules.get(how, {"PACR-FORMATS", "PACR-READ-INT8"})
    for wide in range(2):
        for fmt in range(16):
            for out in range(16):
                p.wide, p.fmt, p.out = wide, fmt, out
                p.program(s)
                put(s, cf.THCON_SEC0_REG1_Pac_LF8_4b_exp, int(how == "rounded"))
                number = execute(s, last=1)
                if (wide, fmt, out) in known:
                    assert number == status.DONE
                else:
                    assert status.RULES[number].rule in allowed, (wide, fmt, out)


@pytest.mark.parametrize("thread", [0, 1, 2])
@pytest.mark.parametrize("zeros", [0, 1])
def test_zero_write_asks_for_no_position(thread: int, zeros: int) -> None:
    s, _ = setup(Pack(masks=(2, 0), sets=(0x55, 0), thread=thread))
    s.adc[thread, 2, 1, 0] = 15
    plane(4)(s)
    number = execute(s, thread, last=1, zero_write=zeros)
    assert (status.RULES[number].rule if number else "") == ("" if zeros else "PACR-TILE-POSITION")
