"""Register dumps of cores and coprocessor as text, under tt-exalens' names."""

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bhemu.errors import InputError
from bhemu.machine.core import Core
from bhemu.machine.tile import Tile
from bhemu.riscv.disasm import ABI_NAMES
from bhemu.tensix import config_fields, thread_fields
from bhemu.tensix.config_fields import Field
from bhemu.tensix.dest import UNWRITTEN

UNPACKERS = ("unpacker 0", "unpacker 1", "packer")
_MOST_FIELDS = 40


def regs(core: Core, before: npt.NDArray[np.uint32] | None) -> Iterator[str]:
    """x0-x31 and pc, four to a line; * marks what changed since `before`."""
    values = core.regs
    for row in range(0, 32, 4):
        cells = []
        for i in range(row, row + 4):
            mark = "*" if before is not None and before[i] != values[i] else " "
            cells.append(f"{ABI_NAMES[i]:>5} {int(values[i]):08x}{mark}")
        yield " ".join(cells)
    yield f"   pc {core.pc:08x}   retired {core.retired}   state {core.state}"


def gpr(tile: Tile, thread: int) -> Iterator[str]:
    """The 64 Tensix GPRs of a thread, eight to a line."""
    values = tile.tensix.gpr[thread]
    yield f"T{thread} GPRs"
    for row in range(0, 64, 8):
        yield f"  {row:>2}  " + " ".join(f"{int(v):08x}" for v in values[row : row + 8])


def fields(module: object) -> dict[str, Field]:
    """The named fields of config_fields or thread_fields."""
    return {name: field for name, field in vars(module).items() if isinstance(field, Field)}


def cfg(tile: Tile, what: str | None) -> list[str]:
    """Configuration: all words that are not 0, a word by index, or fields by (part of) a name."""
    if what is None:
        return list(_cfg_words(tile))
    if what.isdecimal() or what.startswith("0x"):
        return list(_cfg_word(tile, int(what, 0)))
    both = (fields(config_fields), fields(thread_fields))
    config, thread = (_matching(known, what) for known in both)
    if not config and not thread:
        known = [*both[0], *both[1]]
        near = difflib.get_close_matches(what, known, n=3, cutoff=0.4)
        raise InputError(f"no configuration field {what!r}", hint=f"near: {', '.join(near)}")
    lines = [*_config_lines(tile, config.items()), *_thread_lines(tile, thread.items())]
    if len(lines) > _MOST_FIELDS:
        lines[_MOST_FIELDS:] = [f"and {len(lines) - _MOST_FIELDS} more: give more of the name"]
    return lines


def _matching(known: Mapping[str, Field], what: str) -> dict[str, Field]:
    wanted = what.lower()
    exact = {name: field for name, field in known.items() if name.lower() == wanted}
    return exact or {name: field for name, field in known.items() if wanted in name.lower()}


def _value(words: Any, field: Field) -> int:
    return (int(words[field.word]) >> field.shift) & field.mask


def _config_lines(tile: Tile, named: Iterable[tuple[str, Field]]) -> Iterator[str]:
    banks = tile.tensix.cfg
    for name, field in named:
        first, second = (_value(banks[b], field) for b in range(2))
        place = f"word {field.word}, shift {field.shift}"
        yield f"{name} ({place}): bank 0 {first:#x}  bank 1 {second:#x}"


def _thread_lines(tile: Tile, named: Iterable[tuple[str, Field]]) -> Iterator[str]:
    threads = tile.tensix.thread_cfg
    for name, field in named:
        values = "  ".join(f"T{t} {_value(threads[t], field):#x}" for t in range(3))
        yield f"{name} (thread word {field.word}, shift {field.shift}): {values}"


def _cfg_words(tile: Tile) -> Iterator[str]:
    for b, words in enumerate(tile.tensix.cfg):
        shown = [f"{i}: {int(words[i]):#x}" for i in np.flatnonzero(words)]
        yield f"bank {b}: {', '.join(shown) or 'all 0'}"
    for t, words in enumerate(tile.tensix.thread_cfg):
        shown = [f"{i}: {int(words[i]):#x}" for i in np.flatnonzero(words)]
        yield f"thread T{t}: {', '.join(shown) or 'all 0'}"


def _cfg_word(tile: Tile, index: int) -> Iterator[str]:
    banks = tile.tensix.cfg
    if not 0 <= index < banks.shape[1]:
        raise InputError(f"no configuration word {index}", hint=f"0 to {banks.shape[1] - 1}")
    yield f"word {index}: bank 0 {int(banks[0, index]):#010x}  bank 1 {int(banks[1, index]):#010x}"
    named = fields(config_fields).items()
    yield from _config_lines(tile, ((n, f) for n, f in named if f.word == index))


def rwc(tile: Tile) -> Iterator[str]:
    """Row counters of each thread, and what a carriage return restores."""
    s = tile.state
    yield "      SrcA SrcB  Dst  fidelity   carriage return: SrcA SrcB  Dst"
    for t in range(3):
        a, b, d, phase = (int(v) for v in s.rwc[t])
        ra, rb, rd = (int(v) for v in s.rwc_cr[t, :3])
        yield f"  T{t}  {a:>4} {b:>4} {d:>4}  {phase:>8}   {ra:>21} {rb:>4} {rd:>4}"


