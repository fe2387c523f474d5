"""Every address of the memory map, from every core and the host, in every width: one disposition.

`expected` is the map of BabyRISCV ("Memory map", Blackhole ISA) and of the pages of each block,
written out; what it does not name must be refused by name, before any effect.
"""

from collections.abc import Iterator

import pytest

from bhemu.errors import GuestFault, InputError
from bhemu.machine.sentences import RULES
from bhemu.machine.tile import Tile
from bhemu.memmap import CORE_NAMES
from bhemu.riscv.assembly import A0, A1, PARK, ZERO, code, jal, li

HOST = 5
AGENTS = (*CORE_NAMES, "host")
NOP = 0x02000000  # harmless wherever it is stored, and a word that executes
OK, WAITS = "ok", "waits"
UNMAPPED, NOT_MODELLED, CORE = "MMIO-UNMAPPED", "MMIO-NOT-MODELLED", "MMIO-CORE"
READ_ONLY, WRITE_ONLY = "MMIO-READ-ONLY", "MMIO-WRITE-ONLY"
ARRAY_DATA, ARRAY = 0x6C, (0x60, 0x64)
CLOCKS, CLOCK_LOW = (0x1F4, 0x1F8), 0x1F0
BUFFERS = (0xA0, 0xA4)  # INSTRN_BUF_CTRL0, CTRL1
COUNTERS = (0x00, 0x0C, 0x18, 0x30, 0xF0)  # of each bank: period, mode, control
CONTROLS = (*(bank + 8 for bank in COUNTERS), 0x3C)
STORAGE = (0x58, 0x90, 0x218, *range(0x224, 0x240, 4))
DEBUGGERS = (*range(0x48, 0x58, 4), 0x80, 0x84)  # NOP triggers nothing there
STORAGE += tuple(bank + at for bank in COUNTERS for at in (0, 4))
GATING = (0x70, 0x74, 0x7C, 0x240, 0x244, 0x248)
LOCAL = {0: 0x2000, 1: 0x2000, 2: 0x1000, 3: 0x1000, 4: 0x1000}  # slots: B NC T0 T1 T2


def tdma(agent: int, at: int, store: bool) -> str:
    if agent > 3:
        return CORE
    modelled = (0, 4, 8, 0xC, 0x10, 0x14, 0x24, 0x28, 0x2C)
    if at == 0x10 and store:
        return "TDMA-COMMAND"  # of NOP
    return OK if at in modelled else "TDMA-SIDEBAND"


def debug(at: int, store: bool) -> str:
    if at in (*STORAGE, *GATING, *BUFFERS, *DEBUGGERS, CLOCK_LOW):
        return OK
    if at == 0x68:  # DBG_FEATURE_DISABLE: only 0
        return "MMIO-FIELD" if store else OK
    if at in CONTROLS:  # of performance counters: only to stop
        return "MMIO-FIELD" if store else OK
    if at == 0x1B0:  # SOFT_RESET_0: the value asks for a unit of the coprocessor
        return "MMIO-FIELD" if store else OK
    if at in (0x78, 0x88, 0x8C, 0xA8, *CLOCKS):
        return READ_ONLY if store else OK
    if 0x100 <= at < 0x128:  # values of performance counters, in modelled time alone
        return READ_ONLY if store else "PERF-VALUE"
    if at == 0x5C:
        return READ_ONLY if store else "DEBUG-BUS"  # not enabled
    if at in ARRAY:
        return OK if store else WRITE_ONLY
    if at == ARRAY_DATA:
        return READ_ONLY if store else "DEBUG-ARRAY"  # not enabled
    return NOT_MODELLED


def niu(at: int, store: bool) -> str:
    initiator, register = divmod(at, 0x800)
    if initiator < 4 and (register <= 0x2C or register == 0x40):
        return OK  # NOP has no start bit
    if initiator < 4 and register in (0x30, 0x34):
        return "MMIO-FIELD" if store else OK  # they take 0 only
    if initiator < 4 and register in (0x44, 0x48):
        return READ_ONLY if store else OK
    if at == 0x60:
        return OK if store else WRITE_ONLY
    if 0x100 <= at <= 0x17C and at != 0x14C:
        return OK
    if 0x200 <= at < 0x2F8 or at in (0x378, 0x37C):
        return READ_ONLY if store else OK
    return NOT_MODELLED


def pcbuf(agent: int, at: int, store: bool) -> str:
    if agent == 0:
        return OK if store else WAITS
    if agent > 3 or at >= 0x10000:
        return CORE
    if 0x20 <= at < 0x40:
        return "SEM-STORE-VALUE" if store else OK  # only 0 posts and 1 takes
    if at in (4, 8) or (at == 0 and store):
        return OK
    return WAITS if at == 0 else UNMAPPED


