"""Which instructions a run exercises, in which modes and with which data formats.

A mode is the value of every field declared `mode=True`, and for the matrix unit, the vector unit's
loads and stores, packer and unpackers the formats in force when the word executes.
"""

from __future__ import annotations

import atexit
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bhemu.machine.sentences import RULES
from bhemu.machine.tile import tile_created
from bhemu.program import files
from bhemu.tensix import config_fields as cf
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.banks import SRCA, SRCB
from bhemu.tensix.config import SECTION_WORDS
from bhemu.tensix.config_fields import Field
from bhemu.tensix.formats import NAMES
from bhemu.tensix.insn import Instruction, decode
from bhemu.tensix.rules import DONE

if TYPE_CHECKING:
    from bhemu.machine.tile import Tile


VARIABLE: Final = "BHEMU_COVERAGE"  # a file to which every process adds what its tiles executed


@dataclass(frozen=True, order=True)
class Mode:
    """One way in which an instruction was used: its mode fields and the formats in force."""

    mnemonic: str
    fields: tuple[tuple[str, int], ...]
    formats: str = ""

    def __str__(self) -> str:
        shown = [f"{name}={value}" for name, value in self.fields if value]
        return " ".join([*shown, self.formats]).strip() or "plain"

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready values."""
        return {"fields": dict(self.fields), "formats": self.formats}


@dataclass
class Notes:
    """How often each mode was executed, and which rule refused a mode; knows no tile."""

    executed: Counter[Mode] = field(default_factory=Counter)
    refused: dict[Mode, str] = field(default_factory=dict)


class Coverage:
    """Notes every Tensix word of a tile from now on; the tile runs slower."""

    def __init__(self, tile: Tile) -> None:
        self._s, self._table = tile.state, tile.backend.table
        self.notes = Notes()
        self._table.observe(self._before, self._after)

    def stop(self) -> None:
        """Note no more."""
        self._table.forget(self._before)

    def _before(self, t: int, word: int) -> Mode | None:
        cls = decode(word)
        return None if cls is None or t < 0 else mode_of(self._s, t, cls, word)

    def _after(self, mode: Mode | None, status: int) -> None:
        if mode is None:
            return
        if status == DONE:
            self.notes.executed[mode] += 1
        elif status in RULES:
            self.notes.refused[mode] = RULES[status].rule


def mode_of(s: Any, t: int, cls: type[Instruction], word: int) -> Mode:
    """The mode of a word that thread `t` is about to execute."""
    fields = tuple((f.name, f.get(word)) for f in cls.fields if f.mode)
    return Mode(cls.name, fields, _formats(s, t, cls, word))


def _formats(s: Any, t: int, cls: type[Instruction], word: int) -> str:
    """The formats in force, of the kind that the class names."""
    if cls.formats == "unpack":
        unpacker = cls.operands(word)["unpack_block_selection"]
        source = _get(s, t, Field(cf.THCON_SEC0_REG0_TileDescriptor.word, 0, 0xF), unpacker)
        target = _get(s, t, cf.THCON_SEC0_REG2_Out_data_format, unpacker)
        parts = [f"{_name(source)} -> {_name(target)}"]
        if _get(s, t, cf.THCON_SEC0_REG2_Tileize_mode, unpacker):
            parts.append("tilized")
        if _get(s, t, cf.THCON_SEC0_REG2_Haloize_mode, unpacker):
            parts.append("transposed")
        if unpacker == 0 and _get(s, t, cf.THCON_SEC0_REG2_Unpack_if_sel_cntx0):
            parts.append("to Dst")
        return " ".join(parts)
    formats = _IN_FORCE[cls.formats](s, t) if cls.formats else ""
    if any(_get(s, t, field) for field in cls.by_chance):
        formats += " stochastic (modelled)"
    return formats


def _get(s: Any, t: int, field: Field, section: int = 0) -> int:
    bank = int(s.thread_cfg[t, tf.CFG_STATE_ID_StateID.word]) & 1
    return int(s.cfg[bank, field.word + SECTION_WORDS * section]) >> field.shift & field.mask


def _name(code: int) -> str:
    return NAMES.get(code, f"format {code}")


def _pack(s: Any, t: int) -> str:
    source, target = (
        _get(s, t, field)
        for field in (cf.THCON_SEC0_REG1_In_data_format, cf.THCON_SEC0_REG1_Out_data_format)
    )
    parts = [f"{_name(source)} -> {_name(target)}", _wide(s, t, cf.PCK_DEST_RD_CTRL_Read_32b_data)]
    if relu := _get(s, t, cf.STACC_RELU_ApplyRelu):
        parts.append(f"relu {relu}")
    if _get(s, t, cf.THCON_SEC0_REG1_Pack_L1_Acc):
        parts.append("accumulating")
    return " ".join(parts)


def _matrix(s: Any, t: int) -> str:
    a, b = (_name(int(s.src_fmt[which, int(s.matrix_bank[which]) & 1])) for which in (SRCA, SRCB))
    integer = " int8" if _get(s, t, cf.ALU_ACC_CTRL_INT8_math_enabled) else ""
    return f"{a} x {b} {_wide(s, t, cf.ALU_ACC_CTRL_Fp32_enabled)}{integer}"


def _wide(s: Any, t: int, field: Field) -> str:
    return "Dst32" if _get(s, t, field) else "Dst16"


_IN_FORCE: Mapping[str, Callable[[Any, int], str]] = {
    "pack": _pack,
    "src": _matrix,
    "dst": lambda s, t: _wide(s, t, cf.ALU_ACC_CTRL_Fp32_enabled),
    "sfpu": lambda s, t: _wide(s, t, cf.ALU_ACC_CTRL_SFPU_Fp32_enabled),
}


def rows(covers: Iterable[Notes]) -> Iterator[dict[str, Any]]:
    """One JSON-ready row for each mode: mnemonic, fields, formats, count, rule that refused it."""
    executed: Counter[Mode] = Counter()
    refused: dict[Mode, str] = {}
    for cover in covers:
        executed.update(cover.executed)
        refused.update(cover.refused)
    for mode in sorted({*executed, *refused}):
        yield {
            "mnemonic": mode.mnemonic,
            **mode.as_dict(),
            "count": executed[mode],
            "rule": refused.get(mode, ""),
        }


def from_environment() -> None:
    """Note what every later tile executes when $BHEMU_COVERAGE names a file; written at exit."""
    path = os.environ.get(VARIABLE)
    if path and not _whole_process:
        _whole_process.append(noting())
        atexit.register(_append, Path(path), _whole_process[0].__enter__())


_whole_process: list[AbstractContextManager[list[Notes]]] = []


@contextmanager
def noting() -> Iterator[list[Notes]]:
    """Note what every tile executes that is made within the context."""
    noted: list[Notes] = []

    def observe(tile: Tile) -> None:
        noted.append(Coverage(tile).notes)

    tile_created.append(observe)
    try:
        yield noted
    finally:
        tile_created.remove(observe)


def _append(path: Path, noted: list[Notes]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(list(rows(noted))) + "\n")


def read(path: Path) -> list[dict[str, Any]]:
    """The rows of a file that processes added to, those of one mode added up."""
    text = files.read_bytes(path, "COVERAGE_BYTES").decode("utf-8")
    return merged(row for line in text.splitlines() for row in json.loads(line))


def merged(several: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of several runs, those of one mode added up."""
    found: dict[str, dict[str, Any]] = {}
    for row in several:
        key = json.dumps([row["mnemonic"], row["fields"], row["formats"]])
        known = found.setdefault(key, {**row, "count": 0})
        known["count"] += row["count"]
        known["rule"] = known["rule"] or row["rule"]
    return sorted(found.values(), key=lambda row: (row["mnemonic"], json.dumps(row["fields"])))
