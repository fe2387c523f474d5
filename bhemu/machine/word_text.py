"""Tensix words as a user reads them: what their operands stand for, and words executed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from bhemu.devices.bus.address_map import config_fields_at, device_name, thread_fields_at
from bhemu.errors import Call, source_text
from bhemu.jit.record import plain
from bhemu.machine import plugin
from bhemu.machine.sentences import RULES
from bhemu.memmap import CORE_NAMES, L1_SIZE
from bhemu.tensix import config, config_fields, formats, insn
from bhemu.tensix.frontend import FROM_MOP, FROM_PUSH, FROM_REPLAY
from bhemu.tensix.observe import FIRST_CORE
from bhemu.tensix.state import State
from bhemu.tensix.units.pack import addresses, modes
from bhemu.tensix.units.pack.modes import PackWord
from bhemu.tensix.units.sync import SEMWAIT
from bhemu.tensix.units.unpack import addresses as input_address
from bhemu.tensix.units.unpack.modes import UnpackWord, mode_of_word

if TYPE_CHECKING:
    from bhemu.machine.core import Source
    from bhemu.machine.tile import Tile

_GPRS = (
    (Path(__file__).parents[1] / "data" / "gprs.txt").read_text(encoding="utf-8").splitlines()[1:]
)
GPRS = tuple({int(n): name for n, name in re.findall(r"(\d+)=(\w+)", row)} for row in _GPRS)
"""What tt-llk calls the GPRs of the threads (unpack, math, pack)."""


def gpr_name(thread: int | None, index: int) -> str:
    """ "GPR 12 (OUTPUT_ADDR)"; without a thread the number alone."""
    name = GPRS[thread].get(index) if thread is not None else None
    return f"GPR {index}" + (f" ({name})" if name else "")


def _fields(names: list[str], default: str) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if names[3:] else "") or default


def _config(word: int, mask: int = 0xFFFFFFFF) -> str:
    return f"Config word {word} ({_fields(config_fields_at(word, mask), 'no named field')})"


def _semwait(v: dict[str, int], thread: int | None) -> str:
    until = SEMWAIT.wait_sem_cond.operand
    assert until is not None
    what = until.text(v["wait_sem_cond"]) or "nothing"
    semaphore = insn.SEMAPHORES.text(v["sem_sel"])
    return f"holds {insn.BLOCKS.text(v['stall_res'])} until {semaphore} {what}"


def _setc16(v: dict[str, int], thread: int | None) -> str:
    fields = _fields(thread_fields_at(v["setc16_reg"]), "no named field")
    return f"ThreadConfig word {v['setc16_reg']} ({fields}) = {v['setc16_value']:#x}"


def _rmwcib(byte: int) -> Callable[[dict[str, int], int | None], str]:
    def field_text(v: dict[str, int], thread: int | None) -> str:
        place = _config(v["cfg_reg_addr"], v["mask"] << 8 * byte)
        return f"{place}, byte {byte}: bits {v['mask']:#04x} = {v['data'] & v['mask']:#04x}"

    return field_text


def _wrcfg(v: dict[str, int], thread: int | None) -> str:
    words = " and the next 3" if v["wr128b"] else ""
    return f"{_config(v['cfg_reg'])}{words} = {gpr_name(thread, v['gpr_address'])}"


def _setdmareg(v: dict[str, int], thread: int | None) -> str:
    index, half = divmod(v["reg_index_16b"], 2)
    which = f"{gpr_name(thread, index)} {'high' if half else 'low'} half"
    if v["set_signals_mode"]:
        return f"{which} = packer state"
    return f"{which} = {v['payload_sig_sel'] | v['payload_sig_sel_size'] << 14:#x}"


def _semaphore(verb: str) -> Callable[[dict[str, int], int | None], str]:
    return lambda v, thread: f"{verb} {insn.SEMAPHORES.text(v['sem_sel'])}"


_TOLD: dict[str, Callable[[dict[str, int], int | None], str]] = {
    "STALLWAIT": lambda v, thread: (
        f"holds {insn.BLOCKS.text(v['stall_res'])} until {insn.CONDITIONS.text(v['wait_res'])}"
    ),
    "SEMWAIT": _semwait,
    "STREAMWAIT": lambda v, thread: f"holds {insn.BLOCKS.text(v['stall_res'])}",
    "SETC16": _setc16,
    "WRCFG": _wrcfg,
    "RDCFG": lambda v, thread: f"{gpr_name(thread, v['gpr_address'])} = {_config(v['cfg_reg'])}",
    "STREAMWRCFG": lambda v, thread: _config(v["cfg_reg"]),
    "CFGSHIFTMASK": lambda v, thread: _config(v["cfg_reg"]),
    "SETDMAREG": _setdmareg,
    "SEMINIT": lambda v, thread: (
        f"{insn.SEMAPHORES.text(v['sem_sel'])} = {v['init_value']}, maximum {v['max_value']}"
    ),
    "SEMPOST": _semaphore("posts"),
    "SEMGET": _semaphore("takes"),
    **{f"RMWCIB{byte}": _rmwcib(byte) for byte in range(4)},
}


def meaning(word: int, thread: int | None = None) -> str:
    """What the operands of a word stand for; "" where their numbers say all."""
    cls = insn.decode(word)
    if cls is None:
        return ""
    values = cls.operands(word)
    told = _TOLD.get(cls.name)
    if told is not None:
        return told(values, thread)
    gprs = ", ".join(_gprs(cls, values, thread))
    return "; ".join(filter(None, (gprs, *_chosen(cls, values))))


def _gprs(cls: type[insn.Instruction], values: dict[str, int], thread: int | None) -> Iterator[str]:
    for field in cls.fields:
        constant = field.operand == insn.GPR_OR_NUMBER and values["op_b_is_const"]
        if field.operand in (insn.GPR, insn.GPR_ADDRESS, insn.GPR_OR_NUMBER) and not constant:
            yield f"{field.name} {gpr_name(thread, values[field.name] & 63)}"


def _chosen(cls: type[insn.Instruction], values: dict[str, int]) -> Iterator[str]:
    """What the tables of the fields say, without what a bit that is 0 leaves as it mostly is."""
    for field in cls.fields:
        value, operand = values[field.name], field.operand
        if operand is not None and (value or (field.mode and field.width > 1)):
            text = operand.text(value)
            if text:
                yield f"{field.name}: {text}"


_TEXT_WIDTH = 72
Entry = tuple[int, int, int, int, int]  # of the trace ring, and the clock after it
# Function and offset, file, line; where calls are inlined the function of that line; the calls
Place = tuple[str | None, str | None, int | None, str | None, tuple[Call, ...]]


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

    def _known(self, **more: object) -> dict[str, object]:
        known = {**vars(self), **more}
        known["inlined"] = [call._asdict() for call in self.inlined] or None
        return {name: value for name, value in known.items() if value is not None}

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {' '.join(self.as_text().split())}>"


@dataclass(frozen=True, repr=False)
class TracedWord(_Traced):
    """One executed word: its number in the run, thread 0-2, pc that pushed it, and its origin.

    `origin` is "push", "mop" or "replay" (then `slot` is the slot of the replay buffer); for a
    recorded word `pc` is where the recorded one came from. `function`, `file` and `line` belong to
    `pc` and are None where no ELF knows them. Where the compiler has inlined, `inlined` holds the
    calls that led to that source line, which is in `inlined_function`. `refused` is the rule that
    refused the word: it stands at its gate, not executed. `clock` is the clock after it. `meaning`
    says what the operands stand for, with addresses, rows and formats, and `set_by` what wrote the
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
        return insn.disassemble(self.word)

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
        cls = insn.decode(self.word)
        told = {"meaning": self.meaning or None, "set_by": self.set_by or None}
        return self._known(mnemonic=cls and cls.name, text=self.text, **told)


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
        return self._known(origin="store")


