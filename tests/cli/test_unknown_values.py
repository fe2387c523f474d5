"""UNPACR_NOP clears a bank to a value that no source gives: it must not reach an output."""

import pytest

from bhemu.riscv.assembly import A0, A1, PARK, li, sw, tt
from bhemu.tensix import config_fields as cf

BF16 = 5
FIELDS = (
    (cf.ALU_FORMAT_SPEC_REG2_Dstacc, BF16),
    (cf.THCON_SEC0_REG1_In_data_format, BF16),
    (cf.THCON_SEC0_REG1_Out_data_format, BF16),
    (cf.THCON_SEC0_REG2_Out_data_format, BF16),
    (cf.THCON_SEC1_REG2_Out_data_format, BF16),
    (cf.THCON_SEC0_REG1_L1_Dest_addr, 0x4000),
    (cf.THCON_SEC0_REG1_Disable_zero_compress, 1),
    (cf.PACK_COUNTERS_SEC0_pack_reads_per_xy_plane, 16),
    (cf.PCK_EDGE_OFFSET_SEC0_mask, 0xFFFF),
)
ONE, ZERO = 2, 0


def clear(unpacker: int, value: int, hand_over: int = 0) -> int:
    fields = {"src_clr_val_ctrl": value, "set_dvalid": hand_over, "unpacker_select": unpacker}
    return tt("UNPACR_NOP", unpack_pop=1, **fields)


def program(instruction: str, *values: int) -> list[object]:
    """SrcA cleared to each value in turn and handed over, SrcB of zeros; a word, then PACR."""
    config: dict[int, int] = {}
    for field, value in FIELDS:
        config[field.word] = config.get(field.word, 0) | value << field.shift
    stores = [[*li(A0, 0xFFEF0000 + 4 * w), *li(A1, v), sw(A1, A0)] for w, v in config.items()]
    clears = [clear(0, value, int(i == len(values) - 1)) for i, value in enumerate(values)]
    counters = tt("SETADCXX", cnt_set_mask=4, x_end2=15)
    words = [*clears, clear(1, ZERO, 1), tt(instruction), counters, tt("PACR", last=1)]
    return [*stores, *words, PARK]


@pytest.mark.parametrize(
    ("instruction", "values", "code"),
    [
        ("ELWADD", (ONE,), 4),
        ("ELWSUB", (ZERO, ONE), 4),
        ("ELWADD", (ONE, ZERO), 0),  # cleared again before the bank is handed over
        ("ELWMUL", (ONE,), 0),  # a product with a certain zero is certain
        ("ELWADD", (ZERO,), 0),
    ],
)
def test_a_doubtful_datum_stops_at_the_packer(write, bhemu, instruction, values, code) -> None:
    result = bhemu("run", write(*program(instruction, *values)))
    assert result.exit_code == code, result.output
    assert ("[FPU-EXPONENT]" in result.stderr) == (code == 4)
    assert ("UNPACR-NOP-VALUE: 1 time" in result.stdout) == (ONE in values)
