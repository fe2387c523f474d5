"""`bhemu explain` says what a name is; `isa` and `disasm`, its parts, are older commands."""

import hashlib
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from bhemu.cli import output
from bhemu.cli.options import FilePath, json_option, outside_option
from bhemu.errors import EXIT_OK, InputError
from bhemu.memmap import CORE_NAMES, L1_SIZE
from bhemu.program import files, toml
from bhemu.text import printable

if TYPE_CHECKING:
    from bhemu.program.loader import Image, Segment
    from bhemu.tensix.insn import Instruction


_COVERAGE = Path(__file__).parent.parent / "data" / "golden_coverage.json"
_MODES = _COVERAGE.with_name("mode_coverage.json")
_COLUMNS = ("mnemonic", "opcode", "unit", "stall", "status")
_COLOURS = {"golden": "green", "isa-text": "cyan", "refused": "yellow", "unimplemented": "red"}


@click.command("isa")
@click.argument("mnemonic", required=False)
@json_option
@click.option("--c-header", is_flag=True, help="print the C header that firmware is compiled with")
@click.option(
    "--coverage",
    type=FilePath(path_type=Path),
    metavar="RUN",
    help="show the modes that RUN uses",
)
@outside_option
def isa_command(
    mnemonic: str | None, as_json: bool, c_header: bool, coverage: Path | None, allow_outside: bool
) -> None:
    """List the Tensix instructions, or explain one.

    The status is golden (executed by a golden case), isa-text (modelled from the ISA text alone),
    refused (with the reason) or unimplemented.

    --coverage shows the instructions, modes and data formats that RUN exercises. RUN is a
    PROGRAM.toml, an .npz case or, for a test suite, the file that BHEMU_COVERAGE named while it
    ran.
    """
    if coverage is not None:
        from bhemu.cli.measure import show_modes

        show_modes([coverage], mnemonic, as_json=as_json, allow_outside=allow_outside)
        return
    if c_header:
        if mnemonic is not None:
            raise click.UsageError(f"--c-header prints the whole header: leave {mnemonic} away")
        from bhemu.kernel import c_header as header

        assert classes()  # importing them declares the instructions
        output.say(header(), nl=False)
        return
    known = _known()
    if mnemonic is not None:
        if mnemonic.upper() not in known:
            raise _unknown(list(known), mnemonic, "isa")
        chosen = known[mnemonic.upper()]
        own = [one for one in chosen["explained"] if "instruction" in one]
        output.say(json.dumps(chosen["row"], indent=2) if as_json else "\n".join(_told(own)))
    elif as_json:
        output.say(json.dumps([one["row"] for one in known.values()], indent=2))
    else:
        _table([one["row"] for one in known.values()])


def _known() -> dict[str, dict[str, Any]]:
    """Every instruction by opcode: its `row`, and what is `explained`, by mnemonic.

    Kept in the cache for these sources: importing all classes takes longer than all else.
    """
    from bhemu.jit import cache as kept
    from bhemu.jit import host

    data = b"".join(path.read_bytes() for path in (_COVERAGE, _MODES) if path.is_file())
    name = f"isa-{host.fingerprint()}-{hashlib.sha256(data).hexdigest()[:16]}"
    if host.fingerprint() and (found := kept.read(name)) is not None:
        known: dict[str, dict[str, Any]] = json.loads(found)
        return known
    known = declared()
    if host.fingerprint():
        kept.write(name, json.dumps(known).encode())
        kept.prune("isa-", 5)
    return known


def declared() -> dict[str, dict[str, Any]]:
    """The same, of the classes."""
    return {cls.name: {"row": row(cls), "explained": _explained(cls.name)} for cls in classes()}


def classes() -> "list[type[Instruction]]":
    """Of all instructions, by opcode."""
    from bhemu.tensix import units
    from bhemu.tensix.insn import instructions

    assert units.MODULES  # importing the package declares them
    return [instructions()[opcode] for opcode in sorted(instructions())]


@cache
def _kept(path: Path) -> dict[str, list[Any]]:
    """What a file of data says of mnemonics."""
    found: dict[str, list[Any]] = {}
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else found


def status(cls: "type[Instruction]") -> str:
    """golden, isa-text, refused or unimplemented, from the class and the golden coverage."""
    if _kept(_COVERAGE).get(cls.name):
        return "golden"
    if cls.refused:
        return "refused"
    return "isa-text" if cls.execute is not None or expands(cls) else "unimplemented"


def expands(cls: "type[Instruction]") -> bool:
    """Expanded by the front end itself (MOP, MOP_CFG, REPLAY): no wait gate ever sees it."""
    return cls.unit == "front" and cls.stall_mask == 0


