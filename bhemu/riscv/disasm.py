"""Disassembly of the baby RISC-V cores' words, `.ttinsn` words included, as GNU objdump prints."""

import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

from bhemu.riscv import csr

ABI_NAMES = (
    *("zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1"),
    *(f"a{i}" for i in range(8)),
    *(f"s{i}" for i in range(2, 12)),
    *(f"t{i}" for i in range(3, 7)),
)

# One line per printed form: funct7 rs2 rs1 funct3 rd opcode, then mnemonic and operands. A dot
# is any bit; the first line that matches wins, so a pseudo-instruction precedes what it stands
# for. A trailing * on the mnemonic stands for the .aq and .rl suffixes. Sources: RISC-V
# unprivileged ISA, RV32I, M, Zaamo, Zicsr, Zifencei and B; privileged ISA for mret and wfi.
_FORMS = """
....... ..... ..... ... ..... 0110111 lui rd,upper
....... ..... ..... ... ..... 0010111 auipc rd,upper
....... ..... ..... ... 00000 1101111 j jump
....... ..... ..... ... 00001 1101111 jal jump
....... ..... ..... ... ..... 1101111 jal rd,jump
0000000 00000 00001 000 00000 1100111 ret
0000000 00000 ..... 000 00000 1100111 jr rs1
....... ..... ..... 000 00000 1100111 jr imm(rs1)
0000000 00000 ..... 000 00001 1100111 jalr rs1
....... ..... ..... 000 00001 1100111 jalr imm(rs1)
0000000 00000 ..... 000 ..... 1100111 jalr rd,rs1
....... ..... ..... 000 ..... 1100111 jalr rd,imm(rs1)
....... 00000 ..... 000 ..... 1100011 beqz rs1,branch
....... ..... ..... 000 ..... 1100011 beq rs1,rs2,branch
....... 00000 ..... 001 ..... 1100011 bnez rs1,branch
....... ..... ..... 001 ..... 1100011 bne rs1,rs2,branch
....... 00000 ..... 100 ..... 1100011 bltz rs1,branch
....... ..... 00000 100 ..... 1100011 bgtz rs2,branch
....... ..... ..... 100 ..... 1100011 blt rs1,rs2,branch
....... ..... 00000 101 ..... 1100011 blez rs2,branch
....... 00000 ..... 101 ..... 1100011 bgez rs1,branch
....... ..... ..... 101 ..... 1100011 bge rs1,rs2,branch
....... ..... ..... 110 ..... 1100011 bltu rs1,rs2,branch
....... ..... ..... 111 ..... 1100011 bgeu rs1,rs2,branch
....... ..... ..... 000 ..... 0000011 lb rd,imm(rs1)
....... ..... ..... 001 ..... 0000011 lh rd,imm(rs1)
....... ..... ..... 010 ..... 0000011 lw rd,imm(rs1)
....... ..... ..... 100 ..... 0000011 lbu rd,imm(rs1)
....... ..... ..... 101 ..... 0000011 lhu rd,imm(rs1)
....... ..... ..... 000 ..... 0100011 sb rs2,store(rs1)
....... ..... ..... 001 ..... 0100011 sh rs2,store(rs1)
....... ..... ..... 010 ..... 0100011 sw rs2,store(rs1)
0000000 00000 00000 000 00000 0010011 nop
....... ..... 00000 000 ..... 0010011 li rd,imm
0000000 00000 ..... 000 ..... 0010011 mv rd,rs1
....... ..... ..... 000 ..... 0010011 addi rd,rs1,imm
0000000 ..... ..... 001 ..... 0010011 slli rd,rs1,shamt
0110000 00000 ..... 001 ..... 0010011 clz rd,rs1
0110000 00001 ..... 001 ..... 0010011 ctz rd,rs1
0110000 00010 ..... 001 ..... 0010011 cpop rd,rs1
0110000 00100 ..... 001 ..... 0010011 sext.b rd,rs1
0110000 00101 ..... 001 ..... 0010011 sext.h rd,rs1
....... ..... ..... 010 ..... 0010011 slti rd,rs1,imm
0000000 00001 ..... 011 ..... 0010011 seqz rd,rs1
....... ..... ..... 011 ..... 0010011 sltiu rd,rs1,imm
1111111 11111 ..... 100 ..... 0010011 not rd,rs1
....... ..... ..... 100 ..... 0010011 xori rd,rs1,imm
0000000 ..... ..... 101 ..... 0010011 srli rd,rs1,shamt
0100000 ..... ..... 101 ..... 0010011 srai rd,rs1,shamt
0110000 ..... ..... 101 ..... 0010011 rori rd,rs1,shamt
0010100 00111 ..... 101 ..... 0010011 orc.b rd,rs1
0110100 11000 ..... 101 ..... 0010011 rev8 rd,rs1
....... ..... ..... 110 ..... 0010011 ori rd,rs1,imm
0000111 11111 ..... 111 ..... 0010011 zext.b rd,rs1
....... ..... ..... 111 ..... 0010011 andi rd,rs1,imm
0000000 ..... ..... 000 ..... 0110011 add rd,rs1,rs2
0100000 ..... 00000 000 ..... 0110011 neg rd,rs2
0100000 ..... ..... 000 ..... 0110011 sub rd,rs1,rs2
0000000 ..... ..... 001 ..... 0110011 sll rd,rs1,rs2
0000000 00000 ..... 010 ..... 0110011 sltz rd,rs1
0000000 ..... 00000 010 ..... 0110011 sgtz rd,rs2
0000000 ..... ..... 010 ..... 0110011 slt rd,rs1,rs2
0000000 ..... 00000 011 ..... 0110011 snez rd,rs2
0000000 ..... ..... 011 ..... 0110011 sltu rd,rs1,rs2
0000000 ..... ..... 100 ..... 0110011 xor rd,rs1,rs2
0000000 ..... ..... 101 ..... 0110011 srl rd,rs1,rs2
0100000 ..... ..... 101 ..... 0110011 sra rd,rs1,rs2
0000000 ..... ..... 110 ..... 0110011 or rd,rs1,rs2
0000000 ..... ..... 111 ..... 0110011 and rd,rs1,rs2
0000001 ..... ..... 000 ..... 0110011 mul rd,rs1,rs2
0000001 ..... ..... 001 ..... 0110011 mulh rd,rs1,rs2
0000001 ..... ..... 010 ..... 0110011 mulhsu rd,rs1,rs2
0000001 ..... ..... 011 ..... 0110011 mulhu rd,rs1,rs2
0000001 ..... ..... 100 ..... 0110011 div rd,rs1,rs2
0000001 ..... ..... 101 ..... 0110011 divu rd,rs1,rs2
0000001 ..... ..... 110 ..... 0110011 rem rd,rs1,rs2
0000001 ..... ..... 111 ..... 0110011 remu rd,rs1,rs2
0010000 ..... ..... 010 ..... 0110011 sh1add rd,rs1,rs2
0010000 ..... ..... 100 ..... 0110011 sh2add rd,rs1,rs2
0010000 ..... ..... 110 ..... 0110011 sh3add rd,rs1,rs2
0100000 ..... ..... 111 ..... 0110011 andn rd,rs1,rs2
0100000 ..... ..... 110 ..... 0110011 orn rd,rs1,rs2
0100000 ..... ..... 100 ..... 0110011 xnor rd,rs1,rs2
0000101 ..... ..... 100 ..... 0110011 min rd,rs1,rs2
0000101 ..... ..... 101 ..... 0110011 minu rd,rs1,rs2
0000101 ..... ..... 110 ..... 0110011 max rd,rs1,rs2
0000101 ..... ..... 111 ..... 0110011 maxu rd,rs1,rs2
0110000 ..... ..... 001 ..... 0110011 rol rd,rs1,rs2
0110000 ..... ..... 101 ..... 0110011 ror rd,rs1,rs2
0000100 00000 ..... 100 ..... 0110011 zext.h rd,rs1
00010.. 00000 ..... 010 ..... 0101111 lr.w* rd,(rs1) # Zalrsc: not on these cores
00011.. ..... ..... 010 ..... 0101111 sc.w* rd,rs2,(rs1) # Zalrsc: not on these cores
00001.. ..... ..... 010 ..... 0101111 amoswap.w* rd,rs2,(rs1)
00000.. ..... ..... 010 ..... 0101111 amoadd.w* rd,rs2,(rs1)
00100.. ..... ..... 010 ..... 0101111 amoxor.w* rd,rs2,(rs1)
01100.. ..... ..... 010 ..... 0101111 amoand.w* rd,rs2,(rs1)
01000.. ..... ..... 010 ..... 0101111 amoor.w* rd,rs2,(rs1)
10000.. ..... ..... 010 ..... 0101111 amomin.w* rd,rs2,(rs1)
10100.. ..... ..... 010 ..... 0101111 amomax.w* rd,rs2,(rs1)
11000.. ..... ..... 010 ..... 0101111 amominu.w* rd,rs2,(rs1)
11100.. ..... ..... 010 ..... 0101111 amomaxu.w* rd,rs2,(rs1)
0000111 11111 00000 000 00000 0001111 fence
1000001 10011 00000 000 00000 0001111 fence.tso
0000000 10000 00000 000 00000 0001111 pause
0000... ..... 00000 000 00000 0001111 fence pred,succ
0000000 00000 00000 001 00000 0001111 fence.i
0000000 00000 00000 000 00000 1110011 ecall
0000000 00001 00000 000 00000 1110011 ebreak
0011000 00010 00000 000 00000 1110011 mret
0001000 00101 00000 000 00000 1110011 wfi
1100000 00000 00000 001 00000 1110011 unimp
1100000 00000 00000 010 ..... 1110011 rdcycle rd
1100000 00001 00000 010 ..... 1110011 rdtime rd
1100000 00010 00000 010 ..... 1110011 rdinstret rd
1100100 00000 00000 010 ..... 1110011 rdcycleh rd
1100100 00001 00000 010 ..... 1110011 rdtimeh rd
1100100 00010 00000 010 ..... 1110011 rdinstreth rd
....... ..... ..... 001 00000 1110011 csrw csr,rs1
....... ..... ..... 001 ..... 1110011 csrrw rd,csr,rs1
....... ..... 00000 010 ..... 1110011 csrr rd,csr
....... ..... ..... 010 00000 1110011 csrs csr,rs1
....... ..... ..... 010 ..... 1110011 csrrs rd,csr,rs1
....... ..... ..... 011 00000 1110011 csrc csr,rs1
....... ..... ..... 011 ..... 1110011 csrrc rd,csr,rs1
....... ..... ..... 101 00000 1110011 csrwi csr,uimm
....... ..... ..... 101 ..... 1110011 csrrwi rd,csr,uimm
....... ..... ..... 110 00000 1110011 csrsi csr,uimm
....... ..... ..... 110 ..... 1110011 csrrsi rd,csr,uimm
....... ..... ..... 111 00000 1110011 csrci csr,uimm
....... ..... ..... 111 ..... 1110011 csrrci rd,csr,uimm
"""


