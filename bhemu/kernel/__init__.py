"""The ELFs of a program from its sources: what has changed is compiled and linked again."""

import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import textwrap
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from bhemu.errors import InputError
from bhemu.memmap import CORE_NAMES
from bhemu.program import files, toml
from bhemu.program.specs import SOURCES, STATE, BuildSpec, build_from, source_of, stamp
from bhemu.program.toml import Table
from bhemu.tensix import config_fields, thread_fields
from bhemu.tensix.config_fields import Field, fields_of
from bhemu.tensix.insn import Instruction, instructions

# The compilers of kernels: which one is at hand, and how it compiles and links.


LIBRARY = Path(__file__).parent / "c"
"""Headers, start code and linker scripts: `lib` of a tile alone, `kernel` of kernels that a host or
firmware calls."""

FLAGS = (
    "-target riscv32-freestanding-none -mcpu=generic_rv32+m+a+zba+zbb -std=c11 -O2 -g "
    "-ffreestanding -nostdlib -nostdinc -fno-pic -fno-builtin -fno-sanitize=all "
    "-fomit-frame-pointer -fno-stack-protector -fno-asynchronous-unwind-tables "
    "-fforce-dwarf-frame -Wall -Wextra"
).split()
"""Of clang in ziglang, for C."""
FIXED = "-m elf32lriscv --eh-frame-hdr -O2 -z max-page-size=16".split()
"""Of its linker, for what is loaded where it is linked."""
LINKED = "-m elf32lriscv --emit-relocs --no-relax -z max-page-size=16".split()
"""Of its linker, for what is loaded elsewhere."""
_GCC = (
    "-std=c11 -O2 -g -ffreestanding -nostdlib -fno-pic -fno-builtin -fomit-frame-pointer "
    "-fno-stack-protector -fno-asynchronous-unwind-tables -Wall -Wextra"
).split()
_GENERIC = ("-march=rv32ima_zba_zbb", "-mabi=ilp32")
_TT = "riscv-tt-elf-gcc"
_GCCS = (_TT, "riscv32-unknown-elf-gcc", "riscv64-unknown-elf-gcc", "riscv-none-elf-gcc")
_OF_C = ("-std=c11", "-ffreestanding")  # under which main is an ordinary name in C++
_OF_CXX = ("-std=c++17", "-fhosted", "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics")
_STAND_INS = ("-idirafter", str(LIBRARY / "llk"))
_KEPT = ("PATH", "HOME", "TMPDIR", "ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR", "LD_LIBRARY_PATH")


@dataclass(frozen=True)
class Compiler:
    """A compiler for the cores: clang of the package ziglang, or a GCC for RISC-V."""

    program: Path
    is_zig: bool

    def compile(
        self, core: str, source: str | Path, out: str | Path, more: Sequence[str]
    ) -> list[str]:
        """The command that compiles `source`, C, C++ or assembler, to the object `out`."""
        is_cxx = Path(source).suffix in (".cc", ".cpp", ".cxx")
        flags = [*(FLAGS if self.is_zig else (*_GCC, *self._machine(core)))]
        if is_cxx:
            flags = [*(flag for flag in flags if flag not in _OF_C), *_OF_CXX, *_STAND_INS]
        driver = self._driver("c++" if is_cxx else "cc")
        return [*driver, *flags, f"-DCORE_{core.upper()}", *more, "-c", str(source), "-o", str(out)]

    def link(
        self,
        core: str,
        script: str | Path,
        objects: Sequence[str | Path],
        out: str | Path,
        library: str | Path,
        *,
        moves: bool,
    ) -> list[str]:
        """The command that links objects after a linker script, which includes others of `library`.

        moves: it is loaded elsewhere than it is linked, so that relocations are kept.
        """
        placed = ["-L", str(library), "-T", str(script), *map(str, objects), "-o", str(out)]
        if self.is_zig:
            return [str(self.program), "ld.lld", *(LINKED if moves else FIXED), *placed]
        relocations = ("-Wl,--emit-relocs", "-Wl,--no-relax") if moves else ()
        flags = ("-nostdlib", *self._machine(core), "-Wl,-z,max-page-size=16", *relocations)
        return [*self._driver("cc"), *flags, *placed, "-lgcc"]

    def _driver(self, language: str) -> list[str]:
        return [str(self.program), language] if self.is_zig else [str(self.program)]

    def _machine(self, core: str) -> tuple[str, ...]:
        """The processor that a GCC compiles for: that of Tenstorrent knows the cores by name."""
        if self.program.name != _TT:
            return _GENERIC
        return ("-mcpu=tt-bh-tensix" if core.startswith("trisc") else "-mcpu=tt-bh",)