def adc(tile: Tile) -> Iterator[str]:
    """Address counters: X Y Z W of both channels of each unpacker and the packer."""
    s = tile.state
    for t in range(3):
        for u, unit in enumerate(UNPACKERS):
            parts = []
            for channel in range(2):
                now = " ".join(str(int(v)) for v in s.adc[t, u, channel])
                back = " ".join(str(int(v)) for v in s.adc_cr[t, u, channel])
                parts.append(f"channel {channel}: X Y Z W {now} (cr {back})")
            yield f"  T{t} {unit:<10}  {'  '.join(parts)}"


def sem(tile: Tile) -> Iterator[str]:
    """Semaphores with their maxima, and who holds which mutex."""
    s = tile.state
    yield "  ".join(f"sem{i} {int(s.sem[i])}/{int(s.sem_max[i])}" for i in range(8))
    held = [f"mutex {i}: T{int(owner) - 1}" for i, owner in enumerate(s.mutex) if owner]
    yield f"mutexes: {', '.join(held) or 'all free'}"


def lreg(tile: Tile, index: int | None) -> Iterator[str]:
    """LRegs: lane 0-7 of all, or the 32 lanes of one as bits and as float."""
    values = tile.tensix.lreg
    if index is None:
        for i in range(16):
            yield f"  LReg{i:<2} " + " ".join(f"{int(v):08x}" for v in values[i, :8]) + " ..."
        return
    if not 0 <= index < 16:
        raise InputError(f"no LReg {index}", hint="0 to 15")
    floats = values[index].view(np.float32)
    for row in range(0, 32, 8):
        yield f"  {row:>2}  " + " ".join(f"{int(v):08x}" for v in values[index, row : row + 8])
        yield "      " + _numbers(floats[row : row + 8])


def _numbers(values: Iterable[Any]) -> str:
    return " ".join(f"{v:>8.5g}" if isinstance(v, np.floating) else f"{v:>8}" for v in values)


def row_range(text: str | None, rows: int) -> range:
    """`3` or `0-7` as a range of rows."""
    if text is None:
        return range(0)
    first, _, last = text.partition("-")
    if not first.isdecimal() or not (last or first).isdecimal():
        raise InputError(f"{text!r} is not a row", hint="3 or 0-7")
    low, high = int(first), int(last or first)
    if not low <= high < rows:
        raise InputError(f"rows {text}: there are rows 0 to {rows - 1}")
    return range(low, high + 1)


def dst(tile: Tile, rows: str | None, fmt: str | None) -> list[str]:
    """Dst: which rows hold something, or some rows decoded as bf16, fp16, fp32 or int32."""
    if rows is None:
        cells = tile.tensix.dst16
        used = np.flatnonzero((tile.state.dst_valid != 0) & cells.any(axis=1))
        cleared = int((tile.state.dst_valid == 0).sum())
        written = int((tile.state.dst_valid != UNWRITTEN).sum())
        return [
            f"Dst rows that are not 0: {_spans(used)}",
            f"cleared by ZEROACC: {cleared} of 1024; written or cleared since power-up: {written}",
        ]
    values = tile.tensix.dst(fmt or "bf16")
    return [f"  {r:>4}  {_numbers(values[r])}" for r in row_range(rows, len(values))]


def src(tile: Tile, which: str | None, rows: str | None) -> list[str]:
    """SrcA and SrcB: the state of both banks, or rows of both banks of one as float."""
    s = tile.state
    if which is None:
        return [_bank(s, i, b) for i in range(2) for b in range(2)]
    if which.lower() not in ("a", "b"):
        raise InputError(f"no source register {which!r}", hint="a or b")
    index = "ab".index(which.lower())
    lines = []
    for b in range(2):
        lines.append(_bank(s, index, b))
        for r in row_range(rows or "0-63", 64):
            lines.append(f"  {r:>2}  {_numbers(s.src[index, b, r].view(np.float32))}")
    return lines


def _bank(s: Any, index: int, b: int) -> str:
    owner = "the matrix unit" if s.src_valid[index, b] else "the unpacker"
    used = np.flatnonzero(s.src[index, b].any(axis=1))
    roles = [
        role
        for role, banks in (("unpacked next", s.unpack_bank), ("read next", s.matrix_bank))
        if banks[index] == b
    ]
    state = f"belongs to {owner}" + (f", {' and '.join(roles)}" if roles else "")
    return f"Src{'AB'[index]} bank {b}: {state}; rows that are not 0: {_spans(used)}"


def _spans(numbers: Sequence[int] | npt.NDArray[Any]) -> str:
    """`0-7, 12` for sorted numbers."""
    spans: list[list[int]] = []
    for n in (int(n) for n in numbers):
        if spans and n == spans[-1][1] + 1:
            spans[-1][1] = n
        else:
            spans.append([n, n])
    return ", ".join(f"{a}-{b}" if a != b else str(a) for a, b in spans) or "none"
