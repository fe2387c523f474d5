"""Kernels from disassembly listings without words: assembled again, Tensix lines by field order.

Addresses in a listing with sections are absolute; code that loads them is data to the assembler.
"""

import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from elftools.elf.elffile import ELFFile

from bhemu.riscv.assembly import ttinsn
from bhemu.tensix.insn import instructions

_LINE = re.compile(r"^[ \t]+([0-9a-f]+):[ \t]+(\S+)[ \t]*([^#<\n]*)", re.MULTILINE)
_JUMPS = ("j", "jal", "beq", "bne", "blt", "bge", "bltu", "bgeu", "blez", "bgez", "bltz", "bgtz")
_CLANG = "-target riscv32-freestanding-none -mcpu=generic_rv32+m+a+zba+zbb -c".split()


def _tensix(mnemonic: str, operands: str) -> str:
    """`.word` of a Tensix line, whose operands are the fields from the highest bit down."""
    cls = next(c for c in instructions().values() if c.name == mnemonic.removeprefix("tt").upper())
    fields = sorted(cls.fields, key=lambda f: f.mask, reverse=True)
    values = [int(x, 0) for x in operands.split(",")] if operands else []
    if values and len(values) != len(fields):
        raise ValueError(f"{mnemonic} {operands}: {cls.name} has {len(fields)} fields")
    named = {f.name: v for f, v in zip(fields, values, strict=False)}
    return f".word {ttinsn(cls.assemble(**named)):#010x}"


# Operands of vector instructions in the order of the disassembler: registers, immediates, modes.
_BINARY = "lreg_dest lreg_src_a lreg_src_b lreg_src_c instr_mod1"
_SHORT = "lreg_dest lreg_c imm12_math instr_mod1"
_SFPU = {
    "sfpload": "lreg_ind dest_reg_addr instr_mod0 sfpu_addr_mode",
    "sfpstore": "lreg_ind dest_reg_addr instr_mod0 sfpu_addr_mode",
    "sfploadi": "lreg_ind imm16 instr_mod0",
    "sfpconfig": "config_dest imm16_math instr_mod1",
    **dict.fromkeys(("sfpmad", "sfpadd", "sfpmul"), _BINARY),
    **dict.fromkeys(("sfpshft", "sfpiadd", "sfpdivp2"), _SHORT),
    "sfpmov": "lreg_dest lreg_c instr_mod1",
    "sfpsetcc": "lreg_c imm12_math instr_mod1",
    "sfpencc": "imm12_math instr_mod1",
    "sfpcompc": "",
    "sfpnop": "",
}


def _vector(mnemonic: str, operands: str) -> str:
    """`.word` of a vector instruction; SFPMUL's addend and SFPADD's factor are not in the word."""
    cls = next(c for c in instructions().values() if c.name == mnemonic.upper())
    names = _SFPU[mnemonic].split()
    values = [int(x.strip().removeprefix("L"), 0) for x in operands.split(",") if x]
    if len(values) != len(names):
        raise ValueError(f"{mnemonic} {operands}: {len(names)} operands are known")
    known = {f.name for f in cls.fields}
    named = {name: v for name, v in zip(names, values, strict=True) if name in known}
    return f".word {ttinsn(cls.assemble(**named)):#010x}"


def _source(text: str) -> str:
    lines = [".option norelax", ".option norvc"]
    for at, mnemonic, operands in _LINE.findall(text):
        operands = operands.strip()
        if mnemonic.startswith("tt"):
            line = _tensix(mnemonic, operands)
        elif mnemonic in _SFPU:
            line = _vector(mnemonic, operands)
        else:
            *first, last = operands.split(",")
            if mnemonic in _JUMPS or mnemonic in ("beqz", "bnez"):
                last = f"L{last}"
            line = f"{mnemonic} {','.join([*first, last])}"
        lines.append(f"L{at}: {line}")
    return "\n".join(lines) + "\n"


@cache
def kernel(listing: Path, core: str) -> bytes:
    """Text of the kernel of `core` ("TRISC0", ...) in a listing of all cores."""
    parts = re.split(r"^#{8} (\w+) .*$", listing.read_text(), flags=re.MULTILINE)
    text = parts[parts.index(core) + 1]
    with TemporaryDirectory() as folder:
        source, built = Path(folder) / "k.s", Path(folder) / "k.o"
        source.write_text(_source(text))
        command = [sys.executable, "-m", "ziglang", "cc", *_CLANG, str(source), "-o", str(built)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ValueError(done.stderr)
        with built.open("rb") as file:
            section = ELFFile(file).get_section_by_name(".text")
            data: bytes = section.data()
    addresses = [int(at, 16) for at, _, _ in _LINE.findall(text)]
    if len(data) != addresses[-1] + 4 - addresses[0]:
        raise ValueError(f"{core}: {len(data)} bytes, the listing has other addresses")
    return data
