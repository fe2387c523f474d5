"""Named state as rows: fields by name, disassembled words, decoded Dst, ranges, differences."""

import numpy as np
import pytest

from bhemu.debug import dump
from bhemu.debug.decoded import ROWS, Row, View, differences
from bhemu.errors import InputError
from bhemu.machine.saved import REGS, Snapshot
from bhemu.machine.tile import Tile
from bhemu.tensix import config_fields as cf
from bhemu.tensix import formats
from bhemu.tensix.insn import assemble
from bhemu.tensix.state import MEMBERS
from bhemu.tensix.views import NAMED


@pytest.fixture
def tile() -> Tile:
    return Tile()


def shown(tile: Tile, *names: str, fmt: str = "", every: bool = False) -> list[str]:
    lines = dump.text(tile.snapshot(), dump.select(names), View(fmt, every))
    return [" ".join(line.split()) for line in lines][1:]


def test_the_list_of_names_is_unique_and_every_name_has_rows_and_members() -> None:
    names = [named.name for named in NAMED]
    assert len(set(names)) == len(names)
    assert set(names) == ROWS.keys()
    members = {member.name for member in MEMBERS} | {REGS.name}
    for named in NAMED:
        assert set(named.members) <= members, named.name


def test_every_name_and_every_member_can_be_shown(tile) -> None:
    s = tile.snapshot()
    for name in [*ROWS, *s.arrays]:
        if name != "l1":
            rows = list(dump.select([name])[0].rows(s, View(every=True)))
            assert len({row.label for row in rows}) == len(rows), name
            assert len("".join(row.text for row in rows)) >= len(rows)


def test_a_power_up_state_shows_what_is_not_zero(tile) -> None:
    assert shown(tile, "gpr") == ["all 0"]
    assert shown(tile, "regs") == ["all 0"]
    assert len(shown(tile, "regs", every=True)) == 20


def test_configuration_is_shown_by_field_name_and_no_bit_is_hidden(tile) -> None:
    f = cf.ALU_FORMAT_SPEC_REG1_SrcB
    tile.tensix.cfg[1, f.word] = 6 << f.shift
    tile.tensix.cfg[0, 223] = 0x40
    lines = shown(tile, "cfg")
    assert lines[0] == "ALU_FORMAT_SPEC_REG1_SrcB bank 0 0x0 bank 1 0x6"
    assert len(lines) == 2
    assert lines[1].endswith("bank 0 0x40 bank 1 0x0")
    assert shown(tile, "format_spec_reg1_srcb") == lines[:1]
    assert shown(tile, f"cfg:{f.word}")[0].startswith("ALU_ROUNDING_MODE_Fpu_srnd_en bank 0 0x0")


def test_state_that_only_some_words_use_is_shown_too(tile) -> None:
    """The row SHIFTXA would shift, what SFPLOADMACRO scheduled, statistics, CSRs, TDMA-RISC."""
    s, word = tile.state, assemble("SFPSTORE")
    assert shown(tile, "src_banks")[-1] == "SrcA row of the last matrix word row not known"
    s.srca_row[0] = 17
    assert shown(tile, "src_banks")[-1].endswith("row 17")
    s.macro_slot[2, 3] = (1, word, 0, 0, 0)
    assert shown(tile, "macro")[0].startswith(
        f"sub-unit 2 in 4 cycles word 0x{word:08X} text SFPST"
    )
    s.pack_exponent[0], s.pack_histogram[9] = 131, 4
    assert shown(tile, "packer") == [
        "statistics largest exponent 131",
        "exponent histogram 8 0 4 0 0 0 0 0 0",
    ]
    s.csr[4, 0], s.csr[4, 7], s.csr_offset[4, 1] = 5, 6, -3
    first, second, third = shown(tile, "csr:4")
    assert first.startswith("ncrisc cfg0 ") and " pmacfg0 0x5 " in first
    assert "ncrisc stream status" in second and " tt_cfg_sstatus1 0x6 " in second
    assert third == "ncrisc added by writes to mcycle +0 minstret -3"
    s.tdma_base[2] = 0x40
    assert shown(tile, "tdma") == ["XMOV_L1_BASE_ADDR of trisc1 value 0x40"]


def test_words_are_disassembled(tile) -> None:
    s, word = tile.state, assemble("SEMPOST", sem_sel=2)
    s.mop_cfg[1, 5] = s.replay[2, 31] = s.fifo[0, 2] = word
    s.mop_cfg[1, 0], s.replay_pc[2, 31] = 4, 0x1234
    s.fifo_read[0], s.fifo_write[0], s.fifo_pc[0, 2] = 2, 3, 0x10000
    s.gate_full[1], s.gate_word[1], s.gate_from[1], s.gate_core[1] = 1, word, 2 + 7, 2
    text = f"word 0x{word:08X} text SEMPOST sem_sel=0x2"
    assert shown(tile, "mop") == ["T1 0 outer count value 4", f"T1 5 loop 0 | A2 {text}"]
    assert shown(tile, "replay") == [f"T2 slot 31 {text} from pc 0x00001234"]
    assert shown(tile, "fifo") == [f"T0 0 {text} from pc 0x00010000"]
    assert shown(tile, "gate") == [f"T1 {text} origin REPLAY slot 7 from trisc1 pc 0x00000000"]