class Places:
    """What executes at a pc, with its source line and inlined calls, from the ELFs of all cores."""

    def __init__(self, tile: Tile) -> None:
        self._cores = tuple(tile.core.values())
        self._known: dict[int, Place] = {}

    def _at(self, pc: int) -> Place:
        if pc not in self._known:
            core = next((core for core in self._cores if core.locate(pc)[0]), None)
            source: Source = (None, None, None) if core is None else core.locate(pc)
            function, calls = (None, ()) if core is None else core.inlined(pc)
            self._known[pc] = (*source, function if calls else None, calls)
        return self._known[pc]

    def word(self, number: int, entry: Entry, refused: str | None = None) -> TracedWord:
        """The word that stands `number`-th in the run, from its entry in the trace ring."""
        thread, bits, pc, origin, clock = entry
        kind = {FROM_PUSH: "push", FROM_MOP: "mop"}.get(origin, "replay")
        slot = origin - FROM_REPLAY if kind == "replay" else None
        return TracedWord(number, thread, bits, pc, kind, slot, *self._at(pc), refused, clock)

    def store(self, entry: Entry) -> TracedStore:
        """The store of a core that an entry of the trace ring stands for (tensix/observe.py)."""
        core, value, pc, address, clock = entry[0] - FIRST_CORE, *entry[1:]
        name = device_name(address, core)
        return TracedStore(CORE_NAMES[core], pc, address, value, name, *self._at(pc), clock)


