"""Auto TTSync: which accesses wait for which queued words (Auto TTSync, Blackhole ISA)."""

import re

import pytest

from bhemu.devices.bus import access_order
from bhemu.errors import InputError, NotModelled
from bhemu.machine.tile import Tile
from bhemu.riscv.assembly import A0, A1, PARK, addi, code, li, lw, sw, tt
from bhemu.tensix import config_fields, units
from bhemu.tensix.insn import assemble, instructions

assert units.MODULES
PUSH, GPR, CFG = 0xFFE40000, 0xFFE00000, 0xFFEF0000
CONFIG_1, DUAL, THREAD = CFG + 0x380, CFG + 0x700, CFG + 0xA80
TRACK_CFG, SUBDIVIDED, TRACK_GPR, TRACK_TDMA, TRACK_WORDS = 1, 2, 4, 8, 16
HOLD = assemble("SEMWAIT", sem_sel=1, stall_res=511, wait_sem_cond=1)


def waiting(word: int, control: int, bank: int = 0, core: str = "trisc0") -> Tile:
    """`word` stands behind a wait at the gate of the core's thread."""
    tile = Tile()
    t = int(core[-1])
    tile.core["brisc"].write32(PUSH, assemble("SEMINIT", sem_sel=1, max_value=1))
    tile.state.thread_cfg[t, 56], tile.state.thread_cfg[t, 0] = control, bank
    for pushed in (HOLD, assemble("NOP"), word):
        tile.core[core].write32(PUSH, pushed)
    return tile


def waits(tile: Tile, address: int, store: bool, core: str = "trisc0") -> bool:
    access = tile.core[core].write32 if store else tile.core[core].read32
    try:
        access(address, *([0] if store else []))
    except InputError as problem:
        return "Auto TTSync" in problem.message
    return False


GPRS, ALL = TRACK_WORDS | TRACK_GPR, TRACK_WORDS | TRACK_GPR | TRACK_CFG
# word, control, address, load waits, store waits
CASES = [
    ("ADDDMAREG", GPRS, GPR, True, True),
    ("STOREREG", GPRS, GPR, False, True),
    ("LOADREG", GPRS, GPR, True, True),
    ("WRCFG", GPRS, GPR, False, True),
    ("RDCFG", GPRS, GPR, True, True),
    ("SFPNOP", GPRS, GPR, False, False),
    ("NOP", ALL, GPR, False, False),
    ("NOP", ALL, CFG, False, False),
    ("ADDDMAREG", TRACK_GPR, GPR, False, False),
    ("ADDDMAREG", TRACK_WORDS | TRACK_CFG, GPR, False, False),
    ("WRCFG", ALL, CFG, True, True),
    ("WRCFG", ALL, CONFIG_1, False, False),
    ("WRCFG", ALL, CFG + 4 * 185, True, True),
    ("WRCFG", ALL, CONFIG_1 + 4 * 185, True, True),
    ("RDCFG", ALL, CFG, False, True),
    ("MVMUL", ALL, CFG, False, True),
    ("UNPACR", ALL, CFG, False, True),
    ("MOP", ALL, CFG, True, True),
    ("REPLAY", ALL, GPR, True, True),
]


@pytest.mark.parametrize(("name", "control", "address", "load", "store"), CASES)
def test_what_waits_for_what(
    name: str, control: int, address: int, load: bool, store: bool
) -> None:
    fields = {"len": 1} if name == "REPLAY" else {}
    tile = waiting(assemble(name, **fields), control)
    assert (waits(tile, address, False), waits(tile, address, True)) == (load, store)


@pytest.mark.parametrize("bank", [0, 1])
def test_words_use_the_bank_of_their_thread(bank: int) -> None:
    tile = waiting(assemble("WRCFG"), ALL, bank)
    assert waits(tile, (CFG, CONFIG_1)[bank], True)
    assert not waits(tile, (CONFIG_1, CFG)[bank], True)


