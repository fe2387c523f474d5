"""The rows of each named state: one function `_NAME` per name of `views.NAMED`."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import ModuleType
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from bhemu.devices.bus import address_map
from bhemu.errors import InputError
from bhemu.machine.core import STATES
from bhemu.machine.error_text import origin
from bhemu.machine.saved import TileState
from bhemu.machine.sentences import CONDITIONS
from bhemu.memmap import CORE_NAMES, DEBUG_BASE, LOCAL_BASE, LOCAL_SIZES, NIU_CFG_0
from bhemu.riscv import csr
from bhemu.riscv.assembly import ABI_NAMES
from bhemu.tensix import config_fields, formats, thread_fields
from bhemu.tensix.insn import disassemble
from bhemu.tensix.views import NAMED, Tensix

# Rows of a dump: labelled cells, shown as text or JSON, chosen by range, compared with others.

Value = int | float | str
_MOST_CELLS = 4  # differing cells of a row that are shown one by one


@dataclass(frozen=True)
class Row:
    """One line of a dump: a label that is unique within its name, and cells by name.

    form: format of the cells (as of `format`); names: show the cell names; index: what a range
    selects by (register, row or address), with `span` indices to the row.
    """

    label: str
    cells: Mapping[str, Value]
    form: str = ""
    names: bool = True
    index: int | None = None
    span: int = 1

    @property
    def empty(self) -> bool:
        """Whether every cell is 0 (not -0) or has no text."""
        return not any(value or str(value) == "-0.0" for value in self.cells.values())

    def within(self, low: int, high: int) -> bool:
        """Whether the row holds something of `low` to `high`, both included."""
        return self.index is not None and self.index <= high and low < self.index + self.span

    def cell(self, name: str) -> str:
        """One cell as text."""
        value = self.cells[name]
        return value if isinstance(value, str) else format(value, self.form)

    @property
    def text(self) -> str:
        """`label  name value  name value`; without names `label  value value`."""
        texts = (
            f"{name} {self.cell(name)}" if self.names else self.cell(name)
            for name, value in self.cells.items()
            if value != ""
        )
        return f"{self.label}  {('  ' if self.names else ' ').join(texts)}".rstrip()


def values(numbers: Iterable[int | float], first: int = 0) -> dict[str, Value]:
    """Cells named by their position, counted from `first`."""
    return {str(first + i): n for i, n in enumerate(numbers)}


def differences(ours: Iterable[Row], theirs: Iterable[Row]) -> Iterator[str]:
    """What differs between rows of equal label, ours -> theirs; rows of one side alone too."""
    left, right = ({row.label: row for row in rows} for rows in (ours, theirs))
    for label in [*left, *(label for label in right if label not in left)]:
        if label not in right:
            yield f"- {left[label].text}"
        elif label not in left:
            yield f"+ {right[label].text}"
        else:
            yield from _cells(left[label], right[label])


def _cells(ours: Row, theirs: Row) -> Iterator[str]:
    names = [*ours.cells, *(name for name in theirs.cells if name not in ours.cells)]
    other = [n for n in names if _text(ours, n) != _text(theirs, n)]
    if len(other) > _MOST_CELLS:
        yield f"- {ours.text}"
        yield f"+ {theirs.text}"
        return
    for name in other:
        cell = name if ours.names else f"[{name}]"
        yield f"  {ours.label} {cell}: {_text(ours, name)} -> {_text(theirs, name)}"


def _text(row: Row, name: str) -> str:
    return (row.cell(name).strip() if name in row.cells else "") or "nothing"


# How named state is shown, and the rows that several kinds of state share.


@dataclass(frozen=True)
class View:
    """How to show: format of Dst and LReg; empty rows too; of memory what differs from `other`."""

    fmt: str = ""
    every: bool = False
    other: TileState | None = None


def word_cells(word: int) -> dict[str, Value]:
    """A Tensix word and its assembly; 0 is nothing."""
    return {"word": f"0x{word:08X}", "text": disassemble(word)} if word else {}


def ints(array: Any) -> list[int]:
    """The elements as Python's integers."""
    return [int(v) for v in array]


