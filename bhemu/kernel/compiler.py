"""The compilers of kernels: which one is at hand, and how it compiles and links."""

import importlib.util
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bhemu.errors import InputError

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