def test_words_behind_a_change_of_bank_may_use_either() -> None:
    tile = waiting(assemble("SETC16", setc16_reg=0, setc16_value=1), ALL)
    tile.core["trisc0"].write32(PUSH, assemble("WRCFG"))
    assert waits(tile, CFG, True)
    assert waits(tile, CONFIG_1, True)


SUB = TRACK_WORDS | TRACK_CFG | SUBDIVIDED
THCON_UNPACKER0 = CFG + 4 * config_fields.THCON_SEC0_REG3_Base_address.word
THCON_UNPACKER1 = CFG + 4 * config_fields.THCON_SEC1_REG3_Base_address.word
UNPACKERS = [
    (0, THCON_UNPACKER0, True),
    (0, THCON_UNPACKER1, False),
    (1, THCON_UNPACKER0, False),
    (1, THCON_UNPACKER1, True),
    (0, CFG, False),
    (0, CFG + 4 * 48, True),
    (1, CFG + 4 * 48, True),
    (0, CFG + 4 * 45, True),
    (0, CFG + 4 * 56, False),
    (1, CFG + 4 * 126, False),
    (0, CFG + 4 * 65, False),
    (0, CFG + 4 * 200, False),
]


@pytest.mark.parametrize(("unpacker", "address", "store"), UNPACKERS)
def test_unpackers_are_tracked_apart_when_subdivided(
    unpacker: int, address: int, store: bool
) -> None:
    tile = waiting(assemble("UNPACR", unpack_block_selection=unpacker), SUB)
    assert waits(tile, address, True) == store
    assert not waits(tile, address, False)


REST_WORDS = [CFG, CFG + 4 * 200, CONFIG_1 + 4 * 200, DUAL, DUAL + 4 * 76]


@pytest.mark.parametrize("address", REST_WORDS)
def test_other_words_belong_to_the_remainder(address: int) -> None:
    assert waits(waiting(assemble("PACR"), SUB), address, True)
    assert not waits(waiting(assemble("UNPACR"), SUB), address, True)


def test_thread_config_counts_as_configuration() -> None:
    tile = waiting(assemble("CFGSHIFTMASK"), TRACK_WORDS | TRACK_CFG)
    assert waits(tile, THREAD, False)
    tile = waiting(assemble("CFGSHIFTMASK"), SUB)
    assert waits(tile, THREAD + 4, False)  # DEST_TARGET_REG_CFG_MATH_Offset: the unpackers
    assert waits(tile, THREAD + 8, False)


def test_the_table_of_parts_follows_the_fields() -> None:
    """By name, as the page lists them; a word without a listed field is the remainder."""
    both = {"UNP0_ADDR_CTRL_ZW_REG_0": 3}
    every = r"UNP0_(ADDR_BASE_REG_\d|ADD_DEST_ADDR_CNTR|FORCED_SHARED_EXP)"
    first = (
        r"THCON_SEC0_(REG[234578]_(?!.*(Row|Exp_|L1_Dest|zero_flags))|REG10_Unpack_)|"
        r"UNP0_(ADDR_CTRL_XY_REG_0|BLOBS|NOP_REG)|THCON_SEC0_REG0"
    )
    second = (
        r"THCON_SEC1_REG(0|2_(?!Unpack_(fifo|limit))|3_Base_(cntx1_)?address|7_Offset_(cntx1_)?addr)|"
        r"THCON_SEC1_REG7_Unpack_(out_)?data_format_cntx[0145]|UNP1_"
    )
    want = dict.fromkeys(range(180), 0)
    for name, field in vars(config_fields).items():
        if not isinstance(field, config_fields.Field) or field.word >= 180:
            continue
        if any(name.startswith(prefix) for prefix in both):
            want[field.word] |= 3
        elif re.match(every, name):
            want[field.word] |= 7
        elif re.match(r"THCON_SEC0_REG8", name):
            continue
        elif re.match(first, name):
            want[field.word] |= 1
        elif re.match(second, name):
            want[field.word] |= 2
    assert list(access_order.PARTS[:180]) == [parts or 4 for parts in want.values()]


