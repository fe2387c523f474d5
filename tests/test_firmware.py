"""The generated C header, the shipped ELFs, and the data of their programs."""

import hashlib
import importlib.metadata
import io
import random
import re
import struct
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile
from script_module import script

import bhemu.tensix.units  # noqa: F401  (declares the instructions)
from bhemu import memmap
from bhemu.devices.bus.address_map import REGISTERS
from bhemu.kernel import c_header
from bhemu.tensix import config_fields, thread_fields
from bhemu.tensix.insn import assemble, decode, instructions

ROOT = Path(__file__).resolve().parent.parent
CORES = ("brisc", "trisc0", "trisc1", "trisc2")
PROGRAMS = ("add1", "eltwise", "matmul", "reduce", "sfpu")
ELFS = [f"elfs/{program}/{core}.elf" for program in PROGRAMS for core in CORES]
TEXT = {"brisc": 0x4000, "trisc0": 0x10000, "trisc1": 0x14000, "trisc2": 0x18000}


def toolchain() -> ModuleType:
    """firmware/build.py; skips where its pinned compiler is not installed."""
    build = script("firmware/build.py")
    try:
        found = importlib.metadata.version("ziglang")
    except importlib.metadata.PackageNotFoundError:
        found = "none"
    if found != build.ZIGLANG:
        pytest.skip(f"needs ziglang=={build.ZIGLANG}, found {found}")
    return build


def elf(path: str) -> Any:
    return ELFFile(io.BytesIO((ROOT / path).read_bytes()))


def compile_c(folder: Path, source: str) -> subprocess.CompletedProcess[str]:
    """Compile `source` after the generated header to out.o in `folder`."""
    return compile_whole(folder, '#define BHEMU_TT_ORDER\n#include "tensix_insn.h"\n' + source)


