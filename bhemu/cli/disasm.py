"""`bhemu disasm`: an ELF with symbols, source lines and Tensix words, or single words."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bhemu.cli import output
from bhemu.cli.options import outside_option
from bhemu.errors import InputError
from bhemu.memmap import CORE_NAMES, L1_SIZE
from bhemu.program import files
from bhemu.text import printable

if TYPE_CHECKING:
    from bhemu.program.loader import Image, Segment

_WORD = re.compile(r"(0[xX])?[0-9a-fA-F]{1,8}")

Decode = Callable[[int], str]


@click.command("disasm")
@click.argument("what", nargs=-1, required=True, metavar="FILE.elf | PROGRAM.toml | WORD...")
@click.option("--core", type=click.Choice(CORE_NAMES), help="which ELF of a program")
@click.option("--symbol", metavar="NAME", help="only this function")
@click.option("--riscv", is_flag=True, help="the words are RISC-V words, not Tensix words")
@click.option("--meanings", is_flag=True, help="say what the operands of Tensix words stand for")
@outside_option
def command(
    what: tuple[str, ...],
    core: str | None,
    symbol: str | None,
    riscv: bool,
    meanings: bool,
    allow_outside: bool,
) -> None:
    """Disassemble an ELF, or words given in hexadecimal.

    The words are Tensix words unless --riscv is given.
    """
    path = Path(what[0])
    if len(what) == 1 and (not files.is_missing(path) or _WORD.fullmatch(what[0]) is None):
        for line in _elf(_elf_path(path, core, allow_outside), symbol, meanings):
            output.say(line)
        return
    if core or symbol:
        raise click.UsageError("--core and --symbol go with a file", click.get_current_context())
    for text in what:
        output.say(_word(text, riscv, meanings))


def _word(text: str, riscv: bool, meanings: bool) -> str:
    if _WORD.fullmatch(text) is None:
        raise InputError(f"{text!r} is not a 32-bit word", hint="for example 0xA6A1000A")
    word = int(text, 16)
    if not riscv:
        return f"0x{word:08X}  {tensix_decoder(meanings)(word)}"
    from bhemu.riscv.assembly import disassemble

    return f"0x{word:08X}  {disassemble(word, 0, None, tensix_decoder(meanings))}"


def tensix_decoder(meanings: bool = False) -> Decode:
    """The Tensix disassembler with every instruction declared; `meanings`: of operands, too."""
    from bhemu.tensix import units
    from bhemu.tensix.insn import disassemble

    assert units.MODULES
    if not meanings:
        return disassemble
    from bhemu.machine.word_text import meaning

    def told(word: int) -> str:
        text = meaning(word)
        return disassemble(word) + (f"  ; {text}" if text else "")

    return told


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
        start = image.symbols.address(symbol)
        yield from _code(image, *_extent(image, symbol, start), meanings)
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
    for pc in range((low + 3) & ~3, high & ~3, 4):
        word = _word_at(image, pc)
        if word & 3 != 3 and decode is None:
            decode = tensix_decoder(meanings)  # slow to import, and many ELFs have no Tensix word
        found = symbols.lookup(pc)
        if found and found[1] == 0:
            yield ""
            yield f"{pc:08x} <{found[0]}>:"
        line = symbols.line(pc)
        if line and line != last:
            yield f"; {line[0]}:{line[1]}"
            last = line
        yield f"{pc:8x}:  {word:08x}  {disassemble(word, pc, _namer(image), decode)}"


def _word_at(image: "Image", pc: int) -> int:
    for segment in image.segments:
        if segment.vaddr <= pc < segment.vaddr + len(segment.data):
            at = pc - segment.vaddr
            return int.from_bytes(segment.data[at : at + 4], "little")
    raise AssertionError(pc)


def _namer(image: "Image") -> Callable[[int], str | None]:
    def name(address: int) -> str | None:
        found = image.symbols.lookup(address)
        if found is None:
            return None
        return found[0] if not found[1] else f"{found[0]}+{found[1]:#x}"

    return name