def row(cls: "type[Instruction]") -> dict[str, Any]:
    """One instruction as JSON-ready values, with its modes where their status differs."""
    own = modes_of(cls)
    shown: dict[str, Any] = {
        "mnemonic": cls.name,
        "opcode": cls.opcode,
        "unit": cls.unit,
        "fields": [f.as_dict() for f in cls.fields],
        "arguments": [one.name for one in cls.arguments],
        "stall": cls.stall,
        "reads": [str(term) for term in cls.reads],
        "writes": [str(term) for term in cls.writes],
        "cycles": _cycles(cls),
        "status": status(cls),
        "modes": own if len({mode["status"] for mode in own}) > 1 else [],
        "summary": cls.summary(),
    }
    if shown["status"] == "refused":
        shown["reason"] = cls.refused
    return shown


def _cycles(cls: "type[Instruction]") -> dict[str, Any] | None:
    """What modelled times charge for it, with the source (timing/cycles.py)."""
    from bhemu.timing import cycles

    found = cycles.of(cls)
    return None if found is None else found._asdict()


def modes_of(cls: "type[Instruction]") -> list[dict[str, Any]]:
    """Fields, formats and status of every mode that was tried (data/mode_coverage.json)."""
    return _kept(_MODES).get(cls.name, [])


def class_of(mnemonic: str) -> "type[Instruction]":
    """The instruction with that mnemonic in any case; InputError names the nearest."""
    known = {cls.name: cls for cls in classes()}
    if mnemonic.upper() not in known:
        raise _unknown(list(known), mnemonic)
    return known[mnemonic.upper()]


def _unknown(known: list[str], mnemonic: str, lists: str = "explain") -> InputError:
    hint = toml.suggestion(mnemonic.upper(), known).partition(" allowed:")[0]
    if not hint.startswith("did you mean"):  # it may be known, and be no instruction
        from bhemu.debug.explain import near_names

        near = near_names(mnemonic) if len(mnemonic) > 2 else []
        more = f"; there are {', '.join(near)}" if near[1:] else ""
        hint = f"bhemu explain {near[0]}{more}" if near else f"bhemu {lists} lists all of them"
    return InputError(f"no Tensix instruction is called {mnemonic!r}", hint=hint)


def _use(cls: "type[Instruction]") -> Iterator[str]:
    """How C has it, its cycles, its status, the bits that are no field."""
    if cls.reserved:
        yield f"reserved bits {cls.reserved:#08x} must be 0"
    if cls.unread:
        yield f"bits {cls.unread:#08x} are not read: kernels set them without effect"
    arguments = ", ".join(one.name for one in cls.arguments)
    yield f"in C: TTI_{cls.name}" + (f"({arguments})" if arguments else "")
    if time := _cycles(cls):
        yield (
            f"cycles: the unit takes the next word after {time['busy']:g}, is done after"
            f" {time['latency']:g} ({time['kind']}: {time['source']})"
        )
    cases = ", ".join(_kept(_COVERAGE).get(cls.name, ()))
    reason = cls.refused if status(cls) == "refused" else cases
    yield f"status: {status(cls)}" + (f" ({reason})" if reason else "")


def _table(rows: list[dict[str, Any]]) -> None:
    """A table: with rich on a terminal, in plain columns elsewhere."""
    cells = [
        [r["mnemonic"], f"{r['opcode']:#04x}", r["unit"], r["stall"], r["status"]] for r in rows
    ]
    counts = Counter(r["status"] for r in rows)
    total = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.table import Table

        table = Table(*_COLUMNS, box=None, pad_edge=False)
        for line in cells:
            table.add_row(*line[:4], f"[{_COLOURS[line[4]]}]{line[4]}[/]")
        Console().print(table)
    else:
        for line in [list(_COLUMNS), *cells]:
            output.say(f"{line[0]:<14} {line[1]:<7} {line[2]:<8} {line[3]:<12} {line[4]}")
    output.say(f"{len(rows)} instructions: {total}", err=True)


_WORD = re.compile(r"(0[xX])?[0-9a-fA-F]{1,8}")

Decode = Callable[[int], str]


@click.command("disasm")
@click.argument(
    "what", type=FilePath(), nargs=-1, required=True, metavar="FILE.elf | PROGRAM.toml | WORD..."
)
@click.option("--core", type=click.Choice(CORE_NAMES), help="which ELF of a program")
@click.option("--symbol", metavar="NAME", help="only this function")
@click.option("--riscv", is_flag=True, help="the words are RISC-V words, not Tensix words")
@click.option("--meanings", is_flag=True, help="say what the operands of Tensix words stand for")
@outside_option
def disasm_command(what: tuple[str, ...], **chosen: Any) -> None:
    """Disassemble an ELF, or words given in hexadecimal.

    The words are Tensix words unless --riscv is given.
    """
    for line in _disassembled(what, **chosen):
        output.say(line)