# What UNPACR and PACR really do in the state of a tile: addresses, formats, rows, banks, ReLU.
#
# The same functions compute it that execute the word (tensix/units), as plain Python.

T = TypeVar("T")
_RELU = {1: "ReLU: negative to 0", 2: "ReLU: below the threshold to 0", 3: "ReLU: capped"}

_NO_THREAD = "has counters of a thread that there is not"


def _format(code: int) -> str:
    return formats.NAMES.get(code, f"format {code}")


def _span(first: int, end: int) -> str:
    return f"L1 {first:#x}..{end:#x}"


def effective(s: State, thread: int, word: int) -> str:
    """What a word that is about to execute would do, in words; "" where its numbers say all."""
    cls = insn.decode(word)
    if cls is None:
        return ""
    shown = {"unpack": _unpacr, "pack": _pacr}.get(cls.formats)
    return meaning(word, thread) if shown is None else _tried(shown, s, thread, word)


def transfer_of(s: State, thread: int, word: int) -> Unpack | Pack | None:
    """What an UNPACR or PACR would do; None for other words and for one that moves nothing."""
    cls = insn.decode(word)
    found = {"unpack": unpack_of, "pack": pack_of}.get("" if cls is None else cls.formats)
    return None if found is None else _tried(found, s, thread, word)


def _tried(look: Callable[[State, int, int], T], s: State, thread: int, word: int) -> T:
    """What `look` says of a word; the state stays as it is."""
    kept = s.detail.copy()
    try:
        with np.errstate(over="ignore"):
            return look(s, thread, word)
    finally:
        s.detail[:] = kept


class Unpack(NamedTuple):
    """What an UNPACR would do: from L1 `first` to `end`, to rows `low` to `high`."""

    unpacker: int
    mode: Any
    first: int
    end: int
    datums: int
    low: int
    high: int
    refused: int  # why it has no target, 0 = it has one

    @property
    def l1_format(self) -> str:
        """The format of the datums in L1."""
        return _format(int(self.mode.fmt))


class Pack(NamedTuple):
    """What a PACR would do: from these Dst rows to L1 `first` to `end`."""

    mode: Any
    rows: list[int]
    first: int
    end: int
    datums: int
    exponent: int

    @property
    def l1_format(self) -> str:
        """The format of the datums in L1."""
        return _format(int(self.mode.out))


def unpack_of(s: State, t: int, word: int) -> Unpack | None:
    """What an UNPACR would do; None for one that unpacks nothing."""
    f = UnpackWord.decoded(word)
    if f.cfg_context_cnt_inc or f.search_cache_flush:
        return None
    u = f.unpack_block_selection
    m = plain(mode_of_word)(s, t, f)
    if int(m.counters) >= len(s.adc):
        return None  # refused: there is no such thread
    first, end, count, _ = map(int, plain(plugin.TRANSFERS["unpack"])(s, t, f))
    cell = int(plain(input_address.first_cell)(s, t, m))
    refused = min(cell, 0)
    if not refused:
        cell -= 0 if m.unpacker else input_address.FIRST_CELL
        cell += int(plain(input_address.set_cells)(s, t, m))
    high = (cell + max(count, 1) - 1) >> 4
    return Unpack(u, m, first, end, count, cell >> 4, high, refused)


def pack_of(s: State, t: int, word: int) -> Pack | None:
    """What a PACR would do; None for one that packs nothing."""
    f = PackWord.decoded(word)
    if f.flush:
        return None
    m = plain(modes.mode_of)(s, t)
    a = f.addr_cnt_context if f.ovrd_thread_id else t
    if a >= len(s.adc):
        return None  # refused, as for UNPACR
    rows = plain(addresses.rows_of)(s, a, m, f.read_intf_sel, f.dst_access_mode)
    numbers = [int(plain(addresses.row_of)(rows, k)) for k in range(rows.number)]
    first, end, datums, _ = map(int, plain(plugin.TRANSFERS["pack"])(s, t, f))
    return Pack(m, numbers, first, end, datums, int(plain(addresses.place_of)(s, a, m).exponent))


def _unpacr(s: State, t: int, word: int) -> str:
    f = UnpackWord.decoded(word)
    u = f.unpack_block_selection
    if f.cfg_context_cnt_inc:
        return f"unpacker {u}: counts its context on, unpacks nothing"
    if f.search_cache_flush:
        return f"unpacker {u}: flushes its cache, unpacks nothing"
    does = unpack_of(s, t, word)
    if does is None:
        return f"unpacker {u} {_NO_THREAD}"
    m = does.mode
    parts = [f"unpacker {u}" + (f" context {int(m.context)}" if m.multi else "")]
    if f.zero_write2:
        parts.append("writes zeros")
    else:
        span = _span(does.first, does.end)
        parts.append(f"reads {span}, {does.datums} datums of {_format(int(m.fmt))}")
    parts.append(f"to {_target(s, does)} as {_format(int(m.out))}")
    parts += [name for name, on in (("tilizes", m.tileize), ("transposes", m.haloize)) if on]
    if f.set_dat_valid:
        parts.append("hands the bank over")
    return f"{', '.join(parts)} (Config bank {int(m.bank)})"


