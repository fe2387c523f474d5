"""The map of the tile's addresses, made of what each device declares; what an address is called."""

import importlib
import itertools
import pkgutil
from typing import NamedTuple

from bhemu import devices
from bhemu import memmap as mm
from bhemu.devices import ethernet, niu
from bhemu.devices.bus.window import Register, Window
from bhemu.devices.niu import NAMES as COUNTERS
from bhemu.tensix import config_fields, mmio, thread_fields
from bhemu.tensix.config import CONFIG_WORDS, THREAD_WORDS


def _declared() -> dict[Window, str]:
    """Every window of this package's modules by address, and the module that declares it."""
    found: dict[Window, str] = {}
    for about in pkgutil.iter_modules(devices.__path__, f"{devices.__name__}."):
        if not about.ispkg:
            for value in vars(importlib.import_module(about.name)).values():
                if isinstance(value, Window):
                    found.setdefault(value, about.name)
    return dict(sorted(found.items(), key=lambda item: item[0].low))


MODULE_OF = _declared()
_OWN = tuple(window for window in ethernet.WINDOWS if window not in (niu.NOC0, niu.NOC1))
WINDOWS = tuple(window for window in MODULE_OF if window not in _OWN)
"""Those of a Tensix tile."""
ETHERNET = ethernet.WINDOWS
"""Those of an Ethernet tile."""
for one in (WINDOWS, ETHERNET):
    assert all(a.high <= b.low for a, b in itertools.pairwise(one)), "windows overlap"


class Block(NamedTuple):
    """A range of addresses that something answers."""

    low: int
    high: int
    name: str


BLOCKS = (
    Block(0, mm.L1_SIZE, "L1"),
    Block(mm.LOCAL_BASE, mm.LOCAL_BASE + max(mm.LOCAL_SIZES), "local data RAM"),
    *(Block(window.low, window.high, window.name) for window in WINDOWS),
)

NAMED: dict[int, Register] = {
    window.low + register.offset: register for window in WINDOWS for register in window.registers
}
"""Registers that have a declaration of their own, by address, in the order of addresses."""

INERT = {address: register for address, register in NAMED.items() if register.inert}

REGISTERS = {register.name: address for address, register in NAMED.items() if register.modelled}
"""Address of each named register; those of the debug block also without RISCV_DEBUG_REG_."""
REGISTERS |= {name.removeprefix("RISCV_DEBUG_REG_"): at for name, at in REGISTERS.items()}


def find(address: int, windows: tuple[Window, ...] = WINDOWS) -> Window | None:
    """The window of a tile that holds an address."""
    return next((window for window in windows if window.low <= address < window.high), None)


def block_name(address: int) -> str:
    """Name of the block that holds `address`, with its part if that has no model; or "unmapped"."""
    window = find(address) or find(address, ETHERNET)
    if window is not None:
        register = window.register(address - window.low)
        part = [register.name] if register is not None and not register.modelled else []
        return ": ".join([window.name, *part])
    return next((name for low, high, name in BLOCKS if low <= address < high), "unmapped")


# What a device address is called: a register, a Config field, a GPR, a counter of a stream.


_STREAM_NAMES = """REMOTE_SRC REMOTE_SRC_PHASE REMOTE_DEST REMOTE_DEST_BUF_START
    REMOTE_DEST_BUF_SIZE REMOTE_DEST_WR_PTR BUF_START BUF_SIZE RD_PTR WR_PTR CURR_PHASE_BASE
    CURR_PHASE PHASE_AUTO_CFG_PTR_BASE PHASE_AUTO_CFG_PTR PHASE_AUTO_CFG_HEADER NUM_MSGS_RECEIVED
    REMOTE_DEST_BUF_SPACE_AVAILABLE_UPDATE REMOTE_DEST_BUF_SPACE_AVAILABLE"""
STREAM_REGISTERS: dict[int, str] = {getattr(mmio, n): n for n in _STREAM_NAMES.split()}
"""Registers of an overlay stream by number."""

STREAM_ROLES = {
    mmio.REMOTE_DEST_BUF_START: "tiles acked",
    mmio.REMOTE_DEST_BUF_SIZE: "tiles received",
}
"""What registers of a stream count for kernels."""

FIRST_BUFFER_STREAMS = (0, 8)
"""Which stream counts circular buffer 0: in builds of tt-metal now, and in older ones."""

_ADDRESSES = {
    f"{name}_{part}": getattr(mm, f"{name}_LO") + 4 * i
    for name in ("NOC_TARG_ADDR", "NOC_RET_ADDR")
    for i, part in enumerate(("LO", "MID", "HI"))
}
_OTHERS = """NOC_PACKET_TAG NOC_CTRL NOC_AT_LEN_BE NOC_AT_DATA NOC_BRCST_EXCLUDE
    NOC_L1_ACC_AT_INSTRN NOC_SEC_CTRL NOC_CMD_CTRL NOC_NODE_ID NOC_ENDPOINT_ID"""
INITIATOR_REGISTERS = {
    **{offset: name for name, offset in _ADDRESSES.items()},
    **{getattr(mm, name): name for name in _OTHERS.split()},
    mm.NOC_AT_LEN_BE + 4: "NOC_AT_LEN_BE_1",
}
"""Registers of a request initiator of a NIU by offset."""