def _disassembled(
    texts: tuple[str, ...],
    core: str | None,
    symbol: str | None,
    riscv: bool,
    meanings: bool,
    allow_outside: bool,
) -> Iterator[str]:
    path = Path(texts[0])
    if len(texts) == 1 and (not files.is_missing(path) or _WORD.fullmatch(texts[0]) is None):
        yield from _elf(_elf_path(path, core, allow_outside), symbol, meanings)
        return
    if core or symbol:
        raise click.UsageError("--core and --symbol go with a file", click.get_current_context())
    from bhemu.riscv.assembly import disassemble

    for text in texts:
        if _WORD.fullmatch(text) is None:
            raise InputError(f"{text!r} is not a 32-bit word", hint="for example 0xA6A1000A")
        word, decode = int(text, 16), tensix_decoder(meanings)
        yield f"0x{word:08X}  {disassemble(word, 0, None, decode) if riscv else decode(word)}"


def tensix_decoder(meanings: bool) -> Decode:
    """The Tensix disassembler with every instruction declared; `meanings`: of operands, too."""
    from bhemu.tensix.insn import disassemble

    assert classes()  # importing them declares the instructions
    if not meanings:
        return disassemble
    from bhemu.machine.word_text import meaning

    def word_text(word: int) -> str:
        text = meaning(word)
        return disassemble(word) + (f"  ; {text}" if text else "")

    return word_text


def _elf_path(path: Path, core: str | None, allow_outside: bool) -> Path:
    """The ELF that `path` is, or that the program there gives to `core`."""
    if not files.is_folder(path) and path.suffix != ".toml":
        return path
    from bhemu.program.schema import load_program

    program = load_program(path, allow_outside=allow_outside)
    elves: dict[str, set[Path]] = {}
    for part in program.placed():
        for spec in part.cores.values():
            if spec.elf:
                elves.setdefault(spec.name, set()).add(spec.elf)
    if core is None and len(elves) == 1:
        core = next(iter(elves))
    if core is None or core not in elves:
        problem = "name a core" if core is None else f"{core} has no ELF"
        raise InputError(f"{path}: {problem}", hint=f"--core {' | '.join(elves)}")
    if len(elves[core]) > 1:
        hint = ", ".join(sorted(printable(str(elf)) for elf in elves[core]))
        raise InputError(f"{path}: {core} has several ELFs on its tiles; name one", hint=hint)
    return elves[core].pop()


def _elf(path: Path, symbol: str | None, meanings: bool) -> Iterator[str]:
    from bhemu.program.loader import read_elf

    image = read_elf(path)
    if symbol is not None:
        yield from _code(image, *_extent(image, symbol, image.symbols.address(symbol)), meanings)
        return
    yield f"{printable(str(path))}: entry 0x{image.entry:08X}"
    if image.symbols.line_problem:
        yield f"no source lines: {image.symbols.line_problem}"
    for segment in image.segments:
        kind = "code" if _is_code(segment) else "data"
        yield ""
        end = segment.vaddr + segment.memsz
        yield f"{kind} 0x{segment.vaddr:08X}..0x{end:08X}, loaded at 0x{segment.paddr:08X}"
        if kind == "code":
            yield from _code(image, segment.vaddr, segment.vaddr + len(segment.data), meanings)


def _is_code(segment: "Segment") -> bool:
    return segment.executable and segment.vaddr < L1_SIZE


def _extent(image: "Image", symbol: str, start: int) -> tuple[int, int]:
    """First address and end of a function."""
    for segment in image.segments:
        high = segment.vaddr + len(segment.data)
        if _is_code(segment) and segment.vaddr <= start < high:
            found = image.symbols.lookup(start)
            end = start + 4
            while end < high and (other := image.symbols.lookup(end)) and found:
                if other[0] != found[0]:
                    break
                end += 4
            return start, end
    raise InputError(f"{image.path}: {symbol} at {start:#x} is not code")


def _code(image: "Image", low: int, high: int, meanings: bool) -> Iterator[str]:
    from bhemu.riscv.assembly import disassemble

    symbols, last = image.symbols, None
    decode: Decode | None = None

    def name(address: int) -> str | None:
        if (found := symbols.lookup(address)) is None:
            return None
        return found[0] if not found[1] else f"{found[0]}+{found[1]:#x}"

    for pc in range((low + 3) & ~3, high & ~3, 4):
        held = next(s for s in image.segments if s.vaddr <= pc < s.vaddr + len(s.data))
        word = int.from_bytes(held.data[pc - held.vaddr :][:4], "little")
        if word & 3 != 3 and decode is None:
            decode = tensix_decoder(meanings)  # slow to import, and many ELFs have no Tensix word
        if (found := symbols.lookup(pc)) and found[1] == 0:
            yield ""
            yield f"{pc:08x} <{found[0]}>:"
        line = symbols.line(pc)
        if line and line != last:
            yield f"; {line[0]}:{line[1]}"
            last = line
        yield f"{pc:8x}:  {word:08x}  {disassemble(word, pc, name, decode)}"