def eights(label: str, array: Any, form: str = "08x", index: int | None = None) -> Iterator[Row]:
    """A flat array, eight cells to a row."""
    for i in range(0, len(array), 8):
        part = values(ints(array[i : i + 8]), i)
        place = i if index is None else index
        yield Row(f"{label} {i:>2}", part, form, names=False, index=place, span=8)


# The rows of the devices and of memory: one function per name of `views.NAMED`.

_BYTES = 32  # of memory in a row


def _queued(entries: Any, low: Any, high: Any) -> dict[str, Value]:
    held = (int(entries[i % len(entries)]) for i in range(int(low), int(high)))
    return {"queued": " ".join(f"{value:#x}" for value in held)}


def _mailbox(s: TileState, view: View) -> Iterator[Row]:
    """Queued entries by writer and reader."""
    for w in range(4):
        for r in range(4):
            cells = _queued(s.mailbox[w, r], s.mailbox_read[w, r], s.mailbox_write[w, r])
            yield Row(f"{CORE_NAMES[w]} to {CORE_NAMES[r]}", cells, index=w)


def _pcbuf(s: TileState, view: View) -> Iterator[Row]:
    """Queued entries of each TRISC."""
    for t in range(3):
        yield Row(f"T{t}", _queued(s.pcbuf[t], s.pcbuf_read[t], s.pcbuf_write[t]), index=t)


def _debug(s: TileState, view: View) -> Iterator[Row]:
    """Every register by address and, where it has one, name."""
    for i, value in enumerate(ints(s.debug)):
        address = DEBUG_BASE + 4 * i
        register = address_map.NAMED.get(address)
        name = "" if register is None else register.name.removeprefix("RISCV_DEBUG_REG_")
        label = f"0x{address:08X} {name}".rstrip()
        yield Row(label, {"value": value}, "#010x", names=False, index=address, span=4)


def _inert(s: TileState, view: View) -> Iterator[Row]:
    """Every inert register: its value and how often it was accessed."""
    for i, (address, register) in enumerate(address_map.INERT.items()):
        cells: dict[str, Value] = {"value": f"{int(s.inert[i]):#010x}"}
        cells["accesses"] = int(s.inert_count[i])
        yield Row(f"0x{address:08X} {register.name}", cells, index=address, span=4)


def _niu(s: TileState, view: View) -> Iterator[Row]:
    """Registers of both NoCs: those with a name one by one, the others eight to a row."""
    names = address_map.INITIATOR_REGISTERS
    for noc in range(2):
        for i, words in enumerate(s.niu_command[noc]):
            cells = {names[4 * r]: int(word) for r, word in enumerate(words)}
            yield Row(f"NoC {noc} initiator {i}", cells, "#x", index=noc)
        for r, word in enumerate(ints(s.niu_config[noc])):
            name = address_map.niu_register(NIU_CFG_0 + 4 * r) or f"config {r}"
            yield Row(f"NoC {noc} {name}", {"value": word}, "#x", names=False, index=noc)
        yield from eights(f"NoC {noc} counters", s.niu_counter[noc], index=noc)


def _tdma(s: TileState, view: View) -> Iterator[Row]:
    """Parameters of the next command, base address of each core."""
    yield Row("parameters", values(ints(s.tdma_param)), "#x")
    for c in range(4):
        yield Row(f"XMOV_L1_BASE_ADDR of {CORE_NAMES[c]}", {"value": int(s.tdma_base[c])}, "#x")


def _stream(s: TileState, view: View) -> Iterator[Row]:
    """The registers of every stream that bhemu models, by name."""
    for n, registers in enumerate(s.stream):
        for number, name in address_map.STREAM_REGISTERS.items():
            label = f"stream {n:>2} {number:>3} {name}"
            yield Row(label, {"value": int(registers[number])}, "#x", names=False, index=n)


