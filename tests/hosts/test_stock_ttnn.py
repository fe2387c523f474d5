"""The stand-in for sfpi's compiler: what it makes of tt-metal's command lines."""

import subprocess
import sys
from pathlib import Path

import pytest
from script_module import script

COMPILER = "scripts/stock_ttnn/compiler.py"
ROOT = Path(__file__).resolve().parents[2]
SETUP = {
    "gcc": "/tools/g++",
    "include": "/tools/include",
    "support": "/tools/support.o",
    "headers": ["/tools/c++"],
    "libraries": "",
}


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ("-O3", ["-O3"]),
        ("-std=c++17", ["-std=c++20"]),
        ("-mcpu=tt-bh", []),
        ("-mcpu=tt-bh-tensix", ["-D__riscv_xtttensixbh=1"]),
        ("-flto=auto", []),
        ("-ftt-nttp", []),
        ("-Werror", []),
        ("-g", []),
        ("/ttnn/lib/blackhole/substitutes.o", []),
        ("/ttnn/lib/blackhole/crt0.o", ["/ttnn/lib/blackhole/crt0.o"]),
        ("-Wl,--just-symbols=fw.elf", ["-Wl,--just-symbols=fw.elf"]),
    ],
)
def test_arguments_of_sfpi_in_gcc_12_s_words(given: str, taken: list[str]) -> None:
    assert script(COMPILER).translated(given) == taken


def test_a_compilation_gets_our_headers_and_a_link_our_functions() -> None:
    compiled = script(COMPILER).command(["-c", "k.cc", "-o", "k.o"], SETUP)
    assert compiled[0] == "/tools/g++"
    assert compiled[-5:] == ["k.cc", "-o", "k.o", "-isystem", "/tools/c++"]
    assert "/tools/include/prefix.h" in compiled
    linked = script(COMPILER).command(["k.o", "-o", "k.elf"], SETUP)
    assert linked[-2:] == ["/tools/support.o", "-lgcc"]
    assert "-nostdlib" in linked


def test_its_version_is_the_one_that_the_firmware_s_number_was_made_from() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / COMPILER, "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == "riscv-tt-elf-g++ (tenstorrent/sfpi:7.89.0[1050]) 15.1.0\n"


def test_it_refuses_a_precompiled_header() -> None:
    line = [sys.executable, ROOT / COMPILER, "-x", "c++-header", "pch.h"]
    assert subprocess.run(line, check=False).returncode == 1