def _complete_names(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Names that begin so, in whatever case; without any letter none of the thousands."""
    from bhemu.debug.explain import names_that_begin

    named = names_that_begin(incomplete) if incomplete else ()
    return [*map(CompletionItem, named), *click.Path().shell_complete(ctx, param, incomplete)]


@click.command("explain")
@click.argument(
    "names", nargs=-1, metavar="[WORD | NAME | ELF | PROGRAM]...", shell_complete=_complete_names
)
@json_option
@click.option("--core", type=click.Choice(CORE_NAMES), help="which ELF of a program")
@click.option("--symbol", metavar="NAME", help="only this function of an ELF")
@click.option("--riscv", is_flag=True, help="numbers are RISC-V words")
@click.option("--meanings", is_flag=True, help="say what operands stand for in an ELF, too")
@click.option("--c-header", is_flag=True, help="print the C header of all instructions")
@click.option(
    "--coverage",
    type=FilePath(path_type=Path),
    metavar="RUN",
    help="show the modes that RUN uses: a program, an .npz case, what BHEMU_COVERAGE named",
)
@outside_option
def explain_command(names: tuple[str, ...], as_json: bool, **values: Any) -> int:
    """Say what something is; list instructions; disassemble.

    A number is an address, a Tensix word or a core's instruction, or several of these. A name is an
    instruction, a configuration field, a register, a rule of an error, a part of the state, a data
    format, a class or condition of STALLWAIT, a CSR or a GPR of tt-llk. An ELF, or that of a core
    of a program, is disassembled. Without a name the instructions are listed.
    """
    ctx = click.get_current_context()
    of_code = [name for name in ("riscv", "meanings", "core", "symbol") if values[name]]
    if of_code and not names:
        text = f"--{of_code[0]} is about a word, an ELF or a program: name one"
        raise click.UsageError(text, ctx)
    if len(names) > 1 and values["coverage"] is not None:
        raise click.UsageError("--coverage shows one instruction, or all of them", ctx)
    outside = {"allow_outside": values["allow_outside"]}
    if as_json and not names and values["coverage"] is None and not values["c_header"]:
        return output.report(
            {"instructions": [one["row"] for one in _known().values()]}, EXIT_OK, as_json=True
        )
    if not names or values["c_header"] or values["coverage"] is not None:
        about = {name: values[name] for name in ("c_header", "coverage")}
        ctx.invoke(isa_command, mnemonic=(*names, None)[0], as_json=as_json, **about, **outside)
        return EXIT_OK
    if values["riscv"] or values["core"] or values["symbol"] or _is_code_file(names[0]):
        of_elf = {name: values[name] for name in ("core", "symbol", "riscv", "meanings")}
        lines = _disassembled(names, **of_elf, **outside)
        found = {"lines": list(lines)} if as_json else {}
        return output.report(found, EXIT_OK, lines, as_json=as_json)
    known = {} if names[0][:1].isdigit() else _known()
    explained = [
        one
        for name in names
        for one in (known[name]["explained"] if name in known else _explained(name))
    ]
    return output.report({"explained": explained}, EXIT_OK, _told(explained), as_json=as_json)


def _told(explained: list[dict[str, Any]]) -> Iterator[str]:
    for one in explained:
        yield f"{one['name']}: {one['kind']}"
        yield from (f"  {line}" for line in one["lines"])


def _is_code_file(name: str) -> bool:
    """Whether it is an ELF, or a program by its PROGRAM.toml."""
    path = Path(name)
    if files.is_folder(path):
        return files.is_file(path / "PROGRAM.toml")
    return path.suffix in (".elf", ".toml") or files.begins_with(path, toml.ELF)


def _explained(name: str) -> list[dict[str, Any]]:
    """What the name is, JSON-ready.

    An instruction has its row of the list, too, and in its lines how C has it, its cycles and its
    status.
    """
    from bhemu.debug.explain import explain
    from bhemu.tensix.insn import instructions

    found = []
    for one in explain(name):
        shown = one.as_dict()
        if one.kind == "a Tensix instruction":
            cls = next(cls for cls in instructions().values() if cls.name == one.name)
            shown["lines"] = [*one.lines, *_use(cls)]
            shown["instruction"] = row(cls)
        found.append(shown)
    return found