def compile_whole(folder: Path, source: str) -> subprocess.CompletedProcess[str]:
    """Compile `source`, which may include the generated header, to out.o in `folder`."""
    build = toolchain()
    (folder / "tensix_insn.h").write_text(c_header())
    (folder / "in.c").write_text(source)
    flags = [flag for flag in build.FLAGS if flag != "-g" and not flag.startswith("-Wl")]
    command = [sys.executable, "-m", "ziglang", "cc", *flags, "-c", "in.c", "-o", "out.o"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def samples() -> list[tuple[str, dict[str, int], int]]:
    """(mnemonic, field values, word): every instruction with random and with largest fields."""
    rng = random.Random(5)
    found = []
    for cls in instructions().values():
        largest = {f.name: (1 << f.width) - 1 for f in cls.fields}
        for values in (largest, {name: rng.randint(0, top) for name, top in largest.items()}):
            found.append((cls.name, values, cls.assemble(**values)))
    return found


def call(name: str, word: int) -> str:
    """An instruction's macro, without TT_OP_, TT_ or TTI_, with the arguments that give `word`."""
    (cls,) = (cls for cls in instructions().values() if cls.name == name)
    values = [str(word >> lo & (1 << hi - lo + 1) - 1) for _, hi, lo in cls.arguments]
    return f"{name}({', '.join(values)})" if values else name


def words_of(folder: Path, section: str) -> list[int]:
    """The words of a section of out.o."""
    with (folder / "out.o").open("rb") as file:
        data = ELFFile(file).get_section_by_name(section).data()
    return list(struct.unpack(f"<{len(data) // 4}I", data))


def test_header_words_are_those_of_the_assembler(tmp_path: Path) -> None:
    wanted, lines = [], []
    for name, values, word in samples():
        wanted += [word, word]
        lines.append(f"TT_OP_{call(name, word)},")
        named = "".join(f" | TTF_{name}_{field}({value})" for field, value in values.items())
        lines.append(f"TTO_{name}{named},")
    done = compile_c(tmp_path, "const unsigned words[] = {\n" + "\n".join(lines) + "\n};\n")
    assert done.returncode == 0, done.stderr
    assert words_of(tmp_path, ".rodata") == wanted


def test_header_ttinsn_is_rotated_left_by_two(tmp_path: Path) -> None:
    words = [(name, word) for name, _, word in samples()]
    lines = "\n".join(f"TTI_{call(name, word)};" for name, word in words)
    done = compile_c(tmp_path, f"void run(void) {{\n{lines}\n}}\n")
    assert done.returncode == 0, done.stderr
    got = words_of(tmp_path, ".text")
    assert got[: len(words)] == [(word << 2 | word >> 30) & 0xFFFFFFFF for _, word in words]


def test_macros_have_the_arguments_of_ckernel_ops() -> None:
    """tests/ckernel_ops.toml: the lowest bit of each argument of Blackhole's TT_OP_*, in order."""
    wanted = tomllib.loads((ROOT / "tests" / "ckernel_ops.toml").read_text())
    assert {c.name: [one.lo for one in c.arguments] for c in instructions().values()} == wanted
    defined = re.findall(r"^#define TT_OP_(\w+)(?:\((.*?)\))? ", c_header(), re.MULTILINE)
    counts = {name: len(args.split(", ")) if args else 0 for name, args in defined}
    assert counts == {name: len(lowest) for name, lowest in wanted.items()}


def test_stallwait_is_written_as_in_tt_llk(tmp_path: Path) -> None:
    """TT_OP_STALLWAIT(stall_res, wait_res), TTI_NOP without parentheses (ckernel_ops.h)."""
    source = """
    const unsigned word = TT_OP_STALLWAIT(0x41, 0x10);
    void run(unsigned wait) {
        TTI_STALLWAIT(0x41, 0x10);
        TTI_NOP;
        TT_STALLWAIT(0x41, wait);
        TT_NOP;
    }
    """
    done = compile_c(tmp_path, source)
    assert done.returncode == 0, done.stderr
    word = assemble("STALLWAIT", stall_res=0x41, wait_res=0x10)
    assert words_of(tmp_path, ".rodata") == [word]
    inlined = [w for w in words_of(tmp_path, ".text") if w & 3 != 3]
    assert [(w >> 2 | w << 30) & 0xFFFFFFFF for w in inlined] == [word, assemble("NOP")]


def test_code_for_the_order_from_low_bits_up_does_not_compile(tmp_path: Path) -> None:
    include = '#include "tensix_insn.h"\n'
    done = compile_whole(tmp_path, include + "void run(void) { TTI_STALLWAIT(0x10, 0x41); }\n")
    assert done.returncode != 0
    assert "BHEMU_TT_ORDER" in done.stderr
    done = compile_whole(tmp_path, "#define BHEMU_TT_ORDER\n" + include)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("SFPNOT(1, 0, 0, 0)", "SFPNOT imm12_math takes 0: nothing reads it"),
        ("SHIFTXA(1, 2)", "SHIFTXA log2_amount2 takes 0: nothing reads it"),
        ("SFPLOAD(0, 0, 0, 0x2000)", "SFPLOAD dest_reg_addr takes 0..8191"),
        ("INCRWC(4, 0, 0, 0)", None),
        ("INCRWC(8, 0, 0, 0)", None),  # a bit that kernels set and nothing reads
        ("INCRWC(16, 0, 0, 0)", "INCRWC rwc_cr takes 0..15"),
    ],
)
def test_header_takes_what_may_stand_in_the_word(
    tmp_path: Path, call: str, told: str | None
) -> None:
    done = compile_c(tmp_path, f"void run(void) {{ TTI_{call}; }}\n")
    if told is None:
        assert done.returncode == 0, done.stderr
    else:
        assert done.returncode != 0
        assert told in done.stderr


def test_header_refuses_a_constant_that_does_not_fit(tmp_path: Path) -> None:
    done = compile_c(tmp_path, "void run(void) { TTI_SEMPOST(0x100); }\n")
    assert done.returncode != 0
    assert "SEMPOST sem_sel takes 0..255" in done.stderr