NAMES = {
    (64, 64): "ADDDMAREG SUBDMAREG MULDMAREG BITWOPDMAREG SHIFTDMAREG CMPDMAREG SETDMAREG"
    " ATINCGET ATINCGETPTR ATSWAP ATCAS LOADIND STOREIND",
    (192, 192): "REG2FLOP",
    (256, 256): "STREAMWRCFG CFGSHIFTMASK",
    (64, 0): "STOREREG",
    (0, 64): "LOADREG",
    (0, 128): "FLUSHDMA",
    (64, 256): "WRCFG",
    (256, 64): "RDCFG",
    (320, 320): "XMOV",
    (384, 128): "UNPACR UNPACR_NOP",
    (640, 128): "PACR",
    (448, 448): "MOP REPLAY",
    (0, 0): "NOP MOP_CFG RESOURCEDECL",
}


def test_every_instruction_has_the_class_of_the_page() -> None:
    listed = {name: uses for uses, names in NAMES.items() for name in names.split()}
    for opcode, cls in instructions().items():
        uses = access_order.READS[opcode], access_order.WRITES[opcode]
        assert uses == listed.get(cls.name, (512, 0)), cls.name


def program(control: int) -> Tile:
    """T0 queues SETDMAREG of GPR 4 behind a wait, then stores 7 there; T1 lets the wait end."""
    tile = Tile()
    tile.core["brisc"].write32(PUSH, assemble("SEMINIT", sem_sel=1, max_value=15))
    set_gpr = [tt("SETDMAREG", payload_sig_sel=9, reg_index_16b=8 + i) for i in range(2)]
    hold = tt("SEMWAIT", sem_sel=1, stall_res=511, wait_sem_cond=1)
    own = [li(A1, GPR + 16), addi(A0, 0, 7), hold, set_gpr, sw(A0, A1), PARK]
    tile.write(0x10000, code(*own))
    tile.write(0x20000, code([addi(A0, A0, 1)] * 50, tt("SEMPOST", sem_sel=1), PARK))
    for core, start in (("trisc0", 0x10000), ("trisc1", 0x20000)):
        tile.core[core].set_reset_pc(start)
        tile.core[core].release()
    tile.state.thread_cfg[0, 56] = control
    assert tile.run(timeout_s=20).reason == "idle"
    return tile


def test_a_tracked_store_comes_after_the_words_pushed_before_it() -> None:
    assert int(program(GPRS).tensix.gpr[0][4]) == 7
    assert program(GPRS).core["trisc0"].retired == 7
    assert int(program(0).tensix.gpr[0][4]) == 9 << 16 | 9


def test_brisc_and_words_of_brisc_are_not_tracked() -> None:
    tile = waiting(assemble("NOP"), GPRS)
    tile.core["brisc"].write32(PUSH, assemble("ADDDMAREG"))
    assert not waits(tile, GPR, True)
    tile.core["trisc0"].write32(PUSH, assemble("ADDDMAREG"))
    assert waits(tile, GPR, True)
    assert not waits(tile, GPR, True, core="brisc")
    assert not waits(tile, GPR, True, core="trisc1")


def test_declared_resources_are_refused() -> None:
    declare = assemble("RESOURCEDECL", op_class=0, resources=1)
    tile = Tile()
    tile.write(0x10000, code(tt("RESOURCEDECL", resources=1), li(A1, GPR), lw(A0, A1), PARK))
    tile.core["trisc0"].set_reset_pc(0x10000)
    tile.core["trisc0"].release()
    tile.state.thread_cfg[0, 56] = GPRS
    with pytest.raises(NotModelled, match="AUTO-TTSYNC-DECL"):
        tile.run()
    with pytest.raises(InputError, match="RESOURCEDECL"):
        waiting(declare, GPRS).core["trisc0"].read32(GPR)
    assert not waits(waiting(declare, 0), GPR, True)
