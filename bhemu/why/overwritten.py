"""Steps that overwrite arguments, code or awaited words, or set a refused field; arguments that are
missing."""

import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import product
from operator import methodcaller
from typing import Any

import numpy as np

from bhemu.errors import BhemuError, NoProgress, Where
from bhemu.jit.subset import JIT
from bhemu.launch import data_of
from bhemu.machine.error_text import outside_headers, where_core
from bhemu.machine.resolve import resolve
from bhemu.machine.tile import Tile
from bhemu.machine.watchpoints import Change, Span, spans
from bhemu.memmap import CORE_NAMES, L1_SIZE
from bhemu.program import toml
from bhemu.program.coordinates import values_of
from bhemu.program.input_files import encode_values
from bhemu.program.loader import read_elf
from bhemu.program.specs import Program
from bhemu.riscv.assembly import NOP
from bhemu.riscv.formats import Store
from bhemu.riscv.isa import decode
from bhemu.tensix import config_fields, thread_fields
from bhemu.tensix.insn import ADDR_MOD
from bhemu.tensix.insn import decode as decode_word
from bhemu.tensix.rules import RULES
from bhemu.tensix.semaphores import GET_EMPTY
from bhemu.tensix.state import OFFSET, THREADS
from bhemu.tensix.units.cfg import SETC16
from bhemu.why import order as r
from bhemu.why.chain import Chain, last_change
from bhemu.why.check import Context
from bhemu.why.findings import Finding, in_words, place, waiters_of
from bhemu.why.order.conflicts import seen_at
from bhemu.why.order.observe import comparison
from bhemu.why.order.shadow import PUSHED
from bhemu.why.steps import Act, made_step, maker

_MOST = 4  # stores that are left out
_AB = thread_fields.ADDR_MOD_AB_SEC0_SrcAIncr.word  # and of the next modes
_DST, _MODES = thread_fields.ADDR_MOD_DST_SEC0_DestIncr.word, 8
_KINDS = ("elf", "llk")  # of these the host leaves every ELF where it was linked to
_CODE = "look at the address: a null pointer, an index beyond its array, another core's memory"
_ADVICE = "leave the word to those who read it: look at the address of this store"


def _found(
    kind: str, tile: Tile, change: Change, clock: int, address: int, text: str,
    *told: str, advice: str = "",
) -> Finding:  # fmt: skip
    """The finding of a word of L1 and its last change."""
    who = place(change.where, clock, tile)
    evidence = (f"the last change of it: {in_words(who)}", *told) if advice else ()
    return Finding(kind, "error", text, who, {"place": f"L1 {address:#x}"}, evidence, advice)


def _last_change(tile: Tile, address: int) -> tuple[Change | None, int]:
    """Of a word of L1."""
    return last_change(tile, Span(OFFSET["l1"] + (address & ~3), 4))


