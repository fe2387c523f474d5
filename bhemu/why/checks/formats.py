"""The check "formats": what UNPACR reads and PACR writes, against the tensors of the program."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from bhemu.errors import Where
from bhemu.jit.record import plain
from bhemu.machine.error_text import where_core
from bhemu.machine.resolve import resolve
from bhemu.machine.tile import Tile
from bhemu.machine.watchpoints import spans
from bhemu.machine.word_text import transfer_of
from bhemu.memmap import CORE_NAMES, L1_SIZE
from bhemu.program.specs import OutputSpec, Program
from bhemu.tensix import config, config_fields
from bhemu.tensix.insn import decode
from bhemu.why.check import Check, Context
from bhemu.why.findings import Finding, merged, place
from bhemu.why.origin.chain import Chain
from bhemu.why.requests import Moved, log_stores
from bhemu.why.toml_lines import TomlLines
from bhemu.why.walk import Walk, Word, where

_LIKE = {"fp8": ("fp8_e4m3", "fp8_e5m2"), "int8": ("int8", "uint8"), "tf32": ("fp32", "tf32")}
_HEADER = 16  # bytes that both units add to an address
_FACE, _COLUMNS = 256, 16  # datums that follow each other in a tile, those of a row
_AS_TILES = 'layout = "tile32" in PROGRAM.toml'
_PC = (1 << config.BY_SHIFT) - 1
_FIELDS = {"format": ("REG0_TileDescriptor", "REG1_Out_data_format"),
           "address": ("REG3_Base_address", "REG1_L1_Dest_addr")}  # fmt: skip


@dataclass(frozen=True)
class _Tensor:
    name: str
    at: int
    end: int
    spec: Any
    table: tuple[str, int]  # in PROGRAM.toml


class _Use(NamedTuple):
    """An UNPACR or PACR of L1 `first` to `end` as `fmt`; `setter`: who set the format."""

    step: Word
    name: str
    first: int
    end: int
    fmt: str
    setter: Where | None


class Operands:
    """Compares each UNPACR and PACR of a tile with the tensors that it touches."""

    def __init__(self, context: Context, tile: Tile) -> None:
        self.tile = self._tile = tile
        self._keeps = in_dram(context.program)
        self._path = context.program.path
        self._uses: dict[tuple[Any, ...], _Use] = {}
        self._tensors = {
            "UNPACR": list(_tensors(tile, "input", context.program.inputs)),
            "PACR": list(_tensors(tile, "output", context.program.outputs)),
        }
        self._made: dict[tuple[int, int], Where] = {}  # by thread and GPR, who set it last
        self._given: dict[int, tuple[int, Where]] = {}  # by Config word: the WRCFG, its GPR
        self._stored: dict[tuple[int, int], Where | None] = {}  # by WRCFG and GPR: a core's store
        self._history, self._end = context.past, context.end
        self._right: set[tuple[int, str]] = set()  # words that have read a tensor from its begin
        self.found: dict[object, Finding] = {}

    def walk(self) -> Walk:
        """Every word; for tensors in DRAM with what its cores ask of the NoC."""
        if self._keeps:
            log_stores(self._tile)
        return Walk(self._tile, before=self.before)

    def before(self, step: Word) -> None:
        """A word is about to execute."""
        cls, s = decode(step.word), self._tile.state
        name = "" if cls is None else cls.name
        self._follow(step, name)
        if cls is None or name not in self._tensors or cls.operands(step.word).get("zero_write2"):
            return
        does = transfer_of(s, step.thread, step.word)
        if does is None:
            return
        fmt = does.l1_format
        for tensor in self._tensors[name]:
            if does.first < tensor.end and tensor.at < does.end:
                self._compare(step, name, does, fmt, tensor)
        key = name, step.pc, does.first, does.end, fmt
        if self._keeps and key not in self._uses:
            setter = self._setter(step, "format")
            self._uses[key] = _Use(step, name, does.first, does.end, fmt, setter)

    def compare(self, moved: Moved) -> None:
        """Of a chip: with the tensors in DRAM that the NoC brings to a page or takes it to."""
        for use in self._uses.values():
            one = self._other(use, moved)
            if one is None:
                continue
            read = use.name == "UNPACR"
            verb = "reads" if read else "writes"
            how = "comes from" if read else "goes to"
            text = (
                f"{use.name} {verb} {use.first:#x} to {use.end:#x} as {use.fmt}, and what is there"
            )
            text += f" {how} {_title(one)} in DRAM, which is {one.dtype}"
            advice = f"set the format to {one.dtype}, or dtype in PROGRAM.toml to {use.fmt}"
            self._tell(use.step, use.name, "format", text, advice, use.setter)

    def _other(self, use: _Use, moved: Moved) -> Any:
        """The tensor in DRAM that a use is of, if it is of none that the format fits."""
        read = use.name == "UNPACR"
        tensors = moved.tensors(self._tile.xy, use.first, use.end, source=read)
        fits = not tensors or any(_fits(one.dtype, use.fmt) for one in tensors)
        return None if fits else tensors[0]

    def _follow(self, step: Word, name: str) -> None:
        """Notes GPRs, and Config words that are made from them."""
        if name not in ("SETDMAREG", "WRCFG"):
            return
        cls = decode(step.word)
        assert cls is not None
        values = cls.operands(step.word)
        if name == "SETDMAREG":
            self._made[step.thread, values["reg_index_16b"] // 2] = where(self._tile, step)
        elif (made := self._made.get((step.thread, values["gpr_address"]))) is not None:
            self._given[values["cfg_reg"]] = step.pc, made
        elif (stored := self._storer(step, values["gpr_address"])) is not None:
            self._given[values["cfg_reg"]] = step.pc, stored

    def _storer(self, step: Word, gpr: int) -> Where | None:
        """Which instruction of a core stores to a GPR that a WRCFG copies, as last of the run."""
        tile = self._history
        if tile is None or (step.pc, gpr) in self._stored:
            return self._stored.get((step.pc, gpr))
        name = f"gpr:{step.thread}:{gpr}"
        tile.history.to(self._end)
        try:
            change = Chain(tile).last_change(name, spans(tile, "brisc", name))
        finally:
            tile.history.to(self._end)
        self._stored[step.pc, gpr] = None if change is None else change.where
        return self._stored[step.pc, gpr]

    def _compare(self, step: Word, name: str, does: Any, fmt: str, tensor: _Tensor) -> None:
        verb = "reads" if name == "UNPACR" else "writes"
        shown = f"{name} {verb} {does.first:#x} to {does.end:#x} as {fmt}"
        kind = f"{tensor.name} ({tensor.spec.dtype}, {tensor.at:#x} to {tensor.end:#x})"
        if does.first == tensor.at:
            self._right.add((step.pc, tensor.name))
        if not _fits(tensor.spec.dtype, fmt):
            text = f"{shown}, and {kind} is {tensor.spec.dtype}"
            advice = f"set the format to {tensor.spec.dtype}, or dtype in PROGRAM.toml to {fmt}"
            self._report(step, name, "format", text, advice)
        elif does.first < tensor.at or does.end > tensor.end:
            text = f"{shown}, beyond {kind}"
            advice = "look at the L1 address, the strides and the counters that give this range"
            unit = _HEADER in (does.end - tensor.end, tensor.at - does.first)
            unit = unit and (step.pc, tensor.name) not in self._right
            if unit:
                advice = "the unit adds 16 bytes for a header: give it address / 16 - 1"
            self._report(step, name, "address", text, advice)
        elif (does.first - tensor.at) % 16:
            text = f"{shown}, not at a multiple of 16 bytes of {kind}"
            self._report(step, name, "address", text, "look at the L1 address that was set")
        elif name == "UNPACR" and _is_of_rows(tensor.spec) and self._whole_faces(does):
            self._layout(step, shown, tensor)

    @staticmethod
    def _whole_faces(does: Any) -> bool:
        return does.datums >= _FACE and not does.mode.tileize

    def _layout(self, step: Word, shown: str, tensor: _Tensor) -> None:
        """Faces are read where the file says that rows lie."""
        if self._path is None or ("layout", tensor.name) in self.found:
            return
        line = TomlLines(self._path).key(*tensor.table, "layout")
        text = f'{shown}: faces of a tile, and {tensor.name} has layout = "rows"'
        self.found["layout", tensor.name] = Finding(
            "formats", "warning", text, place(Where(file="PROGRAM.toml", line=line), None),
            place(where(self._tile, step), step.clock), (), _AS_TILES,
        )  # fmt: skip

    def _report(self, step: Word, name: str, kind: str, text: str, advice: str) -> None:
        if (name, kind, step.pc) not in self.found:
            self._tell(step, name, kind, text, advice, self._setter(step, kind))

    def _tell(
        self, step: Word, name: str, kind: str, text: str, advice: str, by: Where | None
    ) -> None:
        """by: who set what is wrong."""
        if (name, kind, step.pc) in self.found:
            return
        word = where(self._tile, step)
        setter = by or word
        victim = place(word, step.clock) if setter is not word else {}
        self.found[name, kind, step.pc] = Finding(
            "formats", "warning", f"{word.core} {text}", place(setter, None, self._tile), victim,
            (f"set by {setter}",), advice,
        )  # fmt: skip

    def _setter(self, step: Word, kind: str) -> Where | None:
        """Who set the Config word that the format or address comes from."""
        word = self._word(step, kind)
        given, made = self._given.get(word, (-1, None))
        code = self._by(step, word)
        return made if given == code & _PC else self._storer_of(code)

    @staticmethod
    def _word(step: Word, kind: str) -> int:
        """The Config word that the format or address of an UNPACR or PACR comes from."""
        cls = decode(step.word)
        assert cls is not None
        packs = cls.name == "PACR"
        section = 0 if packs else cls.operands(step.word)["unpack_block_selection"]
        field = vars(config_fields)[f"THCON_SEC{section}_{_FIELDS[kind][packs]}"]
        return int(field.word)

    def _by(self, step: Word, word: int) -> int:
        """Who has changed a Config word of the thread's bank last, as `cfg_by` holds it."""
        s = self._tile.state
        return int(s.cfg_by[int(plain(config.bank)(s, step.thread)), word])

    def _storer_of(self, code: int) -> Where | None:
        number, pc = code >> config.BY_SHIFT, code & _PC
        if not number or pc >= L1_SIZE:
            return None
        core = number - config.FIRST_CORE_BY
        owners = [*range(len(CORE_NAMES))] if core < 0 else [core]
        owner = next((c for c in owners if c < 5 and self._tile.locate(c, pc)[0]), None)
        return None if owner is None else where_core(self._tile, owner, pc)


