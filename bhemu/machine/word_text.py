"""What the operands of a Tensix word stand for, in one sentence: tables, fields, GPRs by name.

What the values of an operand mean stands beside its bit field (operand.py); here is what needs more
than that. Names of GPRs: tt-llk (p_gpr_*).
"""

from collections.abc import Callable, Iterator

from bhemu.devices.bus.naming import config_fields_at, thread_fields_at
from bhemu.tensix.insn import Instruction, decode
from bhemu.tensix.tables import BLOCKS, CONDITIONS, GPR, GPR_ADDRESS, GPR_OR_NUMBER, SEMAPHORES
from bhemu.tensix.units.sync import SEMWAIT

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


def gpr_name(thread: int | None, index: int) -> str:
    """ "GPR 12 (OUTPUT_ADDR)"; without a thread the number alone."""
    name = GPRS[thread].get(index) if thread is not None else None
    return f"GPR {index}" + (f" ({name})" if name else "")


def _fields(names: list[str], otherwise: str) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if names[3:] else "") or otherwise


def _config(word: int, mask: int = 0xFFFFFFFF) -> str:
    return f"Config word {word} ({_fields(config_fields_at(word, mask), 'no named field')})"


def _stallwait(v: dict[str, int], thread: int | None) -> str:
    return f"holds {BLOCKS.text(v['stall_res'])} until {CONDITIONS.text(v['wait_res'])}"


def _semwait(v: dict[str, int], thread: int | None) -> str:
    until = SEMWAIT.wait_sem_cond.operand
    assert until is not None
    what = until.text(v["wait_sem_cond"]) or "nothing"
    return f"holds {BLOCKS.text(v['stall_res'])} until {SEMAPHORES.text(v['sem_sel'])} {what}"


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
    return lambda v, thread: f"{verb} {SEMAPHORES.text(v['sem_sel'])}"


_TOLD: dict[str, Callable[[dict[str, int], int | None], str]] = {
    "STALLWAIT": _stallwait,
    "SEMWAIT": _semwait,
    "STREAMWAIT": lambda v, thread: f"holds {BLOCKS.text(v['stall_res'])}",
    "SETC16": _setc16,
    "WRCFG": _wrcfg,
    "RDCFG": _rdcfg,
    "STREAMWRCFG": lambda v, thread: _config(v["cfg_reg"]),
    "CFGSHIFTMASK": lambda v, thread: _config(v["cfg_reg"]),
    "SETDMAREG": _setdmareg,
    "SEMINIT": lambda v, thread: (
        f"{SEMAPHORES.text(v['sem_sel'])} = {v['init_value']}, maximum {v['max_value']}"
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
    gprs = ", ".join(_gprs(cls, values, thread))
    return "; ".join(filter(None, (gprs, *_chosen(cls, values))))


def _gprs(cls: type[Instruction], values: dict[str, int], thread: int | None) -> Iterator[str]:
    for field in cls.fields:
        constant = field.operand == GPR_OR_NUMBER and values["op_b_is_const"]
        if field.operand in (GPR, GPR_ADDRESS, GPR_OR_NUMBER) and not constant:
            yield f"{field.name} {gpr_name(thread, values[field.name] & 63)}"


def _chosen(cls: type[Instruction], values: dict[str, int]) -> Iterator[str]:
    """What the tables of the fields say, without what a bit that is 0 leaves as it mostly is."""
    for field in cls.fields:
        value, operand = values[field.name], field.operand
        if operand is not None and (value or (field.mode and field.width > 1)):
            text = operand.text(value)
            if text:
                yield f"{field.name}: {text}"