def memory(
    label: str,
    base: int,
    now: npt.NDArray[np.uint8],
    other: npt.NDArray[np.uint8] | None,
    every: bool,
) -> Iterator[Row]:
    """Rows of 32 bytes: those that are not 0, all of them, or those that differ from `other`."""
    lines = now.reshape(-1, _BYTES)
    shown = (
        lines.any(axis=1) | every
        if other is None
        else (lines != other.reshape(-1, _BYTES)).any(axis=1)
    )
    for i in np.flatnonzero(shown):
        address = base + int(i) * _BYTES
        words = lines[i].view("<u4").tolist()
        cells: dict[str, Value] = {f"{address + 4 * j:#x}": word for j, word in enumerate(words)}
        title = f"{label}{address:08x}: "
        yield Row(title, cells, "08x", names=False, index=address, span=_BYTES)


def _local(s: TileState, view: View) -> Iterator[Row]:
    """Core-local memory, each to its size."""
    for c, name in enumerate(CORE_NAMES):
        size = LOCAL_SIZES[c]
        other = None if view.other is None else view.other.local[c, :size]
        yield from memory(f"{name:<7} ", LOCAL_BASE, s.local[c, :size], other, view.every)


_FLOAT = ">11.5g"
_UNPACKERS = ("unpacker 0", "unpacker 1", "packer")
_XYZW = ("X", "Y", "Z", "W")
_COUNTERS = ("SrcA", "SrcB", "Dst", "fidelity")
# What MOP words 0-8 are to template 1 and to template 0 (MOPExpander, Blackhole ISA).
_MOP_WORDS = (
    *("outer count", "inner count | flags", "start | B", "end 0 | A0", "end 1 | A1"),
    *("loop 0 | A2", "loop 1 | A3", "last of all | skip A", "last of a pass | skip B"),
)


def _cores(s: TileState, view: View) -> Iterator[Row]:
    for c, name in enumerate(CORE_NAMES):
        state = STATES[int(s.core_state[c])]
        cells: dict[str, Value] = {"state": state, "pc": f"0x{int(s.pc[c]):08X}"}
        cells["retired"] = int(s.retired[c])
        condition = CONDITIONS.get(int(s.core_wait[c]))
        if state == "blocked" and condition is not None:
            cells["waits for"] = condition.text
        yield Row(f"{name:<7}", cells, index=c)


def _regs(s: TileState, view: View) -> Iterator[Row]:
    for c, name in enumerate(CORE_NAMES):
        for i in range(0, 32, 8):
            cells: dict[str, Value] = dict(
                zip(ABI_NAMES[i : i + 8], ints(s.regs[c, i : i + 8]), strict=True)
            )
            yield Row(f"{name:<7} x{i:<2}", cells, "08x", index=c)


def _csr(s: TileState, view: View) -> Iterator[Row]:
    for c, name in enumerate(CORE_NAMES):
        cells: dict[str, Value] = {csr.NAMES[csr.CFG0]: int(s.cfg0[c])}
        cells |= {csr.NAMES[csr.PMACFG0 + i]: int(s.csr[c, i]) for i in range(6)}
        yield Row(f"{name:<7}", cells, "#x", index=c)
        cells = {csr.NAMES[csr.TT_CFG_SSTATUS0 + i]: int(s.csr[c, 6 + i]) for i in range(8)}
        yield Row(f"{name:<7} stream status", cells, "#x", index=c)
        moved = zip(("mcycle", "minstret"), ints(s.csr_offset[c]), strict=True)
        yield Row(f"{name:<7} added by writes to", dict(moved), "+d", index=c)


def _counters(s: TileState, view: View) -> Iterator[Row]:
    yield Row("scheduler", {"clock": int(s.clock[0]), "rounds": int(s.round[0])})
    yield Row("executed", {f"T{t}": int(s.executed[t]) for t in range(3)})


