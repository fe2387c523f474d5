"""Tensix words as a user reads them: what their operands stand for, and words executed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bhemu.devices.bus.naming import config_fields_at, device_name, thread_fields_at
from bhemu.errors import Call, source_text
from bhemu.memmap import CORE_NAMES
from bhemu.program.dwarf import Inlined
from bhemu.tensix.frontend import FROM_MOP, FROM_PUSH, FROM_REPLAY
from bhemu.tensix.insn import (
    BLOCKS,
    CONDITIONS,
    GPR,
    GPR_ADDRESS,
    GPR_OR_NUMBER,
    SEMAPHORES,
    Instruction,
    decode,
    disassemble,
)
from bhemu.tensix.observe import FIRST_CORE
from bhemu.tensix.units.sync import SEMWAIT

if TYPE_CHECKING:
    from bhemu.machine.core import Source
    from bhemu.machine.tile import Tile

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


_TEXT_WIDTH = 72
Entry = tuple[int, int, int, int, int]  # of the trace ring, and the clock behind it


class _Traced:
    """Something executed, which shows as one line, and the place in the code that did it."""

    function: str | None
    file: str | None
    line: int | None
    inlined_function: str | None
    inlined: tuple[Call, ...]

    @property
    def place(self) -> str:
        """For example "main+0x4 math.c:22", "" where unknown."""
        source = source_text(self.file, self.line, self.inlined_function, self.inlined)
        return " ".join(part for part in (self.function or "", source) if part)

    def as_text(self, bits: bool = False) -> str:
        """One line of text."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.as_text()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {' '.join(self.as_text().split())}>"


@dataclass(frozen=True, repr=False)
class TracedWord(_Traced):
    """One executed word: its number in the run, thread 0-2, pc that pushed it, and its origin.

    `origin` is "push", "mop" or "replay" (then `slot` is the slot of the replay buffer); for a
    recorded word `pc` is where the recorded one came from. `function`, `file` and `line` belong to
    `pc` and are None where no ELF knows them. Where the compiler has inlined, `inlined` holds the
    calls that led to that source line, which is in `inlined_function`. `refused` is the rule that
    refused the word: it stands at its gate, not executed. `clock` is the clock behind it. `meaning`
    says what the operands stand for, with addresses, rows and formats, and `set_by` who set the
    formats and addresses; only `bhemu trace` looks at that.
    """

    number: int
    thread: int
    word: int
    pc: int
    origin: str
    slot: int | None
    function: str | None
    file: str | None
    line: int | None
    inlined_function: str | None = None
    inlined: tuple[Call, ...] = ()
    refused: str | None = None
    clock: int | None = None
    meaning: str = ""
    set_by: str = ""

    @property
    def text(self) -> str:
        """Mnemonic and non-zero fields."""
        return disassemble(self.word)

    def as_text(self, bits: bool = False) -> str:
        """One line of text; with `bits` the word itself as well."""
        origin = {"push": "", "mop": "MOP"}.get(self.origin, f"REPLAY {self.slot}")
        shown = f"{self.word:08x}  " if bits else ""
        text = f"{self.number:>7}  T{self.thread}  0x{self.pc:08X}  {origin:<9}  {shown}{self.text}"
        text += f"  refused: [{self.refused}]" if self.refused else ""
        text = f"{text:<{_TEXT_WIDTH + len(shown)}}  {self.place}" if self.place else text
        told = "; ".join(part for part in (self.meaning, self.set_by) if part)
        return f"{text}  ; {told}" if told else text

    def as_dict(self) -> dict[str, object]:
        """JSON-ready values; what is unknown is left out."""
        cls = decode(self.word)
        known = {**vars(self), "mnemonic": None if cls is None else cls.name, "text": self.text}
        known["meaning"], known["set_by"] = self.meaning or None, self.set_by or None
        known["inlined"] = [call._asdict() for call in self.inlined] or None
        return {name: value for name, value in known.items() if value is not None}


@dataclass(frozen=True, repr=False)
class TracedStore(_Traced):
    """A store of a core to a device: value, address, what stands there, and where from."""

    core: str
    pc: int
    address: int
    value: int
    name: str
    function: str | None
    file: str | None
    line: int | None
    inlined_function: str | None = None
    inlined: tuple[Call, ...] = ()
    clock: int | None = None

    def as_text(self, bits: bool = False) -> str:
        """One line of text, in the columns of a word."""
        what = f"[0x{self.address:08X}] = {self.value:#x}"
        text = f"{self.core:>7}  st  0x{self.pc:08X}  {'store':<9}  {what}"
        text = f"{text:<{_TEXT_WIDTH}}  {self.place}" if self.place else text
        return f"{text}  ; {self.name}"

    def as_dict(self) -> dict[str, object]:
        """JSON-ready values; what is unknown is left out."""
        known: dict[str, object] = {**vars(self), "origin": "store"}
        known["inlined"] = [call._asdict() for call in self.inlined] or None
        return {name: value for name, value in known.items() if value is not None}


class Places:
    """Function, source line and inlined calls of a pc, from the ELFs of all cores."""

    def __init__(self, tile: Tile) -> None:
        self._cores = tuple(tile.core.values())
        self._known: dict[int, tuple[Source, Inlined]] = {}

    def __call__(self, pc: int) -> Source:
        """(function+offset, file, line)."""
        return self._at(pc)[0]

    def _at(self, pc: int) -> tuple[Source, Inlined]:
        if pc not in self._known:
            core = next((core for core in self._cores if core.locate(pc)[0]), None)
            nowhere: Source = (None, None, None)
            found = (nowhere, Inlined(None, ()))
            self._known[pc] = found if core is None else (core.locate(pc), core.inlined(pc))
        return self._known[pc]

    def word(self, number: int, entry: Entry, refused: str | None = None) -> TracedWord:
        """The word that stands `number`-th in the run, from its entry in the trace ring."""
        thread, bits, pc, origin, clock = entry
        kind = {FROM_PUSH: "push", FROM_MOP: "mop"}.get(origin, "replay")
        slot = origin - FROM_REPLAY if kind == "replay" else None
        source, (function, calls) = self._at(pc)
        function = function if calls else None
        return TracedWord(
            number,
            thread,
            bits,
            pc,
            kind,
            slot,
            *source,
            function,
            calls,
            refused=refused,
            clock=clock,
        )

    def store(self, entry: Entry) -> TracedStore:
        """The store of a core behind an entry of the trace ring (tensix/observe.py)."""
        core, value, pc, address, clock = entry[0] - FIRST_CORE, *entry[1:]
        source, (function, calls) = self._at(pc)
        name = device_name(address, core)
        function = function if calls else None
        place = *source, function, calls, clock
        return TracedStore(CORE_NAMES[core], pc, address, value, name, *place)