def arguments(context: Context) -> Iterator[Finding]:
    """The store that overwrites a word of [[set]], if all outputs are right without it.

    `context.tile` is at the end of a wrong run, with its history.
    """
    tile = context.past
    if context.symptom.fine or tile is None or not context.program.outputs:
        return

    tried, words = set[int](), tile.state.l1.view("<u4")
    part = context.program.placed()[0]
    for spec in part.sets:
        at, data = resolve(tile, spec.at), data_of(spec, tile, part)
        given = np.frombuffer(data[: len(data) & ~3], "<u4")
        held = words[at // 4 :][: len(given)]
        fits = at % 4 == 0 and at + len(data) <= L1_SIZE
        for n in np.flatnonzero(given != held) if fits else ():
            address = at + 4 * int(n)
            change, clock = _last_change(tile, address)
            pc = None if change is None or change.where.thread is not None else change.where.pc
            if change is None or pc is None or pc in tried or len(tried) == _MOST:
                continue
            if not issubclass(decode(tile.read32(pc)) or object, Store):
                continue
            tried.add(pc)
            if context.again(methodcaller("write", pc, NOP.to_bytes(4, "little"))).fine:
                text = f"{change.where.core} overwrites L1 {address:#x}, which PROGRAM.toml sets to"
                text += f" {change.before:#x}, with {change.after:#x}"
                told = "without this store all outputs are right"
                yield _found("program", tile, change, clock, address, text, told, advice=_ADVICE)
                return


def tensors(context: Context) -> Iterator[Finding]:
    """The lines of wrong outputs in DRAM that lie in part over an input, which they overwrite."""
    path = context.program.path
    for number, spec in enumerate(context.program.outputs if path is not None else ()):
        wrong = spec.dram is not None and any(one.spec is spec for one in context.symptom.wrong)
        mine = [*spec.dram.pieces(spec.size)] if wrong and spec.dram is not None else []
        for tensor in context.program.inputs if mine else ():
            if tensor.dram is None or (tensor.dram, tensor.size) == (spec.dram, spec.size):
                continue  # it is meant to replace the input
            both = product(mine, tensor.dram.pieces(tensor.size))
            of_bank = ((one, other) for one, other in both if one.bank == other.bank)
            shared = [
                (one.bank, max(one.address, other.address))
                for one, other in of_bank
                if -one.size < one.address - other.address < other.size
            ]
            if shared and path is not None:
                bank, at = min(shared)
                line = toml.line_of_key(path, "output", number, "dram")
                text = f"PROGRAM.toml:{line}: output {spec.name} overwrites input"
                text += f" {tensor.file.name}: both lie in DRAM bank {bank} at {at:#x}"
                who = place(Where(file=path.name, line=line), None)
                yield Finding("program", "error", text, who, {}, (), "give each its own bytes")


def code(tile: Tile, program: Program) -> Iterator[Finding]:
    """The step that overwrote code; `tile` is at the end of the run, with its history."""
    if program.kind not in _KINDS or tile.loop.observer is None:
        return
    for core, spec in program.cores.items():
        for segment in () if spec.elf is None else read_elf(spec.elf).segments:
            low, size = segment.vaddr, len(segment.data) & ~3
            if not segment.executable or low != segment.paddr or low + size > L1_SIZE:
                continue
            linked = np.frombuffer(segment.data[:size], "<u4")
            held = tile.state.l1[low : low + size].view("<u4")
            places = (low + 4 * int(n) for n in np.flatnonzero(held != linked))
            # data beside the code may change
            if (at := next((at for at in places if tile.core[core].locate(at)[2]), None)) is None:
                continue
            change, clock = _last_change(tile, at)
            if change is None:
                continue
            symbol, file, line = tile.core[core].locate(at)
            what = f"{symbol} ({file}:{line})" if line else str(symbol)
            text = f"{change.where.core} writes {change.after:#x} over code of {core} at {at:#x}"
            yield _found("error", tile, change, clock, at, f"{text}, {what}", advice=_CODE)
            return


# A hang in which a word of L1 has held what is waited for.


def awaited(tile: Tile, error: NoProgress) -> Iterator[Finding]:
    """The step that overwrote an awaited word; `tile` is in the hang, with its history."""
    if tile.loop.observer is None:
        return
    words = tile.state.l1.view("<u4")
    polls: list[tuple[str, int, int, set[int]]] = []  # who, address, pc, values that may be awaited
    for waiter in (one for one in waiters_of(error, "l1") if one.who in CORE_NAMES):
        values = {int(n) for n in tile.core[waiter.who].regs[1:]} - {0}
        at, pc = waiter.resource["address"] & ~3, int(waiter.where["pc"])
        polls.append((waiter.who, at, pc, values))
    ends = ((at, want) for _, at, want in tile.loop.end.words if int(words[at >> 2]) != want)
    polls += [("", at & ~3, 0, {want}) for at, want in ends]

    def goes_on(who: str, pc: int, values: tuple[int, int]) -> bool:
        """Whether the branch of a core's wait goes the same way for both values."""
        compared = comparison(tile.state.l1, pc)
        if compared is None:
            return values[1] == values[0] + 1  # it counts, and what is left is waited for
        word = int(words[compared[0] >> 2])
        cls: Any = decode(word)
        held = int(tile.core[who].regs[compared[1]]) if compared[1] else 0
        first = cls.rs2.get(word) == compared[1]
        pairs = [(one, held) if first else (held, one) for one in values]
        return len({bool(cls.execute(*pair)) for pair in pairs}) == 1

    for who, address, _, values in polls:
        last, clock = _last_change(tile, address)
        if last is None or last.before not in values or not last.before:
            continue
        if who and last.where.core == who:
            continue  # it has seen what it waited for, and waits for the next
        same = [pc for other, at, pc, _ in polls if (other, at) == (who, address) and who]
        if any(goes_on(who, pc, (last.before, last.after)) for pc in same):
            continue
        text = f"L1 {address:#x} held {last.before:#x}, which {who or 'the program'} waits for,"
        text += f" until {last.where.core} overwrote it with {last.after:#x}"
        yield _found("hang", tile, last, clock, address, text)


# A word that is refused for what a configuration field holds: who has set that field.


_NAME = re.compile(r"\b[A-Za-z][A-Za-z0-9]*_\w+\b")
_COPY = "WRCFG"  # a word that only moves a value


def setter(context: Context, error: BhemuError | None) -> Iterator[Finding]:
    """The step that set a field which the message names; `context.tile` is at the error."""
    where, tile = None if error is None else error.where, context.past
    if error is None or isinstance(error, NoProgress):
        return
    if where is None or where.thread is None or tile is None:
        return
    end = tile.clock
    for name in dict.fromkeys(_NAME.findall(error.message)):
        fields = (vars(one).get(name) for one in (config_fields, thread_fields))
        if not any(isinstance(one, config_fields.Field) for one in fields):
            continue
        chain = Chain(tile)
        with suppress(BhemuError):  # in which the run has ended
            chain.why(name, spans(tile, where.core or "brisc", name))
        with suppress(BhemuError):
            chain.go_to(end)
        links = chain.links
        made = next((link for link in links if link.where and link.mnemonic != _COPY), None)
        if made is not None and made.where is not None:
            evidence = tuple("  " * link.depth + str(link) for link in links)
            text = f"{name}, for which a word of T{where.thread} is refused, has its value"
            who, victim = place(made.where, made.clock, tile), place(where, end, tile)
            yield Finding("error", "error", f"{text} from here", who, victim, evidence, error.hint)
            return


def emptied(context: Context, error: BhemuError | None) -> Iterator[Finding]:
    """The SEMINIT that took away what was posted, of a semaphore that is taken although it is 0."""
    where = None if error is None or not JIT else error.where
    index = re.search(r"semaphore (\d)", "" if error is None else error.message)
    if error is None or where is None or error.rule != RULES[GET_EMPTY].rule or index is None:
        return
    i, t, seen = int(index[1]), where.thread, seen_at(context, where.tile)
    if seen is None or t is None or not seen.record.taken[r.ISSUE + t]:
        return
    waited_for = (int(seen.record.taken[r.ISSUE + t]) - 1) % 8
    step = made_step(*seen.record.sem_init[i].tolist())
    if waited_for != i or seen.record.sem_count[i].any() or maker(step) == f"T{t}":
        return
    text = f"{maker(step)} sets semaphore {i} again, which T{t} has waited for and takes now"
    who, victim = Act(seen.tile, step).placed(), place(where, context.end)
    text, advice = f"{error.message}: {text}", "SEMINIT once, before the first post"
    yield Finding("error", "error", text, who, victim, (), advice)


# Arguments that a kernel reads and PROGRAM.toml does not give.

_BASE = "rta_l1_base"  # the word in a core's local memory that says where its arguments are
_ALIGNMENT = 16  # of the arguments of each core


def missing(context: Context) -> Iterator[Finding]:
    """The first load after the arguments of each core, of a run that went wrong.

    Looked at are the bytes up to the end of the last core's arguments: nothing else lies there that
    a kernel of this core may load. Programs under firmware have their arguments elsewhere.
    """
    program, path = context.program, context.program.path
    alone = program.firmware is not None or program.kind != "tt-metal"
    if context.symptom.fine or path is None or alone or not JIT:
        return
    for number, part in enumerate(program.placed()):
        if (seen := seen_at(context, part.at[0])) is None:
            continue
        tile, values = seen.tile, values_of(seen.tile.xy, part.at)
        data = {
            name: encode_values(spec.args, f"{part.origin}: {name}", values)
            for name, spec in part.cores.items()
            if spec.args
        }
        low = {name: tile.core[name].read32(resolve(tile, _BASE, name)) for name in data}
        ends = {name: low[name] + len(held) for name, held in data.items()}
        last = max((-(-end // _ALIGNMENT) * _ALIGNMENT for end in ends.values()), default=0)
        for name, end in ends.items():
            core = CORE_NAMES.index(name)
            loads = ((at, seen.loads(core, at)) for at in range(end, last, 4))
            at, by = next((one for one in loads if one[1] is not None), (0, None))
            if by is None:
                continue
            table = "tile.cores" if program.tiles else "cores"
            line = toml.line_of_key(path, table, number, name)
            text = f"PROGRAM.toml:{line}: {name} has {len(part.cores[name].args)} arguments, and"
            text += f" its kernel reads the word at {at - low[name]:#x} from the first, which is"
            yield Finding(
                "program", "error", f"{text} none of them",
                place(Where(file=path.name, line=line), None),
                place(where_core(tile, core, by[0]), by[1]), (),
                f"give {name} in args every word that the kernel reads, in its order",
            )  # fmt: skip


def address_modes(context: Context, tile: Tile | None) -> str:
    """An address mode that a thread sets twice before a word uses it, and one that it has not set;
    for the end of a sentence."""
    seen = seen_at(context, None if tile is None else tile.xy) if JIT else None
    if seen is None:
        return ""
    notes = seen.notes[seen.notes[:, r.N_WHAT] <= PUSHED][:, r.N_THREAD : r.N_CORE + 1].tolist()
    for thread in range(THREADS):
        held: dict[int, tuple[int, int, int]] = {}  # by register not used since: value, pc, core
        known, used, twice = set[int](), dict[int, str](), None
        for word, pc, core in (note[1:] for note in notes if note[0] == thread):
            cls = decode_word(word)
            values = {} if cls is None else cls.operands(word)
            if cls is None or cls.unit == "front":  # what it issues may use any
                held.clear()
            elif cls is SETC16:
                register, value = values["setc16_reg"], values["setc16_value"]
                old, *by = held.get(register, (value, pc, core))
                if _AB <= register < _AB + _MODES and old != value and by != [pc, core]:
                    twice = register - _AB, by, [pc, core]
                held[register] = value, pc, core
                known.add(register)
            else:
                for mode in (values[one.name] for one in cls.fields if one.operand == ADDR_MOD):
                    used.setdefault(mode, cls.name)
                    held.pop(_AB + mode, None)
        if twice is not None:
            places = (outside_headers(where_core(seen.tile, core, pc)) for pc, core in twice[1:])
            lines = " and again at ".join(f"{at.file}:{at.line}" for at in places)
            text = f"; address mode {twice[0]} is set at {lines} before a word uses it"
            unset = [mode for mode in used if not {_AB + mode, _DST + mode} & known]
            if unset:
                text += f", and {used[unset[0]]} goes by mode {unset[0]}, which nothing has set"
            return text
    return ""