# Configuration


def _field_rows(module: ModuleType, banks: Any, names: tuple[str, ...]) -> Iterator[Row]:
    """Fields by name in the order of the words, then the bits that no field names."""
    unnamed = np.full(banks.shape[1], 0xFFFFFFFF, np.int64)
    for name, f in address_map.fields_of(module).items():
        unnamed[f.word] &= ~(f.mask << f.shift)
        held = ((int(bank[f.word]) >> f.shift) & f.mask for bank in banks)
        yield Row(name, dict(zip(names, held, strict=True)), "#x", index=f.word)
    for word, mask in enumerate(unnamed):
        held = (int(bank[word]) & int(mask) for bank in banks)
        row = Row(f"word {word}, bits without a name", dict(zip(names, held, strict=True)), "#x")
        if not row.empty:
            yield replace(row, index=word)


# Sync unit and counters


def _rwc(s: TileState, view: View) -> Iterator[Row]:
    for t in range(3):
        cells: dict[str, Value] = dict(zip(_COUNTERS, ints(s.rwc[t]), strict=True))
        cells |= {f"cr {n}": int(s.rwc_cr[t, i]) for i, n in enumerate(_COUNTERS[:3])}
        yield Row(f"T{t}", cells, index=t)


def _adc(s: TileState, view: View) -> Iterator[Row]:
    for t in range(3):
        for u, unit in enumerate(_UNPACKERS):
            for channel in range(2):
                now, back = ints(s.adc[t, u, channel]), ints(s.adc_cr[t, u, channel])
                cells: dict[str, Value] = dict(zip(_XYZW, now, strict=True))
                cells |= {f"cr {n}": back[i] for i, n in enumerate(_XYZW)}
                yield Row(f"T{t} {unit} channel {channel}", cells, index=t)


def _unpack_context(s: TileState, view: View) -> Iterator[Row]:
    for u, now in enumerate(zip(s.unpack_context, s.unpack_row, strict=True)):
        cells: dict[str, Value] = {f"T{t}": f"{now[0][t]}, row {now[1][t]}" for t in range(3)}
        yield Row(_UNPACKERS[u], cells, index=u)


def _packer(s: TileState, view: View) -> Iterator[Row]:
    cells: dict[str, Value] = {
        "open": int(s.pack_open[0]),
        "datums": int(s.pack_datum[0]),
        "row": int(s.pack_row[0]),
        "next datum at": f"0x{int(s.pack_data[0]):X}" if s.pack_data[0] else "",
        "next exponent at": f"0x{int(s.pack_exp[0]):X}" if s.pack_exp[0] else "",
    }
    yield Row("tile", cells)
    yield Row("statistics", {"largest exponent": int(s.pack_exponent[0])})
    yield from eights("exponent histogram", s.pack_histogram, "d")


# Source registers and Dst


def _src(which: int, s: TileState, view: View) -> Iterator[Row]:
    """Rows as numbers of the format recorded with the bank; integers and "raw" as they are."""
    for bank in range(2):
        held, cells, form = int(s.src_fmt[which, bank]), s.src[which, bank], "08x"
        if view.fmt != "raw" and held not in (formats.INT32, formats.UINT16, formats.INT8):
            # 5-bit exponents are kept as they are where 8 bits have room (Src, Blackhole ISA).
            scale = 2.0**112 if (formats.FIVE_BIT >> held) & 1 else 1.0
            plain = cells & np.uint32(0xFFFFE000)  # without the marks of doubt
            cells, form = plain.view(np.float32) * np.float64(scale), _FLOAT
        for row in range(64):
            label = f"bank {bank} row {row:>2}"
            yield Row(label, values(cells[row].tolist()), form, names=False, index=row)