def coprocessor(agent: int, address: int, store: bool) -> str:
    """From 0xFFE00000 on."""
    window = address >> 16
    if 0xFFE4 <= window <= 0xFFE6 and not store:
        return WRITE_ONLY
    if agent == HOST:
        return CORE if mapped(address) else UNMAPPED
    if 0xFFE4 <= window <= 0xFFE6:
        return CORE if agent == 4 else "PUSH-TRISC" if agent and window > 0xFFE4 else OK
    if 0xFFE80000 <= address < 0xFFEB0000:
        return pcbuf(agent, address - 0xFFE80000, store)
    if address < 0xFFE01000:
        size = {0: 0x300, 4: 0}.get(agent, 0x100)
        return CORE if not size else OK if address < 0xFFE00000 + size else UNMAPPED
    if 0xFFEC0000 <= address < 0xFFEC4000:
        return CORE if agent == 4 else OK if store or address & 4 else WAITS
    if 0xFFEF0000 <= address < 0xFFEF0DB0:
        if agent == 4:
            return CORE
        return OK if address < 0xFFEF0A80 or not store else READ_ONLY
    return UNMAPPED


def block(agent: int, address: int, store: bool) -> str:
    """What an aligned 4-byte access of NOP comes to."""
    if address >= 0xFFE00000:
        return coprocessor(agent, address, store)
    if 0xFFB11000 <= address < 0xFFB12000:
        return tdma(agent, address & 0xFFF, store)
    if 0xFFB12000 <= address < 0xFFB13000:
        return debug(address & 0xFFF, store)
    if 0xFFB13000 <= address < 0xFFB13138:
        return NOT_MODELLED  # PIC
    if 0xFFB13138 <= address < 0xFFB1314C:
        return READ_ONLY if store else OK  # pc snapshots
    if 0xFFB14000 <= address < 0xFFB1E000:
        slot, at = divmod(address - 0xFFB14000, 0x2000)
        return OK if at < LOCAL[slot] else UNMAPPED
    if 0xFFB20000 <= address < 0xFFB40000:
        return niu(address & 0xFFFF, store)
    if 0xFFB80000 <= address < 0xFFB80024:
        return (OK if 1 <= agent <= 3 else CORE) if store else WRITE_ONLY
    if 0xFFBD8000 <= address < 0xFFBE0000:
        return OK if 1 <= agent <= 3 else CORE
    return UNMAPPED


def expected(agent: int, address: int, size: int, store: bool) -> str:
    """The disposition of one access."""
    if address & (size - 1):
        return "RV-ALIGN"
    if 0xFFBD8000 <= address < 0xFFBE0000:
        return "DST-WINDOW-WIDTH" if size != 4 and 1 <= agent <= 3 else block(agent, address, store)
    if size == 4:
        return block(agent, address, store)
    if not mapped(address):
        return UNMAPPED
    if store:
        return block(agent, address, True) if in_local(address) else "MMIO-STORE-SIZE"
    if 0xFFB20000 <= address < 0xFFE00000:
        return "MMIO-LOAD-SIZE"
    return block(agent, address & ~3, False)


def mapped(address: int) -> bool:
    """Whether the map gives the address to any block."""
    return any(
        low <= address < high
        for low, high in (
            *((0xFFB11000, 0xFFB1314C), (0xFFB14000, 0xFFB1E000), (0xFFB20000, 0xFFB80024)),
            *((0xFFBD8000, 0xFFBE0000), (0xFFE00000, 0xFFE01000), (0xFFE40000, 0xFFE70000)),
            *((0xFFE80000, 0xFFEB0000), (0xFFEC0000, 0xFFEC4000), (0xFFEF0000, 0xFFEF0DB0)),
        )
    )


def in_local(address: int) -> bool:
    return 0xFFB14000 <= address < 0xFFB1E000


def words() -> Iterator[int]:
    """Every word of the small blocks; of the large ones and the gaps their edges and a sample."""
    small = (
        *((0xFFB11000, 0xFFB13180), (0xFFB80000, 0xFFB80030), (0xFFE00000, 0xFFE01010)),
        *((0xFFEF0000, 0xFFEF0DD0), (0xFFB20000, 0xFFB20400), (0xFFB30000, 0xFFB30400)),
        *((0xFFE80000, 0xFFE80060), (0xFFE90000, 0xFFE90010), (0xFFEA0000, 0xFFEA0010)),
    )
    for low, high in small:
        yield from range(low, high, 4)
    for n in range(4):
        yield from (0xFFEC0000 + 0x1000 * n + at for at in (0, 4, 8, 0xC, 0xFFC))
    edges = (
        *(0xFFB02000, 0xFFB13FFC, 0xFFB14000, 0xFFB15FFC, 0xFFB18FFC, 0xFFB19000, 0xFFB1DFFC),
        *(0xFFB1E000, 0xFFB1FFFC, 0xFFB2FFFC, 0xFFB80024, 0xFFBD7FFC, 0xFFBD8000, 0xFFBDFFFC),
        *(0xFFBE0000, 0xFFDFFFFC, 0xFFE3FFFC, 0xFFE40000, 0xFFE4FFFC, 0xFFE50000, 0xFFE6FFFC),
        *(0xFFE70000, 0xFFE7FFFC, 0xFFE8FFFC, 0xFFEAFFFC, 0xFFEB0000, 0xFFEC4000, 0xFFEEFFFC),
        *(0xFFEFFFFC, 0xFFF00000, 0xFFFFEFFC),
    )
    yield from edges
    yield from range(0xFFB02000, 0xFFFFF000, 0x1F34)  # a multiple of 4 that meets every offset


