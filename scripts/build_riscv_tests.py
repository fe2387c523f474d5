"""Builds the ELFs for tests/riscv/test_riscv_tests.py from a checkout of riscv-tests.

The environment is our own: a test sets gp to 1 when it has passed, to twice the number of the case
that failed plus 1 otherwise, and parks. Needs ziglang, as firmware/build.py.
Usage: python scripts/build_riscv_tests.py CHECKOUT FOLDER
"""

import subprocess
import sys
import tempfile
from pathlib import Path

SUITES = {"rv32ui": "", "rv32um": "m", "rv32ua": "a", "rv32uzba": "zba", "rv32uzbb": "zbb"}
ENVIRONMENT = """
#define RVTEST_RV32U
#define RVTEST_RV64U
#define TESTNUM gp
#define RVTEST_CODE_BEGIN .section .text.init; .globl _start; _start:
#define RVTEST_CODE_END
#define RVTEST_PASS li gp, 1; 1: j 1b
#define RVTEST_FAIL slli gp, gp, 1; ori gp, gp, 1; 1: j 1b
#define RVTEST_DATA_BEGIN .align 4; .globl begin_signature; begin_signature:
#define RVTEST_DATA_END
#define EXTRA_DATA
"""
LAYOUT = "SECTIONS { . = 0x10000; .text : { *(.text.init) *(.text*) *(.data*) *(.bss*) } }"
COMMAND = (
    *(sys.executable, "-m", "ziglang", "cc", "--target=riscv32-freestanding", "-nostdlib"),
    *("-Wl,--build-id=none", "-D__riscv_xlen=32", "-Wno-macro-redefined"),
)


def build(checkout: Path, folder: Path) -> None:
    """Compile the tests of SUITES; an ELF is called by its suite and its test."""
    with tempfile.TemporaryDirectory() as own:
        (Path(own) / "riscv_test.h").write_text(ENVIRONMENT)
        (Path(own) / "layout.ld").write_text(LAYOUT)
        for suite, extension in SUITES.items():
            for source in sorted((checkout / "isa" / suite).glob("*.S")):
                cpu = "-mcpu=generic_rv32+m+a+zicsr" + (f"+{extension}" if extension else "")
                include = (f"-I{own}", f"-I{checkout / 'isa' / 'macros' / 'scalar'}")
                output = folder / f"{suite}-{source.stem}.elf"
                link = (f"-Wl,-T,{own}/layout.ld", str(source), "-o", str(output))
                done = subprocess.run([*COMMAND, cpu, *include, *link], capture_output=True)
                if done.returncode:  # clang refuses constants of 64 bits where others cut them
                    print(f"not built: {output.name}: {done.stderr.decode().splitlines()[0]}")


if __name__ == "__main__":
    build(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve())