def _src_banks(s: TileState, view: View) -> Iterator[Row]:
    for which in range(2):
        for b in range(2):
            fmt = int(s.src_fmt[which, b])
            owner = "the matrix unit" if s.src_valid[which, b] else "the unpacker"
            cells: dict[str, Value] = {"belongs to": owner, "format": formats.NAMES.get(fmt, fmt)}
            cells["next"] = " and ".join(
                role
                for role, banks in (("unpacked", s.unpack_bank), ("read", s.matrix_bank))
                if banks[which] == b
            )
            doubt = [i for i in range(64) if which == 0 and s.src_doubt[b, i >> 4] >> (i & 15) & 1]
            if doubt:
                cells["may be lost"] = "rows " + ", ".join(str(i) for i in doubt)
            yield Row(f"Src{'AB'[which]} bank {b}", cells, index=b)
    row = int(s.srca_row[0])
    yield Row("SrcA row of the last matrix word", {"row": "not known" if row < 0 else row})


def _dst(s: TileState, view: View) -> Iterator[Row]:
    fmt = view.fmt or "bf16"
    form = {"int32": ">11d", "raw": "04x"}.get(fmt, _FLOAT)
    decoded = s.dst if fmt == "raw" else Tensix(cast(Any, s)).dst(fmt)
    for row in np.flatnonzero(decoded.view(s.dst.dtype).any(axis=1) | view.every):
        cells = values(decoded[row].tolist())
        yield Row(f"{fmt} row {row:>4}", cells, form, names=False, index=int(row))


def _dst_valid(s: TileState, view: View) -> Iterator[Row]:
    for first in range(0, 1024, 64):
        cleared = np.flatnonzero(s.dst_valid[first : first + 64] == 0) + first
        text = ", ".join(str(n) for n in cleared) if len(cleared) < 64 else "all"
        yield Row(f"rows {first:>3}-{first + 63}", {"cleared": text}, index=first, span=64)


# Vector unit


def _lreg(s: TileState, view: View) -> Iterator[Row]:
    if view.fmt not in ("", "raw", "fp32", "int32"):
        raise InputError(f"LReg lanes have no format {view.fmt}", hint="fp32, int32 or raw")
    form = {"fp32": _FLOAT, "int32": ">11d"}.get(view.fmt, "08x")
    lanes = {"fp32": np.float32, "int32": np.int32}.get(view.fmt, np.uint32)
    for i in range(16):
        numbers = s.lreg[i].view(lanes).tolist()
        for lane in range(0, 32, 8):
            cells = values(numbers[lane : lane + 8], lane)
            yield Row(f"LReg{i:<2} lane {lane:>2}", cells, form, names=False, index=i)


def _cc(s: TileState, view: View) -> Iterator[Row]:
    yield Row("in use", {"flag": int(s.cc_en[0]), "stacked": int(s.cc_depth[0])})
    yield Row("flags", values(ints(s.cc)), names=False)
    for i in range(int(s.cc_depth[0])):
        yield Row(f"stack {i} flags", values(ints(s.cc_stack[i])), names=False, index=i)
        yield Row(f"stack {i} in use", {"flag": int(s.cc_stack_en[i])}, index=i)


def _macro(s: TileState, view: View) -> Iterator[Row]:
    for i, word in enumerate(ints(s.macro_template)):
        yield Row(f"template {i}", word_cells(word), index=i)
    for i, word in enumerate(ints(s.macro_sequence)):
        yield Row(f"sequence {i}", {"word": word}, "#010x", index=i)
    yield Row("misc", {"word": int(s.macro_misc[0])}, "#x")
    for unit, delay in zip(*np.nonzero(s.macro_slot[:, :, 0]), strict=True):
        label = f"sub-unit {unit} in {delay + 1} cycles"
        yield Row(label, word_cells(int(s.macro_slot[unit, delay, 1])), index=int(unit))


# Front end and gate


