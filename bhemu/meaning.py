"""What the numbers in a Tensix word stand for: classes, conditions, fields and GPRs by name.

Names of classes, conditions and GPRs: STALLWAIT, Blackhole ISA, and tt-llk (p_stall, p_gpr_*).
"""

from collections.abc import Callable

from bhemu.devices.bus.naming import config_fields_at, thread_fields_at
from bhemu.tensix.insn import decode

BLOCKS = (
    *("TDMA", "SYNC", "PACK", "UNPACK", "XMOV"),
    *("THCON", "MATH", "CFG", "SFPU"),
)
"""STALLWAIT's instruction classes, B0 to B8."""

CONDITIONS = (
    *("THCON idle", "UNPACK0 idle", "UNPACK1 idle", "PACK idle", "MATH idle"),
    *("SRCA_CLR", "SRCB_CLR", "SRCA_VLD", "SRCB_VLD"),
    *("XMOV idle", "TRISC_CFG idle", "SFPU idle", "CFGEXU idle"),
)
"""STALLWAIT's conditions, C0 to C12: what is waited for."""

_COMMON = {0: "ZERO", 1: "DBG_RESERVED", 2: "DBG_MSG", 3: "DBG_CKID"}
GPRS: tuple[dict[int, str], ...] = (
    _COMMON
    | {4: "OPERAND_BASE_ADDR", 5: "OPERAND_OFFSET_ADDR", 12: "TMP0", 13: "TMP1", 14: "TILE_SIZE"}
    | {15: "TILE_OFFSET", 17: "L1_BUFFER_ADDR", 18: "TMP_LO", 19: "TMP_HI", 36: "TILE_SIZE_A"}
    | {8 + i: f"ZERO_{i}" for i in range(4)}
    | {37: "TILE_SIZE_B", 38: "KT_DIM", 40: "FACE_DIM_16x16", 41: "FACE_DIM_8x16"}
    | {42: "FACE_DIM_4x16", 43: "FACE_DIM_2x16", 44: "FACE_DIM_1x16", 52: "UNPACK_STRIDE"},
    _COMMON
    | {48: "DEST_OP0_BASE", 49: "DEST_OP1_BASE", 50: "DEST_REGW_OFFSET", 51: "DEST_REGW_INCR"}
    | {52: "DEST_REGW_OFFSET2", 53: "DEST_REGW_INCR2", 60: "TMP0", 61: "NUM_DRAM_REQS"},
    _COMMON
    | {4: "DEST_OFFSET_LO", 8: "DEST_OFFSET_HI", 12: "OUTPUT_ADDR", 16: "TILE_HEADER"}
    | {20: "TEMP_TILE_OFFSET", 24: "NUM_MSGS_RECEIVED", 25: "ONE_MSG_RECEIVED", 26: "HEADER_ADDR"}
    | {28: "TMP0", 29: "TMP1", 30: "TMP_LO", 31: "TMP_HI", 50: "OUTPUT_ADDR_OFFSET"}
    | {51: "PERF_PACK_NUM_TILES", 52: "EXP0_SEC_SIZE_BFP", 53: "EXP1_SEC_SIZE_BFP8"},
)
"""What tt-llk calls the GPRs of the threads (unpack, math, pack)."""

SEMAPHORES = (
    *("FPU_SFPU", "MATH_PACK", "UNPACK_TO_DEST", "UNPACK_OPERAND_SYNC"),
    *("PACK_DONE", "UNPACK_SYNC", "UNPACK_MATH_DONE", "MATH_DONE"),
)
"""What tt-llk calls the eight semaphores."""


def gpr_name(thread: int | None, index: int) -> str:
    """ "GPR 12 (OUTPUT_ADDR)"; without a thread the number alone."""
    name = GPRS[thread].get(index) if thread is not None else None
    return f"GPR {index}" + (f" ({name})" if name else "")


def bits_named(mask: int, names: tuple[str, ...]) -> str:
    """The names of the bits that are set."""
    return ", ".join(name for i, name in enumerate(names) if mask >> i & 1)


def _held(mask: int) -> str:
    if mask == 0x1FF:
        return "everything"
    return bits_named(mask, BLOCKS) or "MATH (the default)"


