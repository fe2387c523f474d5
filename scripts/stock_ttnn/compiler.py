#!/usr/bin/python3 -SE
"""Stands in for the compiler that tt-metal calls: the same arguments, a stock RISC-V GCC 12.

tt-metal compiles kernels with sfpi's GCC 15, which no package registry carries. install.py puts
this file in its place, with setup.json beside it. Kernels that use the vector unit's C++ classes do
not compile with it; who has sfpi needs none of this.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

# What tt-metal reads: the text is part of the key under which it looks for firmware.
VERSION = "riscv-tt-elf-g++ (tenstorrent/sfpi:7.89.0[1050]) 15.1.0\n"
UNKNOWN = ("-ftt-", "-mno-tt", "-flto", "-fno-lto", "-Werror", "-Wno-error", "-march=")
# Shipped for GCC 15's linker only; support.c has what kernels call of them.
OBJECTS = ("/substitutes.o", "/noc.o", "/tdma_xmov.o")
# Named by kernels of fast dispatch, used on Ethernet cores only
SYMBOLS = ("-Wl,--defsym=__erisc_jump_table=0", "-Wl,--defsym=__global_pointer$=0")
TARGET = (
    *("-march=rv32im_zba_zbb_zicsr", "-mabi=ilp32", "-fno-lto", "-fno-threadsafe-statics"),
    # Switches stay code: a kernel's linker script has no place for tables in front of its data.
    *("-fno-jump-tables", "-fno-tree-switch-conversion", "-w", "-fpermissive"),
)


def translated(argument):
    """The arguments for GCC 12 in place of one for sfpi's."""
    if argument.startswith("-std="):
        return ["-std=c++20"]
    if argument.startswith("-mcpu="):
        return ["-D__riscv_xtttensixbh=1"] if argument.endswith("-tensix") else []
    if argument == "-g" or argument.startswith(UNKNOWN) or argument.endswith(OBJECTS):
        return []
    return [argument]


def command(arguments, setup):
    """The command line of GCC 12."""
    given = [word for argument in arguments for word in translated(argument)]
    folder = Path(setup["include"])
    if "-c" not in given:
        return [setup["gcc"], *TARGET, "-nostdlib", *SYMBOLS, *given, setup["support"], "-lgcc"]
    headers = [word for path in setup["headers"] for word in ("-isystem", path)]
    first = ("-I", str(folder / "first"), "-include", str(folder / "prefix.h"))
    prefix = (*first, "-nostdinc++", "-isystem", str(folder))
    return [setup["gcc"], *TARGET, *prefix, *given, *headers]


def main(arguments):
    """Compile or link; the exit code."""
    if "--version" in arguments:
        sys.stdout.write(VERSION)
        return 0
    if "c++-header" in arguments:  # tt-metal does without the precompiled header then
        return 1
    setup = json.loads((Path(__file__).resolve().parent / "setup.json").read_text())
    there = dict(os.environ, LD_LIBRARY_PATH=setup["libraries"])
    return subprocess.run(command(arguments, setup), env=there, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