def _signed(value: int, bits: int) -> int:
    return (value ^ 1 << bits - 1) - (1 << bits - 1)


def _branch_offset(word: int) -> int:
    return _signed(
        (word >> 31 & 1) << 12
        | (word >> 7 & 1) << 11
        | (word >> 25 & 0x3F) << 5
        | (word >> 8 & 0xF) << 1,
        13,
    )


def _jump_offset(word: int) -> int:
    return _signed(
        (word >> 31 & 1) << 20
        | (word >> 12 & 0xFF) << 12
        | (word >> 20 & 1) << 11
        | (word >> 21 & 0x3FF) << 1,
        21,
    )


def _csr_name(word: int) -> str:
    number = word >> 20
    return csr.NAMES.get(number) or csr.UNMODELLED_NAMES.get(number) or f"{number:#x}"


def _fence_set(bits: int) -> str:
    return "".join(name for i, name in enumerate("iorw") if bits >> 3 - i & 1) or "unknown"


# What each operand word of _FORMS prints; the branch and jump offsets become addresses.
_OPERANDS: dict[str, Callable[[int], str]] = {
    "rd": lambda w: ABI_NAMES[w >> 7 & 31],
    "rs1": lambda w: ABI_NAMES[w >> 15 & 31],
    "rs2": lambda w: ABI_NAMES[w >> 20 & 31],
    "imm": lambda w: str(_signed(w >> 20, 12)),
    "store": lambda w: str(_signed(w >> 25 << 5 | w >> 7 & 31, 12)),
    "upper": lambda w: f"{w >> 12:#x}",
    "shamt": lambda w: f"{w >> 20 & 31:#x}",
    "uimm": lambda w: str(w >> 15 & 31),
    "csr": _csr_name,
    "pred": lambda w: _fence_set(w >> 24 & 15),
    "succ": lambda w: _fence_set(w >> 20 & 15),
}
_OFFSETS: dict[str, Callable[[int], int]] = {"branch": _branch_offset, "jump": _jump_offset}
_OPERAND = re.compile("|".join(rf"\b{name}\b" for name in (*_OPERANDS, *_OFFSETS)))
_ORDERING = ("", ".rl", ".aq", ".aqrl")