def _semaphores(mask: int) -> str:
    numbers = [i for i in range(8) if mask >> i & 1]
    return ", ".join(f"semaphore {i} ({SEMAPHORES[i]})" for i in numbers) or "no semaphore"


def _fields(names: list[str], otherwise: str) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if names[3:] else "") or otherwise


def _config(word: int, mask: int = 0xFFFFFFFF) -> str:
    return f"Config word {word} ({_fields(config_fields_at(word, mask), 'no named field')})"


def _stallwait(v: dict[str, int], thread: int | None) -> str:
    wanted = bits_named(v["wait_res"], CONDITIONS) or "THCON, UNPACK0, UNPACK1, PACK idle (default)"
    return f"holds {_held(v['stall_res'])} until {wanted}"


def _semwait(v: dict[str, int], thread: int | None) -> str:
    what = {1: "is above 0", 2: "is below its maximum", 3: "is above 0 and below its maximum"}
    until = what.get(v["wait_sem_cond"], "nothing")
    return f"holds {_held(v['stall_res'])} until {_semaphores(v['sem_sel'])} {until}"


def _setc16(v: dict[str, int], thread: int | None) -> str:
    fields = _fields(thread_fields_at(v["setc16_reg"]), "no named field")
    return f"ThreadConfig word {v['setc16_reg']} ({fields}) = {v['setc16_value']:#x}"


def _rmwcib(byte: int) -> Callable[[dict[str, int], int | None], str]:
    def told(v: dict[str, int], thread: int | None) -> str:
        place = _config(v["cfg_reg_addr"], v["mask"] << 8 * byte)
        return f"{place}, byte {byte}: bits {v['mask']:#04x} = {v['data'] & v['mask']:#04x}"

    return told


def _wrcfg(v: dict[str, int], thread: int | None) -> str:
    words = " and the next 3" if v["wr128b"] else ""
    return f"{_config(v['cfg_reg'])}{words} = {gpr_name(thread, v['gpr_address'])}"


def _rdcfg(v: dict[str, int], thread: int | None) -> str:
    return f"{gpr_name(thread, v['gpr_address'])} = {_config(v['cfg_reg'])}"


def _setdmareg(v: dict[str, int], thread: int | None) -> str:
    index, half = divmod(v["reg_index_16b"], 2)
    which = f"{gpr_name(thread, index)} {'high' if half else 'low'} half"
    if v["set_signals_mode"]:
        return f"{which} = packer state"
    return f"{which} = {v['payload_sig_sel'] | v['payload_sig_sel_size'] << 14:#x}"


def _semaphore(verb: str) -> Callable[[dict[str, int], int | None], str]:
    return lambda v, thread: f"{verb} {_semaphores(v['sem_sel'])}"


_TOLD: dict[str, Callable[[dict[str, int], int | None], str]] = {
    "STALLWAIT": _stallwait,
    "SEMWAIT": _semwait,
    "STREAMWAIT": lambda v, thread: f"holds {_held(v['stall_res'])}",
    "SETC16": _setc16,
    "WRCFG": _wrcfg,
    "RDCFG": _rdcfg,
    "STREAMWRCFG": lambda v, thread: _config(v["cfg_reg"]),
    "CFGSHIFTMASK": lambda v, thread: _config(v["cfg_reg"]),
    "SETDMAREG": _setdmareg,
    "SEMINIT": lambda v, thread: (
        f"{_semaphores(v['sem_sel'])} = {v['init_value']}, maximum {v['max_value']}"
    ),
    "SEMPOST": _semaphore("posts"),
    "SEMGET": _semaphore("takes"),
    **{f"RMWCIB{byte}": _rmwcib(byte) for byte in range(4)},
}


def meaning(word: int, thread: int | None = None) -> str:
    """What the operands of a word stand for; "" where their numbers say all."""
    cls = decode(word)
    if cls is None:
        return ""
    values = cls.operands(word)
    told = _TOLD.get(cls.name)
    if told is not None:
        return told(values, thread)
    gprs = {n: v for n, v in values.items() if n.endswith("reg_index") and cls.unit == "scalar"}
    return ", ".join(f"{name} {gpr_name(thread, v & 63)}" for name, v in gprs.items())