_COMMON = """NOC_CLEAR_OUTSTANDING_REQ_CNT NIU_CFG_0 NOC_ID_LOGICAL DEBUG_COUNTER_RESET
    NIU_TRANS_COUNT_RTZ_CFG NIU_TRANS_COUNT_RTZ_CLR NIU_TRANS_COUNT_RTZ_NUM
    NIU_TRANS_COUNT_RTZ_SOURCE"""
_TABLES = mm.NOC_X_ID_TRANSLATE_TABLE_0
_NIU = {
    **{getattr(mm, name): name for name in _COMMON.split()},
    **{mm.NIU_CFG_0 + 4 + 4 * i: f"ROUTER_CFG_{i}" for i in range(5)},
    **{_TABLES + 4 * i: f"NOC_X_ID_TRANSLATE_TABLE_{i}" for i in range(6)},
    **{_TABLES + 24 + 4 * i: f"NOC_Y_ID_TRANSLATE_TABLE_{i}" for i in range(6)},
}


def niu_register(offset: int) -> str:
    """A register of a NIU by offset, "" for one without a name."""
    initiator, at = divmod(offset, mm.NOC_CMD_BUF_OFFSET)
    if initiator < 4 and at in INITIATOR_REGISTERS:
        return f"initiator {initiator} {INITIATOR_REGISTERS[at]}"
    if mm.NIU_COUNTERS <= offset < mm.NIU_COUNTERS_END:
        return COUNTERS[(offset - mm.NIU_COUNTERS) >> 2]
    return _NIU.get(offset, "")


fields_of = config_fields.fields_of
_CONFIG, _THREAD = fields_of(config_fields), fields_of(thread_fields)


def config_fields_at(word: int, mask: int = 0xFFFFFFFF) -> list[str]:
    """Config fields of a word that have bits in `mask`."""
    return [n for n, f in _CONFIG.items() if f.word == word and f.mask << f.shift & mask]


def thread_fields_at(word: int) -> list[str]:
    """ThreadConfig fields of a word."""
    return [name for name, field in _THREAD.items() if field.word == word]


def _listed(names: list[str]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def config_word(index: int) -> str:
    """A word of the configuration space: bank, index, fields."""
    if index < 3 * CONFIG_WORDS:
        bank, word = divmod(index, CONFIG_WORDS)
        part = "Config of both banks" if bank == 2 else f"Config bank {bank}"
        return f"{part} word {word} {_listed(config_fields_at(word))}".rstrip()
    thread, word = divmod(index - 3 * CONFIG_WORDS, THREAD_WORDS)
    return f"ThreadConfig T{thread} word {word} {_listed(thread_fields_at(word))}".rstrip()


def device_name(address: int, core: int | None = None) -> str:
    """What stands at a device address, as `core` (0-4) sees it; its block where it has no name."""
    register = NAMED.get(address & ~3)
    if register is not None:
        return register.name
    if mm.TENSIX_CFG_BASE <= address < mm.TENSIX_CFG_END:
        return config_word((address - mm.TENSIX_CFG_BASE) >> 2)
    if mm.GPR_BASE <= address < mm.GPR_END:
        offset = address - mm.GPR_BASE
        if core in (None, 0):
            return f"GPR {offset >> 2 & 63} of T{offset >> 8}"
        return f"GPR {offset >> 2} of T{core - 1}"
    if mm.OVERLAY_BASE <= address < mm.OVERLAY_END:
        offset = address - mm.OVERLAY_BASE
        n, i = offset // mm.STREAM_SIZE, offset % mm.STREAM_SIZE >> 2
        name, role = STREAM_REGISTERS.get(i, f"register {i}"), STREAM_ROLES.get(i)
        return f"stream {n} {name}" + (f" ({role})" if role else "")
    for noc, base in enumerate((mm.NOC0_BASE, mm.NOC1_BASE)):
        if base <= address < base + mm.NOC_SIZE:
            name = niu_register(address - base)
            return f"NoC {noc} {name or f'offset {address - base:#x}'}"
    if mm.PC_BUF_BASE <= address < mm.PC_BUF_END:
        offset = address - mm.PC_BUF_BASE
        thread = offset // mm.PC_BUF_OTHERS if core in (None, 0) else (core or 1) - 1
        at = offset % mm.PC_BUF_OTHERS
        if mm.PC_BUF_SEMAPHORES_OFFSET <= at < mm.PC_BUF_SEMAPHORES_END_OFFSET:
            return f"semaphore {(at - mm.PC_BUF_SEMAPHORES_OFFSET) >> 2}"
        named = {
            0: f"PCBuf of T{thread}",
            mm.PC_BUF_TTSYNC_OFFSET: "TTSync",
            mm.PC_BUF_MOP_SYNC_OFFSET: "MOP sync",
        }
        return named.get(at, f"PCBuf +{at:#x}")
    if mm.MOP_CFG_BASE <= address < mm.MOP_CFG_END:
        return f"MOP word {(address - mm.MOP_CFG_BASE) >> 2}"
    if mm.MAILBOX_BASE <= address < mm.MAILBOX_END:
        n = (address - mm.MAILBOX_BASE) >> 12
        return f"mailbox {mm.CORE_NAMES[n]}" if n < 4 else "mailbox"
    return block_name(address)