def outcome(tile: Tile, agent: int, address: int, size: int, store: bool) -> str:
    """What the device bus answers; a value that does not fit its width fails here."""
    if store:
        status = tile.backend.write(address, NOP & ((1 << (8 * size)) - 1), size, agent)
    else:
        status, value = tile.backend.read(address, size, agent)
        assert status or 0 <= value < 1 << (8 * size), (AGENTS[agent], hex(address), size)
    if status < 0:
        rule = RULES[status]
        assert rule.sentence(tile.state.detail)
        return rule.rule
    return WAITS if status else OK


@pytest.mark.parametrize(
    ("address", "name"),
    [
        (0xFFB120B0, "masks of stochastic rounding"),
        (0xFFB120B4, "FPU_STICKY_BITS"),
        (0xFFB121D4, "ECC"),
        (0xFFB121E8, "watchdog"),
        (0xFFB12200, "timestamp dump"),
        (0xFFB12220, "LFSR mask"),
        (0xFFB13000, "PIC"),
        (0xFFB20180, "NoC 0 NIU"),
    ],
)
def test_what_is_refused_is_refused_by_its_name(address: int, name: str) -> None:
    tile = Tile()
    for access in (lambda: tile.read32(address), lambda: tile.write32(address, 0)):
        with pytest.raises(InputError, match="is not modelled") as caught:
            access()
        assert name in str(caught.value)


OVERLAY = range(0xFFB40000, 0xFFB80000)


@pytest.mark.parametrize("store", [False, True], ids=["loads", "stores"])
@pytest.mark.parametrize("agent", range(6), ids=AGENTS)
def test_every_access_of_the_map_is_what_the_map_says(agent: int, store: bool) -> None:
    tile = Tile()
    wrong = []
    for word in words():
        if word in OVERLAY:
            continue
        tile.state.core_state[:] = 0
        tile.state.mailbox_read[:] = tile.state.mailbox_write
        tile.state.pcbuf_read[:] = tile.state.pcbuf_write
        tile.state.fifo_read[:] = tile.state.fifo_write
        tile.state.debug[BUFFERS[0] >> 2] = 0
        for size, address in ((4, word), (4, word + 2), (2, word), (2, word + 3), (1, word + 1)):
            got = outcome(tile, agent, address, size, store)
            want = expected(agent, address, size, store)
            if got != want:
                wrong.append((hex(address), size, got, want))
    assert wrong == []


@pytest.mark.parametrize("agent", range(6), ids=AGENTS)
def test_a_stream_register_is_storage_or_refused(agent: int) -> None:
    tile = Tile()
    rules = {"STREAM-REGISTER", "STREAM-READ-ONLY", "STREAM-REMOTE-SRC", "STREAM-SPACE-UPDATE"}
    modelled: set[int] = set()
    for stream in (0, 8, 63):
        for register in range(1024):
            address = OVERLAY.start + 0x1000 * stream + 4 * register
            for store in (False, True):
                got = outcome(tile, agent, address, 4, store)
                assert got == OK or got in rules, (hex(address), got)
                if got == OK:
                    modelled.add(register)
                size = "MMIO-STORE-SIZE" if store else "MMIO-LOAD-SIZE"
                assert outcome(tile, agent, address, 2, store) == size
    assert {4, 8, 10} <= modelled
    assert len(modelled) < 32  # the rest is refused by name


HOLES = (0x180000, 0x7FFFFFFC, 0xFFAFFFFC, 0xFFB02000, 0xFFB10FFC, 0xFFFFF000, 0xFFFFFFFC)


@pytest.mark.parametrize("name", CORE_NAMES)
@pytest.mark.parametrize("function", [0, 1, 2], ids=["byte", "half", "word"])
def test_a_hole_of_the_address_space_is_a_fault_of_the_guest(name: str, function: int) -> None:
    """Loads and stores that no device sees, and local memory behind that of a TRISC."""
    beyond = [0xFFB01000] if name.startswith("trisc") else []
    for address in (*HOLES, *beyond):
        for opcode in (0x03, 0x23):
            rd, rs2 = (A1, 0) if opcode == 0x03 else (0, A1)
            access = rs2 << 20 | A0 << 15 | function << 12 | rd << 7 | opcode
            tile = Tile()
            tile.write(0x10000, code(li(A0, address), access, PARK))
            tile.write(0, code(jal(ZERO, 0x10000)))
            if name != "brisc":
                tile.core[name].set_reset_pc(0x10000)
            tile.core[name].release()
            with pytest.raises(GuestFault) as caught:
                tile.run(limit=1000)
            assert caught.value.rule in ("RV-UNMAPPED", "MMIO-UNMAPPED"), caught.value
            assert f"{address:#010x}" in str(caught.value)
