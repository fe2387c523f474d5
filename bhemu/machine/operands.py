"""What UNPACR and PACR really do in the state of a tile: addresses, formats, rows, banks, ReLU.

The same functions compute it that execute the word (tensix/units), as plain Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from bhemu.errors import source_text
from bhemu.jit.record import plain
from bhemu.machine.word_text import meaning
from bhemu.memmap import CORE_NAMES, L1_SIZE
from bhemu.tensix import config, config_fields, formats
from bhemu.tensix.insn import decode
from bhemu.tensix.rules import RULES
from bhemu.tensix.state import State
from bhemu.tensix.units.pack import addresses, modes
from bhemu.tensix.units.pack.modes import PackWord
from bhemu.tensix.units.unpack import addresses as input_address
from bhemu.tensix.units.unpack.modes import UnpackWord, mode_of_word

if TYPE_CHECKING:
    from bhemu.machine.tile import Tile


T = TypeVar("T")
_RELU = {1: "ReLU: negative to 0", 2: "ReLU: below the threshold to 0", 3: "ReLU: capped"}

_NO_THREAD = "has counters of a thread that there is not"


def _format(code: int) -> str:
    return formats.NAMES.get(code, f"format {code}")


def _span(first: int, end: int) -> str:
    return f"L1 {first:#x}..{end:#x}"


def effective(s: State, thread: int, word: int) -> str:
    """What a word that is about to execute would do, in words; "" where its numbers say all."""
    cls = decode(word)
    if cls is None:
        return ""
    shown = {"unpack": _unpacr, "pack": _pacr}.get(cls.formats)
    return meaning(word, thread) if shown is None else _tried(shown, s, thread, word)


def transfer_of(s: State, thread: int, word: int) -> Unpack | Pack | None:
    """What an UNPACR or PACR would do; None for other words and for one that moves nothing."""
    cls = decode(word)
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
    count = int(s.adc[m.counters, u, 1, 0]) - int(s.adc[m.counters, u, 0, 0]) + 1
    read = plain(input_address.source)(s, t, m)
    rows = max((count - 1) // read.row, 0)
    start = int(read.data)
    bits = 8 * int(read.step) * rows + read.bits * (count - rows * read.row)
    cell = int(plain(input_address.first_cell)(s, t, m))
    refused = min(cell, 0)
    if not refused:
        cell -= 0 if m.unpacker else input_address.FIRST_CELL
        cell += int(plain(input_address.set_cells)(s, t, m))
    high = (cell + max(count, 1) - 1) >> 4
    ends = (start >> 3, (start + bits + 7) >> 3)
    return Unpack(u, m, *ends, count, cell >> 4, high, refused)


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
    place = plain(addresses.place_of)(s, a, m)
    datums = int(plain(addresses.count_of)(s, m, rows))
    data, bits = int(place.data), int(plain(formats.datum_bits)(m.out))
    end = data + (datums * bits + 7 >> 3)
    return Pack(m, numbers, data, end, datums, int(place.exponent))


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


def _fields_of(s: State, thread: int, word: int) -> dict[str, int]:
    """The Config words that the formats and addresses of an UNPACR or PACR come from, by name."""
    cls = decode(word)
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
    return {name: fields[name].word for name in names if name in fields}


def who(tile: Tile, code: int) -> str:
    """The thread or core that wrote a Config word, and from where; "" for nobody in the run."""
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
    """Who set the formats and addresses that an UNPACR or PACR would use; "" where nobody did."""
    s = tile.state
    bank = int(plain(config.bank)(s, thread))
    by: dict[str, list[str]] = {}
    for name, index in _fields_of(s, thread, word).items():
        writer = who(tile, int(s.cfg_by[bank, index]))
        if writer:
            by.setdefault(writer, []).append(name.partition("_REG")[2].partition("_")[2] or name)
    return "; ".join(f"{', '.join(names)} by {writer}" for writer, names in by.items())


def told(tile: Tile, thread: int, word: int) -> str:
    """What a word at the gate would do, and who set what it would use."""
    parts = effective(tile.state, thread, word), set_by(tile, thread, word)
    return "; ".join(part for part in parts if part)