def test_header_field_constants_are_masks_in_place() -> None:
    header = c_header()
    defines = dict(re.findall(r"^#define (\w+) (0x[0-9A-F]+|\d+)u?$", header, re.MULTILINE))
    for space in (config_fields, thread_fields):
        fields = {n: f for n, f in vars(space).items() if isinstance(f, config_fields.Field)}
        assert fields
        for name, field in fields.items():
            assert int(defines[f"{name}_ADDR32"], 0) == field.word
            assert int(defines[f"{name}_SHAMT"], 0) == field.shift
            assert int(defines[f"{name}_MASK"], 0) == field.mask << field.shift
    # DEST_TARGET_REG_CFG_PACK_SEC0_Offset: word 180, bits 11:0 (backend configuration).
    assert "#define DEST_TARGET_REG_CFG_PACK_SEC0_Offset_ADDR32 180" in header
    assert "#define ALU_FORMAT_SPEC_REG1_SrcB_MASK 0x1E00000u" in header


def test_header_has_no_name_twice() -> None:
    names = re.findall(r"^#define (\w+)", c_header(), re.MULTILINE)
    assert len(names) == len(set(names))


def test_addresses_of_the_runtime_are_those_of_the_memory_map() -> None:
    text = (ROOT / "firmware/lib/tensix.h").read_text()
    defines = {n: int(v, 16) for n, v in re.findall(r"#define (\w+) (0xFF\w+)u", text)}
    checked = 0
    for name, value in defines.items():
        short = name.removeprefix("RISCV_DEBUG_REG_")
        if short in REGISTERS:
            assert value == REGISTERS[short], name
            checked += 1
        elif hasattr(memmap, name):
            assert value == getattr(memmap, name), name
            checked += 1
    assert checked >= 6
    assert f"0x{memmap.INSTRN_BUF_BASE:X}u" in c_header()


def test_elfs_match_the_manifest() -> None:
    manifest = tomllib.loads((ROOT / "elfs/MANIFEST.toml").read_text())
    listed = {entry["path"]: entry for entry in manifest["elf"]}
    assert sorted(listed) == sorted(str(p.relative_to(ROOT)) for p in ROOT.glob("elfs/**/*.elf"))
    for path, entry in listed.items():
        data = (ROOT / path).read_bytes()
        assert hashlib.sha256(data).hexdigest() == entry["sha256"], path
        assert len(data) == entry["size"]