@dataclass(frozen=True, slots=True)
class _Form:
    mask: int
    match: int
    mnemonic: str
    operands: str
    comment: str


def _parse(line: str) -> _Form:
    line, _, comment = line.partition(" # ")
    *fields, text = line.split(maxsplit=6)
    bits = "".join(fields)
    if len(bits) != 32:
        raise ValueError(f"pattern of {len(bits)} bits in {line!r}")
    mnemonic, _, operands = text.partition(" ")
    mask = int(re.sub("[01]", "1", bits).replace(".", "0"), 2)
    return _Form(mask, int(bits.replace(".", "0"), 2), mnemonic, operands, comment)


def _by_opcode() -> dict[int, list[_Form]]:
    forms = defaultdict(list)
    for line in _FORMS.strip().splitlines():
        form = _parse(line)
        forms[form.match & 0x7F].append(form)
    return dict(forms)


_TABLE = _by_opcode()


def _render(form: _Form, word: int, pc: int, symbol: Callable[[int], str | None] | None) -> str:
    def operand(found: re.Match[str]) -> str:
        if found[0] in _OPERANDS:
            return _OPERANDS[found[0]](word)
        target = pc + _OFFSETS[found[0]](word) & 0xFFFFFFFF
        name = symbol(target) if symbol else None
        return f"{target:#x} <{name}>" if name else f"{target:#x}"

    mnemonic = form.mnemonic.replace("*", _ORDERING[word >> 25 & 3])
    text = f"{mnemonic} {_OPERAND.sub(operand, form.operands)}".rstrip()
    return f"{text}  # {form.comment}" if form.comment else text


def disassemble(
    word: int,
    pc: int = 0,
    symbol: Callable[[int], str | None] | None = None,
    tensix: Callable[[int], str] | None = None,
) -> str:
    """Text of the 32-bit `word` at address `pc`, pseudo-instructions as GNU objdump prints them.

    Covers RV32I, M, Zaamo, Zicsr, Zifencei, Zba and Zbb; any other word is `.word 0x...`.
    `symbol` names a branch target ("main+0x10", or None for no name) and appears in <>. A word
    whose low two bits are not 0b11 pushes the Tensix instruction `word` rotated right by 2
    (`.ttinsn`); `tensix` describes that instruction and follows as a comment.
    """
    word &= 0xFFFFFFFF
    if word & 3 != 3:
        pushed = word >> 2 | (word & 3) << 30
        return f".ttinsn {pushed:#010x}" + (f"  # {tensix(pushed)}" if tensix else "")
    for form in _TABLE.get(word & 0x7F, ()):
        if word & form.mask == form.match:
            return _render(form, word, pc, symbol)
    return f".word {word:#010x}"