def test_dst_is_decoded_in_the_format_asked_for(tile) -> None:
    """1.0 as bf16 is 0x3F80; the cell is s m7 e8 (Dst, Blackhole ISA)."""
    tile.state.dst[5, 3] = 0x007F
    assert shown(tile, "dst")[0].split()[:7] == ["bf16", "row", "5", "0", "0", "0", "1"]
    assert "007f" in shown(tile, "dst", fmt="raw")[0]
    assert shown(tile, "dst", fmt="fp32")[0].startswith("fp32 row 5 0 0 0 1 ")
    tile.state.dst_valid[5] = 0
    assert shown(tile, "dst") == ["all 0"], "a cleared row reads as 0"
    assert shown(tile, "dst_valid") == ["rows 0-63 cleared 5"]
    assert len(shown(tile, "dst:4-6")) == 3


def test_src_rows_follow_the_format_of_their_bank(tile) -> None:
    """1.5 in fp16 is 0x3E00: its 5-bit exponent stays as it is (fp16_cell)."""
    s = tile.state
    s.src[0, 1, 2, 0] = 0x3E00 << 13
    s.src_fmt[0, 1] = formats.FP16
    assert shown(tile, "srca")[0].split()[:5] == ["bank", "1", "row", "2", "1.5"]
    s.src[1, 0, 0, 15] = 0x3FC00000
    s.src_fmt[1, 0] = formats.BF16
    assert shown(tile, "srcb")[0].split()[-1] == "1.5"
    s.src_fmt[1, 0] = formats.INT8
    assert shown(tile, "srcb")[0].split()[-1] == "3fc00000"


def test_lregs_semaphores_counters(tile) -> None:
    s = tile.state
    s.lreg[0, 9], s.sem[3], s.sem_max[3], s.mutex[2], s.rwc[1, 2] = 0x40000000, 1, 2, 3, 64
    assert (
        shown(tile, "lreg:0")[1].split()
        == ["LReg0", "lane", "8", "0" * 8, "40000000"] + ["0" * 8] * 6
    )
    assert shown(tile, "lreg:0", fmt="fp32")[1].split()[4] == "2"
    assert shown(tile, "sem") == ["sem3 value 1 max 2"]
    assert shown(tile, "mutex") == ["mutex 2 held by T2"]
    assert shown(tile, "rwc")[0].startswith("T1 SrcA 0 SrcB 0 Dst 64 fidelity 0")


def test_memory_by_address(tile) -> None:
    tile.write(0x40024, b"\x78\x56\x34\x12")
    assert shown(tile, "l1") == [f"00040020: {'0' * 8} 12345678{(' ' + '0' * 8) * 6}"]
    assert len(shown(tile, "l1:0x40000-0x4003f")) == 2
    tile.core["trisc1"].write32(0xFFB00010, 7)
    assert shown(tile, "local")[0].startswith("trisc1 ffb00000: ")


def test_members_of_the_record_are_shown_as_they_are(tile) -> None:
    tile.state.op_count[2, 9] = 5
    assert shown(tile, "op_count") == ["op_count[2][8] 0 5 0 0 0 0 0 0"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("semm", "no state is called 'semm'"),
        ("dst:x", "'x' is not a range"),
        ("dst:7-3", "7-3 ends before it begins"),
        ("", "no state is called ''"),
    ],
)
def test_a_name_that_stands_for_nothing_is_bad_input(name, message) -> None:
    with pytest.raises(InputError, match=message):
        dump.select([name])


def diff(ours: Snapshot, theirs: Snapshot, *names: str) -> list[str]:
    chosen = dump.select(names, bulky=True)
    return [" ".join(line.split()) for line in dump.diff(ours, theirs, chosen, View())]


def test_a_difference_names_cell_and_both_values(tile, tmp_path) -> None:
    tile.snapshot().save(tmp_path / "a.npz")
    before = Snapshot.load(tmp_path / "a.npz")
    assert diff(before, tile.snapshot()) == []
    tile.state.gpr[1, 9], tile.state.sem[0] = 0x20, 1
    tile.write(0x100, b"\x01")
    assert diff(before, tile.snapshot()) == [
        "gpr Tensix GPRs of each thread",
        "T1 8 [9]: 00000000 -> 00000020",
        "sem semaphores: value and maximum",
        "sem0 value: 0 -> 1",
        "l1 L1 memory",
        "00000100: [0x100]: 00000000 -> 00000001",
    ]
    assert diff(before, tile.snapshot(), "cfg") == []


def test_rows_that_differ_much_or_are_alone_are_shown_whole() -> None:
    def row(label: str, *cells: int) -> Row:
        return Row(label, {str(i): cell for i, cell in enumerate(cells)}, names=False)

    ours = [row("a", 1, 2, 3, 4, 5), row("b", 1)]
    theirs = [row("a", 5, 4, 9, 2, 1), row("c", 2)]
    assert list(differences(ours, theirs)) == [
        *("- a  1 2 3 4 5", "+ a  5 4 9 2 1", "- b  1", "+ c  2")
    ]


def test_a_saved_state_comes_back_whole(tile, tmp_path) -> None:
    tile.state.prng[:] = 7
    tile.snapshot().save(tmp_path / "s.npz")
    back, now = Snapshot.load(tmp_path / "s.npz"), tile.snapshot()
    assert back.arrays.keys() == now.arrays.keys()
    assert all(np.array_equal(back.arrays[name], now.arrays[name]) for name in now.arrays)
    with pytest.raises(AttributeError):
        _ = back.engine


def test_minus_zero_is_not_nothing() -> None:
    assert Row("r", {"0": 0.0, "1": ""}).empty
    assert not Row("r", {"0": -0.0}).empty


def test_doubtful_rows_of_srca_are_named(tile) -> None:
    tile.state.src_doubt[1] = (0, 6, 0, 1 << 15)
    lines = shown(tile, "src_banks", every=True)
    assert [line.partition("may be lost ")[2] for line in lines[:4]] == [
        "",
        "rows 17, 18, 63",
        "",
        "",
    ]