def _mop(s: TileState, view: View) -> Iterator[Row]:
    for t in range(3):
        for i, role in enumerate(_MOP_WORDS):
            word = int(s.mop_cfg[t, i])
            cells: dict[str, Value] = {"value": word} if i < 2 else word_cells(word)
            yield Row(f"T{t} {i} {role}", cells, index=t)
        yield Row(f"T{t} upper zero mask", {"mask": int(s.mop_zmask_hi[t])}, "#x", index=t)
        if s.mop_on[t]:
            names = ("outer", "inner", "stage", "count")
            cells = {"template": int(s.mop_on[t]) - 1}
            cells |= {name: int(getattr(s, f"mop_{name}")[t]) for name in names}
            yield Row(f"T{t} expanding", cells, index=t)


def _replay(s: TileState, view: View) -> Iterator[Row]:
    for t in range(3):
        for i, word in enumerate(ints(s.replay[t])):
            if cells := word_cells(word):
                cells["from pc"] = f"0x{int(s.replay_pc[t, i]):08X}"
            yield Row(f"T{t} slot {i:>2}", cells, index=i)
        for verb in ("record", "play"):
            left, at = (int(getattr(s, f"{verb}_{end}")[t]) for end in ("left", "at"))
            if left:
                also = " and executes" if verb == "record" and s.record_execute[t] else ""
                yield Row(f"T{t} {verb}s{also}", {"words left": left, "next slot": at})


def _fifo(s: TileState, view: View) -> Iterator[Row]:
    for t in range(3):
        low, high, depth = int(s.fifo_read[t]), int(s.fifo_write[t]), s.fifo.shape[1]
        for n, i in enumerate(range(low, high)):
            word, pc = int(s.fifo[t, i % depth]), int(s.fifo_pc[t, i % depth])
            cells: dict[str, Value] = {"word": f"0x{word:08X}", "text": disassemble(word)}
            yield Row(f"T{t} {n:>2}", cells | {"from pc": f"0x{pc:08X}"}, index=t)


def _gate(s: TileState, view: View) -> Iterator[Row]:
    for t in range(3):
        cells: dict[str, Value] = {}
        if s.gate_full[t]:
            word = int(s.gate_word[t])
            cells = {"word": f"0x{word:08X}", "text": disassemble(word)}
            cells["origin"] = origin(int(s.gate_from[t])).strip(" ()") or "pushed"
            cells["from"] = f"{CORE_NAMES[int(s.gate_core[t])]} pc 0x{int(s.gate_pc[t]):08X}"
        if (condition := CONDITIONS.get(int(s.gate_blocked[t]))) is not None:
            cells["waits for"] = condition.text
        if s.latch[t]:
            cells["held by"] = disassemble(int(s.latch_word[t]))
        yield Row(f"T{t}", cells, index=t)


_SIMPLE: dict[str, Callable[[TileState, View], Iterator[Row]]] = {
    "l1": lambda s, v: memory("", 0, s.l1, None if v.other is None else v.other.l1, v.every),
    "cfg": lambda s, view: _field_rows(config_fields, s.cfg, ("bank 0", "bank 1")),
    "thread_cfg": lambda s, view: _field_rows(thread_fields, s.thread_cfg, ("T0", "T1", "T2")),
    "gpr": lambda s, view: (row for t in range(3) for row in eights(f"T{t}", s.gpr[t])),
    "sem": lambda s, view: (
        Row(f"sem{i}", {"value": int(s.sem[i]), "max": int(s.sem_max[i])}, index=i)
        for i in range(8)
    ),
    "mutex": lambda s, view: (
        Row(f"mutex {i}", {"held by": f"T{owner - 1}" if owner else ""}, index=i)
        for i, owner in enumerate(ints(s.mutex))
    ),
    "srca": partial(_src, 0),
    "srcb": partial(_src, 1),
    "lane_config": lambda s, view: eights("lane", s.lane_config),
    "prng": lambda s, view: eights("lane", s.prng),
}
ROWS = {named.name: _SIMPLE.get(named.name) or globals()[f"_{named.name}"] for named in NAMED}
"""The rows of each name of `views.NAMED`."""
