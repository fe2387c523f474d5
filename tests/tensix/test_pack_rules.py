"""Every check of PACR: an error by name, before any effect (checks of ttsim's Tensix model)."""

from collections.abc import Callable

import numpy as np
import pytest
from pack_model import PAIRS, Pack
from pack_runner import execute, setup
from unpack_model import put, put_thread

from bhemu.tensix import config_fields as cf
from bhemu.tensix import status
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.state import State


def change(name: str, value: int) -> Callable[[State], None]:
    return lambda s: put(s, getattr(cf, name), value)


def counter(channel: int, i: int, value: int) -> Callable[[State], None]:
    return lambda s: s.adc[0, 2, channel].__setitem__(i, value)


def address_mode(name: str) -> Callable[[State], None]:
    return lambda s: put_thread(s, 0, getattr(tf, name), 1)


def nothing(s: State) -> None:
    del s


REFUSED: list[tuple[str, Pack, Callable[[State], None], dict[str, int]]] = [
    *(
        ("PACR-FIELDS", Pack(), nothing, {name: 1})
        for name in ("flush", "ctxt_ctrl", "addr_cnt_context", "row_pad_zero", "cfg_context")
    ),
    ("PACR-OVRD-THREAD", Pack(), nothing, {"ovrd_thread_id": 1}),
    ("PACR-ZERO-WRITE", Pack(), nothing, {"zero_write": 1}),
    *(
        ("PACR-INTERFACES", Pack(), nothing, {"read_intf_sel": k})
        for k in range(16)
        if k not in (0, 1, 3, 5, 10)
    ),
    ("PACR-INTERFACES", Pack(), nothing, {"read_intf_sel": 5, "dst_access_mode": 1}),
    ("PACR-STRIDED", Pack(), change("DEST_ACCESS_CFG_remap_addrs", 1), {"dst_access_mode": 1}),
    *(
        (f"PACR-{name}", Pack(), change(name, 1), {})
        for name in (
            *("PACK_COUNTERS_SEC0_pack_yz_transposed", "DEST_TARGET_REG_CFG_PACK_SEC0_ZOffset"),
            *(
                f"THCON_SEC0_REG1_{name}"
                for name in (
                    *("Row_start_section_size", "Dis_shared_exp_assembler", "Enable_out_fifo"),
                    *("Add_l1_dest_addr_offset", "Sub_l1_tile_header_size", "Downsample_mask"),
                    *("Source_interface_selection", "Exp_threshold_en", "Add_tile_header_size"),
                    *("Downsample_rate", "Auto_set_last_pacr_intf_sel", "pack_start_intf_pos"),
                )
            ),
            "PCK_EDGE_MODE_mode",
        )
    ),
    ("PACR-DSTACC", Pack(), change("ALU_FORMAT_SPEC_REG2_Dstacc", 6), {}),
    ("PACR-ROUND", Pack(round_fp16=1), nothing, {}),
    ("PACR-ROUND", Pack(fmt=1, out=1, round_fp16=1), nothing, {}),
    ("PACR-NO-ROUND", Pack(wide=1, fmt=1, out=1), nothing, {}),
    *(
        ("PACR-READ-INT8", Pack(wide=w, fmt=f, out=o), change("PCK_DEST_RD_CTRL_Read_int8", 1), {})
        for w, f, o in (
            (0, 5, 5),
            (0, 1, 1),
            (0, 2, 6),
            (0, 6, 6),
            (1, 5, 5),
            (1, 6, 6),
            (1, 14, 14),
        )
    ),
    ("PACR-FP8", Pack(fmt=1, out=10), change("THCON_SEC0_REG1_Pac_LF8_4b_exp", 0), {}),
    ("PACR-L1-ACC", Pack(out=6, accumulate=1), nothing, {}),
    ("PACR-RELU-MODE", Pack(relu=4), nothing, {}),
    ("PACR-RELU-THRESHOLD", Pack(relu=1, threshold=0x8000), nothing, {}),
    ("PACR-RELU-FORMAT", Pack(fmt=9, out=9, relu=1), nothing, {}),
    ("PACR-RELU-FORMAT", Pack(wide=1, fmt=8, out=8, relu=2), nothing, {}),
    ("PACR-STRIDE", Pack(strides=(1, 0, 0)), nothing, {}),
    ("PACR-STRIDE", Pack(wide=1, fmt=0, out=0, strides=(0, 0, 2)), nothing, {}),
    ("PACR-STRIDE", Pack(), change("PCK0_ADDR_CTRL_XY_REG_0_Xstride", 1), {}),
    ("PACR-X", Pack(), counter(0, 0, 1), {}),
    ("PACR-ROW", Pack(strides=(8, 0, 0)), counter(0, 1, 1), {}),
    ("PACR-COUNT", Pack(), counter(1, 0, 7), {}),
    ("PACR-COUNT", Pack(), counter(1, 0, 31), {}),
    ("PACR-COUNT", Pack(out=6), counter(1, 0, 7), {"read_intf_sel": 1}),
    ("PACR-ROWS", Pack(offset=1021), nothing, {}),
    ("PACR-ROWS", Pack(offset=1021), nothing, {"read_intf_sel": 10}),
    ("PACR-CHANNEL-1", Pack(), counter(1, 2, 1), {}),
    ("PACR-CHANNEL-1", Pack(), counter(1, 3, 1), {}),
    ("PACR-CHANNEL-1", Pack(), change("PCK0_ADDR_BASE_REG_1_Base", 1), {}),
    ("PACR-L1", Pack(address=0x17FFF), nothing, {}),
    ("PACR-L1", Pack(address=0x17FF8), nothing, {}),
    ("PACR-L1", Pack(out=6, address=0x17FF0), nothing, {}),
    ("PACR-READS", Pack(reads=0), nothing, {}),
    ("PACR-READS", Pack(reads=17), nothing, {}),
    ("PACR-EDGE-SET", Pack(select=2), nothing, {}),
    ("PACR-EDGE-SET", Pack(sets=(0x80, 0)), nothing, {}),
    ("PACR-EDGE-MASK", Pack(masks=(0x00FF, 0)), nothing, {}),
    ("PACR-EDGE-MASK", Pack(masks=(0xFFFF, 2), sets=(0x40, 0)), nothing, {}),
    (
        "PACR-YDST-CR",
        Pack(),
        lambda s: put_thread(s, 0, tf.ADDR_MOD_PACK_SEC2_YdstCR, 1),
        {"addr_mode": 2},
    ),
]