def in_dram(program: Program) -> bool:
    """Whether a tensor of a program lies in DRAM, from where requests bring it to pages."""
    tensors: list[Any] = [*program.inputs, *program.outputs]
    return any(one.dram is not None for one in tensors)


def _fits(dtype: str, fmt: str) -> bool:
    """Whether a tensor of `dtype` may be read or written as `fmt`."""
    return dtype in ("raw", fmt, *_LIKE.get(fmt, ()))


def _is_of_rows(spec: Any) -> bool:
    """Whether rows lie otherwise in L1 than faces: those of 16 numbers are faces."""
    return bool(spec.layout == "rows" and spec.shape[-1] != _COLUMNS)


def _title(spec: Any) -> str:
    return spec.name if isinstance(spec, OutputSpec) else f"input {spec.file.name}"


def _tensors(tile: Tile, table: str, specs: Sequence[Any]) -> Iterator[_Tensor]:
    """Those in the tile's L1."""
    for number, spec in enumerate(specs):
        tiles = (spec.tile,) if isinstance(spec, OutputSpec) else spec.tiles
        if spec.dram is None and (not any(tiles) or tile.xy in tiles):
            at = resolve(tile, spec.at)
            yield _Tensor(_title(spec), at, at + spec.size, spec, (table, number))


def _run(context: Context) -> Sequence[Finding]:
    if context.symptom.fine:
        return []
    machine, looks = context.walked(partial(Operands, context))
    if in_dram(context.program):
        moved = Moved(context.program, machine, [look.tile for look in looks])
        for look in looks:
            look.compare(moved)
    return merged(look.found.values() for look in looks)


CHECK = Check(
    name="formats",
    proves="that an UNPACR reads an input, or a PACR writes an output, in another format than its"
    " dtype, beyond its ends, or off its 16-byte grid;"
    " that faces are read from an input of rows; the culprit is who set the format or address",
    misses="tensors between kernels; of pages that requests of cores bring from DRAM or take there"
    " all but the format; a format that is meant to be another is a warning, and only where a run"
    " went wrong",
    cost="one more run, in which every UNPACR and PACR passes through Python (100 us each)",
    applies=lambda seen: 0 if seen.fine else 4,
    run=_run,
)
