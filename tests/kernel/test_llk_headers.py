"""A kernel with tt-llk's macros: examples/llk_math.cc against the math.c of `bhemu new --kernel`.

TT_LLK names a checkout of tt-llk; without it headers stand in that have the same macros, made from
the arguments that tests/ckernel_ops.toml holds.
"""

import os
import shutil
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner
from elftools.elf.elffile import ELFFile

from bhemu import kernel
from bhemu.cli import main
from bhemu.tensix import units
from bhemu.tensix.insn import instructions

ROOT = Path(__file__).parents[2]
BELOW = "tt_llk_blackhole/common/inc"
NAMES = """#include <cstdint>
#include "tensix.h"
namespace ckernel {
struct p_sfpu { constexpr static std::uint32_t LREG0 = 0; };
struct p_setrwc { constexpr static std::uint32_t CLR_NONE = 0, CLR_A = 1, SET_ABD_F = 0xf; };
struct p_stall {
    constexpr static std::uint32_t STALL_SYNC = 2, STALL_SFPU = 0x100;
    constexpr static std::uint32_t MATH = 0x10, WAIT_SFPU = 0x800;
};
}
"""

pytestmark = pytest.mark.skipif(kernel.zig() is None, reason="ziglang is not installed")


NEWER_NAMES = """
constexpr static std::uint32_t REG2FLOP_FLOP_INDEX(std::uint32_t addr) {
    return addr - THCON_CFGREG_BASE_ADDR32;
}
static_assert(REG2FLOP_FLOP_INDEX(64) == 0, "THCON's registers begin at Config word 64");
"""
NEWER = """
#define TTI_INSN(word) __asm__ __volatile__(".error \\"TTI_INSN in non-tensix code\\"")
#define TT_INSN(word) __asm__ __volatile__(".error \\"TT_INSN in non-tensix code\\"")
"""


def stand_in(folder: Path, newer: bool) -> None:
    """ckernel_ops.h as tt-llk writes it, and some constants; newer: as in ttnn of 2026."""
    assert units.MODULES  # importing the package declares the instructions
    (folder / BELOW).mkdir(parents=True)
    lowest = tomllib.loads((ROOT / "tests" / "ckernel_ops.toml").read_text())
    lines = [
        "#define TT_OP(opcode, params) ((opcode << 24) + params)",
        '#define INSTRUCTION_WORD(x) __asm__ __volatile__(".ttinsn %0" : : "i"((x)))',
    ]
    for cls in instructions().values():
        names = [f"a{n}" for n in range(len(lowest[cls.name]))]
        call = f"({', '.join(names)})" if names else ""
        put = " + ".join(f"(({a}) << {lo})" for a, lo in zip(names, lowest[cls.name], strict=True))
        word = f"TT_OP_{cls.name}{call}"
        lines.append(f"#define {word} TT_OP({cls.opcode:#x}, ({put or 0}))")
        push = f"TT_INSN({word})" if newer else f"ckernel::instrn_buffer[0] = {word}"
        lines.append(f"#define TT_{cls.name}{call} {push}")
        stream = "TTI_INSN" if newer else "INSTRUCTION_WORD"
        lines.append(f"#define TTI_{cls.name}{call} {stream}({word})")
    (folder / BELOW / "ckernel_ops.h").write_text(
        (NEWER if newer else "") + "\n".join(lines) + "\n"
    )
    (folder / BELOW / "ckernel_instr_params.h").write_text(NAMES + (NEWER_NAMES if newer else ""))


@pytest.mark.parametrize("headers", ["older", "newer", "checkout"])
def test_the_same_kernel_with_tt_llks_macros(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, headers: str
) -> None:
    if headers != "checkout":
        stand_in(tmp_path / "llk", headers == "newer")
        monkeypatch.setenv("TT_LLK", str(tmp_path / "llk"))
    elif "TT_LLK" not in os.environ:
        pytest.skip("TT_LLK names no checkout of tt-llk")
    monkeypatch.chdir(tmp_path)

    def bhemu(*arguments: str) -> str:
        result = CliRunner().invoke(main, arguments)
        assert result.exit_code == 0, result.output
        return result.stdout

    texts = []
    bhemu("new", "relu", "--kernel")
    for file in ("math.c", "math.cc"):
        if file == "math.cc":
            Path("relu/math.c").unlink()
            shutil.copy(ROOT / "examples" / "llk_math.cc", "relu/math.cc")
            program = Path("relu/PROGRAM.toml").read_text()
            assert "include = []" in program
            there = program.replace("include = []", f'include = ["$TT_LLK/{BELOW}"]')
            Path("relu/PROGRAM.toml").write_text(there)
        assert f"({file})" in bhemu("build", "relu").replace("trisc1, ", "")
        assert "equal (4096 of 4096)" in bhemu("run", "relu")
        with open("relu/build/math.elf", "rb") as elf:
            texts.append(ELFFile(elf).get_section_by_name(".text").data())
    assert texts[0] == texts[1], "the same instructions, to the bit"