@pytest.mark.parametrize(("rule", "p", "alter", "word"), REFUSED)
def test_refused(rule: str, p: Pack, alter: Callable[[State], None], word: dict[str, int]) -> None:
    """Every check is an error by name, before any effect."""
    s, _ = setup(p)
    s.adc[0, 2, 1, 0] = 15
    alter(s)
    before = [(m.name, a.copy()) for m, a in s.members() if m.name != "detail"]
    number = execute(s, last=1, **word)
    assert status.RULES[number].rule == rule
    assert status.RULES[number].text.format(*s.detail)
    for name, was in before:
        assert np.array_equal(getattr(s, name), was), name


def test_all_other_format_pairs_are_refused() -> None:
    """28 pairs are modelled; the others are an error by name."""
    p = Pack()
    s, _ = setup(p)
    s.adc[0, 2, 1, 0] = 15
    refused = 0
    for wide in range(2):
        for fmt in range(16):
            for out in range(16):
                p.wide, p.fmt, p.out = wide, fmt, out
                p.round_fp16 = int(fmt == 1 and (wide == 1))
                p.program(s)
                number = execute(s, last=1)
                assert (number == status.DONE) == ((wide, fmt, out) in PAIRS)
                refused += number < 0 and status.RULES[number].rule == "PACR-FORMATS"
    assert refused == 512 - len(PAIRS) == 484