def run(command: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a compiler in `folder`. Variables that change what it reads, as CPATH, are not passed."""
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment)


def zig() -> Path | None:
    """The compiler of the package ziglang, None where it is not installed."""
    found = importlib.util.find_spec("ziglang")
    if found is None or not found.submodule_search_locations:
        return None
    return Path(found.submodule_search_locations[0]) / "zig"


def at_hand(named: str | None = None) -> Compiler:
    """The compiler called `named`, else ziglang, else a GCC for RISC-V on the path.

    InputError where there is none.
    """
    if named is not None:
        found = shutil.which(named)
        if found is None:
            raise InputError(f"--compiler {named}: no such program")
        return Compiler(Path(found).absolute(), Path(found).name == "zig")
    if (program := zig()) is not None:
        return Compiler(program, is_zig=True)
    for name in _GCCS:
        if (found := shutil.which(name)) is not None:
            return Compiler(Path(found).absolute(), is_zig=False)
    raise InputError(
        "no compiler for kernels: neither the package ziglang nor a RISC-V GCC is installed",
        hint="pip install 'bhemu[build]', or put riscv-tt-elf-gcc on the path",
    )


_FRAMES = {"elf": "lib", "image": "lib", "tt-metal": "kernel"}  # start code, linker scripts
_PLACE = re.compile(
    r"^((?:In file included|\s+) from )?(?:\./)?(?=[^/\s][^\s:]*:\d+)", re.MULTILINE
)


@dataclass(frozen=True)
class Elf:
    """One ELF of a program: paths are relative to its folder."""

    path: Path
    core: str
    source: Path


@dataclass(frozen=True)
class Plan:
    """What a program is built from."""

    folder: Path
    frame: str
    elfs: tuple[Elf, ...]
    kept: tuple[Path, ...]  # ELFs that are there without a source
    include: tuple[str, ...]
    flags: tuple[str, ...]


@dataclass(frozen=True)
class Built:
    """What became of an ELF. `said`: what the compiler said; `commands`: those that were run."""

    elf: Elf
    state: str  # "built", "unchanged" or "failed"
    said: str = ""
    commands: Sequence[Sequence[str]] = ()

    def as_dict(self) -> dict[str, object]:
        """JSON-ready values; paths are relative to the folder of the program."""
        elf = {"elf": str(self.elf.path), "core": self.elf.core, "source": str(self.elf.source)}
        return {**elf, "state": self.state, "said": self.said}


def plan(path: Path) -> Plan:
    """What the PROGRAM.toml at `path`, a file or a folder, says about its ELFs and their sources.

    An ELF that is there and has no source is left as it is. InputError for one that has neither,
    and for one that two cores load: each core's is linked for its own place.
    """
    path = path / "PROGRAM.toml" if files.is_folder(path) else path
    data = toml.read(path, "bhemu new NAME --kernel writes one with its sources")
    top = Table(data, str(path), path.parent, inside=True)
    kind = top.text("kind", "elf")
    if kind not in _FRAMES:
        top.fail(f'kind = "{kind}" is not built here', hint=f"one of {', '.join(_FRAMES)} is")
    spec = build_from(top)
    if os.environ.get(files.CONFINED):
        _check_confined(top, spec)
    found: dict[Path, Elf] = {}
    for table in (top, *top.tables("tile")):
        cores = table.table("cores")
        for core in CORE_NAMES:
            if core not in cores or (name := cores.table(core).text("elf", None)) is None:
                continue
            elf = Path(os.path.normpath(name))
            if not files.is_inside(path.parent / elf, path.parent):
                cores.fail(f"{core}: {name} leaves the folder of the program")
            if found.setdefault(elf, Elf(elf, core, Path())).core != core:
                cores.fail(
                    f"{found[elf].core} and {core} load the same {name}",
                    hint="an ELF is linked for one core: #include one source in two files",
                )
            source = source_of(path.parent / elf, path.parent)
            if source is not None:
                found[elf] = Elf(elf, core, source.relative_to(path.parent))
            elif files.is_missing(path.parent / elf):
                cores.fail(
                    f"{core}: {name} has no source",
                    hint=f"{elf.stem} with one of the endings {' '.join(SOURCES)} beside {path}",
                )
    elfs = tuple(one for one in found.values() if one.source != Path())
    if not elfs:
        top.fail(
            "no core has an ELF that is built from a source here",
            hint="math.elf is made of math.c beside PROGRAM.toml: bhemu new NAME --kernel",
        )
    kept = tuple(one.path for one in found.values() if one.source == Path())
    return Plan(path.parent, _FRAMES[kind], elfs, kept, _include(top, spec), spec.flags)


_HARMLESS = re.compile(
    r"-D\w+(=[^/]*)?|-U\w+|-O[0-3sg]|-W[a-z0-9-]+(=\d+)?|-f(?!plugin)[a-z0-9-]+|-g\d?|-std=[a-z0-9+]+"
)


def _check_confined(top: Table, spec: BuildSpec) -> None:
    """InputError for what lets a compiler read or write outside of the folder of the program."""
    table = top.table("build")
    for flag in spec.flags:
        if _HARMLESS.fullmatch(flag) is None:
            table.fail(f"flags: {flag} is not allowed here", hint="-D -U -O -W -f -g -std are")
    for text in spec.include:
        if not files.is_inside(top.folder / os.path.expandvars(text), top.folder):
            table.fail(f"include: {text} leaves the folder of the program")
    for path in (top.folder / STATE, *(top.folder / STATE).rglob("*")):
        if not files.is_inside(path, top.folder):
            table.fail(f"{path} leads out of the folder of the program", hint="remove it")


def _include(top: Table, spec: BuildSpec) -> tuple[str, ...]:
    """The folders of [build] include, with variables of the environment put in."""
    table = top.table("build")
    found = []
    for text in spec.include:
        for name in re.findall(r"\$\{?(\w+)", text):
            if name not in os.environ:
                table.fail(f"include: {text}: ${name} is not set", hint=f"export {name}=FOLDER")
        folder = os.path.expandvars(os.path.expanduser(text))
        if not files.is_folder(top.folder / folder):
            table.fail(f"include: no such folder: {folder}")
        found.append(folder)
    return tuple(found)


def build(planned: Plan, compiler: Compiler) -> Iterator[Built]:
    """Build every ELF whose sources, headers or commands are not those of last time, in order."""
    state = planned.folder / STATE
    header = state / "include" / "tensix_insn.h"
    made_from = [Path(__file__), *(Path(__file__).parents[1] / "tensix").rglob("*.py")]
    try:
        header.parent.mkdir(parents=True, exist_ok=True)
        newest = max(file.stat().st_mtime for file in made_from)
        if not header.exists() or header.stat().st_mtime < newest:
            import bhemu.tensix.units  # noqa: F401  (declares the instructions)

            header.write_text(c_header())
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            yield from pool.map(lambda elf: _build(planned, elf, compiler), planned.elfs)
    except OSError as problem:
        raise InputError(f"{problem.filename or state}: {problem.strerror}") from problem


def _build(planned: Plan, elf: Elf, compiler: Compiler) -> Built:
    folder, frame = planned.folder, LIBRARY / planned.frame
    noted, script = folder / stamp(elf.path), frame / f"{elf.core}.ld"
    places = [f"-I{each}" for each in (f"{STATE}/include", LIBRARY, *planned.include)]
    commands, objects = [], []
    for source in (frame / "crt0.S", elf.source):
        made = f"{STATE}/{noted.stem}.{source.stem}.o"
        more = [*places, *planned.flags, "-MD", "-MF", f"{made}.d"]
        commands.append(compiler.compile(elf.core, source, made, more))
        objects.append(made)
    moves = planned.frame == "kernel"
    commands.append(compiler.link(elf.core, script, objects, elf.path, LIBRARY, moves=moves))
    if _is_as_stamped(noted, folder, commands):
        os.utime(folder / elf.path)  # for tools that compare times: not older than its source
        return Built(elf, "unchanged")
    noted.unlink(missing_ok=True)
    (folder / elf.path).parent.mkdir(parents=True, exist_ok=True)
    said, seen = "", "" if folder == Path() else f"{folder}/"
    for command in commands:
        done = run(command, folder)
        said += _PLACE.sub(lambda at: (at[1] or "") + seen, done.stderr)
        if done.returncode:
            (folder / elf.path).unlink(missing_ok=True)  # no run takes it for what was just built
            return Built(elf, "failed", said, commands)
    inputs = [str(elf.path), str(script)]
    for made in objects:
        rule = (folder / f"{made}.d").read_text().replace("\\\n", " ").partition(": ")[2]
        inputs += [path.replace("\\ ", " ") for path in re.split(r"(?<!\\)\s+", rule.strip())]
    digest = _digest(folder, commands, inputs)
    noted.write_text(json.dumps({"inputs": inputs, "digest": digest}))
    return Built(elf, "built", said, commands)


def _is_as_stamped(stamp: Path, folder: Path, commands: list[list[str]]) -> bool:
    """Whether the ELF, what it was made from and how are those of its stamp."""
    try:
        noted = json.loads(stamp.read_text())
        return bool(noted["digest"] == _digest(folder, commands, noted["inputs"]))
    except (OSError, ValueError, LookupError, TypeError):
        return False


def _digest(folder: Path, commands: list[list[str]], inputs: list[str]) -> str:
    found = hashlib.sha256(json.dumps(commands).encode())
    for path in inputs:
        found.update(hashlib.sha256((folder / path).read_bytes()).digest())
    return found.hexdigest()


# The C header that kernels are compiled with, generated from the instruction classes.
_PROLOGUE = """\
/* Generated by bhemu/kernel from the instruction classes: do not edit. */
#pragma once

#if !defined(BHEMU_TT_ORDER) && !defined(BHEMU_LLK)
#error "TT_* and TTI_* take their arguments in the order of tt-llk's ckernel_ops.h now, high bits \\
first. TT_OP_* is the word, TT_* pushes it. Define BHEMU_TT_ORDER in sources written for this."
#endif

/* As in tt-llk's ckernel_ops.h for Blackhole, with its number and order of arguments; a macro
 * without arguments has no parentheses.
 * TT_OP_<NAME>(...)     the word
 * TTI_<NAME>(...)       the word in the instruction stream; constants only, checked to fit
 * TT_<NAME>(...)        the word by a store to the push window; also for values known at run time
 * TTO_<NAME> | TTF_<NAME>_<field>(value) | ...   the word from named fields, the rest 0
 * With BHEMU_LLK the first three are those of ckernel_ops.h, which is included before (lib/llk.h).
 * <FIELD>_ADDR32, _SHAMT, _MASK   word index, shift and mask in place of a configuration field */

#define TT_PUT(value, shift, max) (((unsigned)(value) & (max)) << (shift))
#ifdef __cplusplus
#define _Static_assert static_assert
#endif
#define TT_FITS(value, bits, text) _Static_assert(((unsigned)(value) & ~(bits)) == 0, text)

/* A RISC-V word whose low two bits are not 3 carries the Tensix word rotated left by 2. */
#ifndef BHEMU_LLK
#define TT_INSN(word) \\
    __asm__ volatile(".4byte %0" : : "i"(((word) << 2) | ((word) >> 30)) : "memory")
#endif
#define TT_PUSH(word) \\
    do { \\
        *(volatile unsigned *)0xFFE40000u = (word); \\
    } while (0)
"""


def c_header() -> str:
    """Text of the header: every declared Tensix instruction and every configuration field.

    Only classes that are already imported are seen; importing `bhemu.tensix.units` declares all.
    """
    parts = [_PROLOGUE]
    for opcode in sorted(instructions()):
        parts.append("\n".join(_instruction(instructions()[opcode])))
    parts.append("\n".join(_fields("Config", fields_of(config_fields))))
    parts.append("\n".join(_fields("ThreadConfig", fields_of(thread_fields))))
    return "\n\n".join(parts) + "\n"


def _instruction(cls: type[Instruction]) -> Iterator[str]:
    name, args = cls.name, ", ".join(one.name for one in cls.arguments)
    call = f"({args})" if args else ""
    yield from _comment(cls)
    yield f"#define TTO_{name} 0x{cls.opcode << 24:08X}u"
    for field in cls.fields:
        put = f"TT_PUT(value, {field.lo}, 0x{field.max:X}u)"
        yield f"#define TTF_{name}_{field.name}(value) {put}"
    yield "#ifndef BHEMU_LLK"
    ascending = cls.arguments[::-1]
    puts = (f"TT_PUT({one.name}, {one.lo}, 0x{one.max:X}u)" for one in ascending)
    yield f"#define TT_OP_{name}{call} ({' | '.join([f'TTO_{name}', *puts])})"
    yield f"#define TTI_{name}{call} \\"
    yield "    do { \\"
    declared = sum(field.mask for field in cls.fields) | cls.unread
    for one in ascending:
        used = declared >> one.lo & one.max
        text = f'"{name} {one.name} takes {_values(used)}"'
        yield f"        TT_FITS({one.name}, 0x{used:X}u, {text}); \\"
    yield f"        TT_INSN(TT_OP_{name}{call}); \\"
    yield "    } while (0)"
    yield f"#define TT_{name}{call} TT_PUSH(TT_OP_{name}{call})"
    yield "#endif"


def _comment(cls: type[Instruction]) -> Iterator[str]:
    """What the instruction does, and what the values of its operands stand for."""
    lines = [cls.summary()]
    for field in reversed(cls.fields):
        operand = field.operand
        rows = [] if operand is None else [f"{value} = {text}" for value, text in operand.rows()]
        if operand is not None and (rows or operand.about):
            parts = [operand.about] if operand.about else []
            text = f"{field.name}: {': '.join([*parts, '; '.join(rows)] if rows else parts)}"
            lines += textwrap.wrap(text, 94, subsequent_indent="  ")
    lines[-1] += " */"
    yield f"/* {lines[0]}"
    yield from (f" * {line}" for line in lines[1:])


def _values(used: int) -> str:
    """The values of an argument whose `used` bits may be set."""
    if used & used + 1:
        return f"the bits 0x{used:X}"
    return f"0..{used}" if used else "0: nothing reads it"


def _fields(space: str, members: dict[str, Field]) -> Iterator[str]:
    yield f"/* {space} fields */"
    for name, field in members.items():
        yield f"#define {name}_ADDR32 {field.word}"
        yield f"#define {name}_SHAMT {field.shift}"
        yield f"#define {name}_MASK 0x{field.mask << field.shift:X}u"