def test_elfs_are_what_the_sources_give() -> None:
    """Byte for byte, from a scratch folder, in a process that has imported nothing else."""
    toolchain()
    command = [sys.executable, str(ROOT / "firmware" / "build.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", ELFS)
def test_elf_shape(path: str) -> None:
    found, core = elf(path), Path(path).stem
    assert (found["e_machine"], found["e_type"], found.elfclass) == ("EM_RISCV", "ET_EXEC", 32)
    assert struct.unpack_from("<H", (ROOT / path).read_bytes(), 18)[0] == 243
    assert found["e_entry"] == TEXT[core]
    loads = [s for s in found.iter_segments() if s["p_type"] == "PT_LOAD"]
    texts = [s for s in loads if s["p_paddr"] < memmap.L1_SIZE]
    assert all(s["p_paddr"] == s["p_vaddr"] for s in loads)
    starts = [0, TEXT[core]] if core == "brisc" else [TEXT[core]]  # BRISC starts at L1 0
    assert [s["p_paddr"] for s in texts] == starts
    for segment in loads:
        if segment not in texts:
            # No initialised data: a host cannot write local RAM on hardware.
            assert (segment["p_paddr"], segment["p_filesz"]) == (memmap.LOCAL_BASE, 0)
    symbols = found.get_section_by_name(".symtab")
    assert symbols.get_symbol_by_name("runtime_args")[0]["st_value"] == 0x200
    assert symbols.get_symbol_by_name("done_words")[0]["st_value"] == 0x100


@pytest.mark.parametrize("path", ELFS)
def test_text_has_no_compressed_code_and_only_valid_tensix_words(path: str) -> None:
    data = elf(path).get_section_by_name(".text").data()
    words = struct.unpack(f"<{len(data) // 4}I", data[: len(data) & ~3])
    assert len(data) % 4 == 0
    tensix = [(w >> 2 | w << 30) & 0xFFFFFFFF for w in words if w & 3 != 3 and w]
    for word in tensix:
        cls = decode(word)
        assert cls is not None, f"{word:#010x} is no Tensix instruction"
        assert word & cls.reserved == 0, f"{cls.name} {word:#010x} sets reserved bits"
    assert bool(tensix) == ("brisc" not in path)  # BRISC pushes by stores


@pytest.mark.parametrize("path", ELFS)
def test_lines_are_relative_paths(path: str) -> None:
    found = elf(path)
    dwarf = found.get_dwarf_info()
    names = set()
    for unit in dwarf.iter_CUs():
        attributes = unit.get_top_DIE().attributes
        assert attributes["DW_AT_comp_dir"].value == b"."
        names.add(attributes["DW_AT_name"].value.decode())
    manifest = tomllib.loads((ROOT / "elfs/MANIFEST.toml").read_text())
    entry = next(e for e in manifest["elf"] if e["path"] == path)
    assert names == set(entry["sources"])
    assert all((ROOT / name).exists() for name in names)
    absolute = re.findall(
        rb"(?<![\w.])/(?:home|root|tmp|usr|work|var|opt|Users)\b[^\0]*", found.stream.getvalue()
    )
    assert absolute == []


def test_sfpu_body_is_four_words_eight_times() -> None:
    """SFPLOAD, SFPADD, SFPNOP, SFPSTORE per 32 datums, unrolled for a face."""
    data = elf("elfs/add1/trisc1.elf").get_section_by_name(".text").data()
    words = struct.unpack(f"<{len(data) // 4}I", data)
    names = [
        getattr(decode((w >> 2 | w << 30) & 0xFFFFFFFF), "name", "") for w in words if w & 3 != 3
    ]
    body = ["SFPLOAD", "SFPADD", "SFPNOP", "SFPSTORE"] * 8
    assert any(names[i : i + 32] == body for i in range(len(names)))


def test_add1_data_is_what_the_script_makes() -> None:
    data = script("scripts/make_add1_data.py")
    values = data.patterns(1, 1)
    stored = np.load(ROOT / "elfs/add1/in.npy")
    assert np.array_equal(stored.view(np.uint32), data.widen(values).view(np.uint32))
    expected = np.load(ROOT / "elfs/add1/expected.npy").view(np.uint32)
    assert np.array_equal(expected, data.widen(data.add_scalar(values, 1.0)).view(np.uint32))


@pytest.mark.parametrize(
    ("x", "scalar", "y"),
    [
        (0x3F80, 1.0, 0x4000),  # 1 + 1 = 2
        (0x3F81, 1.0, 0x4000),  # 2.0078125 is cut to 2, nearest would be a tie
        (0x3F83, 1.0, 0x4001),  # 2.0234375 is cut to 2.015625, nearest would be 2.03125
        (0xBF80, 1.0, 0x0000),  # -1 + 1 = +0
        (0x0001, 1.0, 0x3F80),  # a denormal counts as zero
        (0x7F80, 1.0, 0x7F80),  # Inf
        (0x7F80, float("-inf"), 0x7F80),  # Inf - Inf = NaN, which the packer makes Inf
        (0xFFC0, 1.0, 0x7F80),  # NaN
        (0x8000, -0.0, 0x0000),  # the packer has no negative zero
    ],
)
def test_add1_expectation(x: int, scalar: float, y: int) -> None:
    """fp32 sum, truncated to bf16 (SFPADD, SFPSTORE, PACR)."""
    add_scalar = script("scripts/make_add1_data.py").add_scalar
    assert add_scalar(np.array([x], dtype=np.uint16), scalar).tolist() == [y]