def _target(s: State, does: Unpack) -> str:
    if does.refused < 0:
        rule = RULES.get(does.refused)
        return f"nowhere: [{rule.rule}]" if rule is not None else "nowhere"
    if does.mode.to_dst:
        return f"Dst rows {does.low}-{does.high}"
    bank = int(s.unpack_bank[does.unpacker]) & 1
    return f"Src{'AB'[does.unpacker]} bank {bank} rows {does.low}-{does.high}"


def _pacr(s: State, t: int, word: int) -> str:
    f = PackWord.decoded(word)
    if f.flush:
        return "ends the tile, packs nothing"
    does = pack_of(s, t, word)
    if does is None:
        return _NO_THREAD
    m = does.mode
    source = "zeros" if f.zero_write else f"Dst rows {_listed(does.rows)} as {_format(int(m.fmt))}"
    wide = " (32 bits)" if m.wide and not f.zero_write else ""
    parts = [
        f"packs {source}{wide}",
        f"to {_span(does.first, does.end)}",
        f"{does.datums} datums of {_format(int(m.out))}",
    ]
    if plain(formats.is_bfp)(m.out):
        parts.append(f"exponents at {does.exponent:#x}")
    if m.relu:
        parts.append(_RELU.get(int(m.relu), f"ReLU mode {int(m.relu)}"))
    parts += ["adds to what is there"] if m.accumulate else []
    parts += ["ends the tile"] if f.last else []
    return f"{', '.join(parts)} (Config bank {int(m.bank)})"


def _listed(rows: list[int]) -> str:
    if len(rows) > 1 and rows == list(range(rows[0], rows[0] + len(rows))):
        return f"{rows[0]}-{rows[-1]}"
    return ", ".join(map(str, rows))


def writer_of(tile: Tile, code: int) -> str:
    """The thread or core that wrote a Config word, and from where; "" when none in the run did."""
    number, pc = code >> config.BY_SHIFT, code & (1 << config.BY_SHIFT) - 1
    if not number:
        return ""
    core = number - config.FIRST_CORE_BY
    name = f"T{number - 1}" if core < 0 else (*CORE_NAMES, "the host")[core]
    if core >= len(CORE_NAMES):
        return name
    owners = [*range(len(CORE_NAMES))] if core < 0 else [core]
    places = (
        (tile.locate(c, pc), tile.core[CORE_NAMES[c]].inlined(pc)) for c in owners if pc < L1_SIZE
    )
    (function, file, line), (inner, calls) = next(
        (place for place in places if place[0][0]), ((None, None, None), (None, ()))
    )
    source = source_text(file, line, inner if calls else None, calls)
    return " ".join((name, function or hex(pc), source)).rstrip()


def set_by(tile: Tile, thread: int, word: int) -> str:
    """The writer of the formats and addresses that an UNPACR or PACR would use; "" for none."""
    s = tile.state
    bank = int(plain(config.bank)(s, thread))
    by: dict[str, list[str]] = {}
    # The Config words that the formats and addresses of an UNPACR or PACR come from, by name
    cls = insn.decode(word)
    names: tuple[str, ...] = ()
    kind = "" if cls is None else cls.formats
    if kind == "pack":
        names = (
            *("THCON_SEC0_REG1_In_data_format", "THCON_SEC0_REG1_Out_data_format"),
            *("THCON_SEC0_REG1_L1_Dest_addr", "STACC_RELU_ApplyRelu"),
        )
    elif kind == "unpack":
        u = UnpackWord.unpack_block_selection.get(word)
        names = (
            *(f"THCON_SEC{u}_REG0_TileDescriptor", f"THCON_SEC{u}_REG2_Out_data_format"),
            f"THCON_SEC{u}_REG3_Base_address",
        )
    fields = vars(config_fields)
    for name, index in {name: fields[name].word for name in names if name in fields}.items():
        writer = writer_of(tile, int(s.cfg_by[bank, index]))
        if writer:
            by.setdefault(writer, []).append(name.partition("_REG")[2].partition("_")[2] or name)
    return "; ".join(f"{', '.join(names)} by {writer}" for writer, names in by.items())


def describe(tile: Tile, thread: int, word: int) -> str:
    """What a word at the gate would do, and the writers of what it would use."""
    parts = effective(tile.state, thread, word), set_by(tile, thread, word)
    return "; ".join(part for part in parts if part)
