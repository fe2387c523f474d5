"""What every core executes: RV32I, M, Zaamo, Zicsr, Zifencei (RISC-V unprivileged ISA), .ttinsn.

lr.w, sc.w, mret and wfi are declared by name. What the CSRs hold is csr.py's.
"""

from typing import Any

from bhemu.memmap import CYCLE, CYCLEH, INSTRET, INSTRETH, TIME, TIMEH
from bhemu.riscv import formats
from bhemu.riscv.insn import MASK, SIGN, Instruction


def __getattr__(name: str) -> type[Instruction]:
    """No instruction: those that exist are attributes already. For type checkers."""
    raise AttributeError(f"no instruction is called {name!r}")


_UPPER = """
    lui 0x37; b; rd = upper immediate.
    auipc 0x17; (pc + b) & MASK; rd = pc + upper immediate.
"""
_JUMP = """
    jal 0x6F; (pc + offset) & MASK; Jump by the offset, rd = address of the next instruction.
    - j jump: rd=0
    - jal jump: rd=1
"""
_INDIRECT = """
    jalr 0x67 0; (a + offset) & MASK & ~1; \
Jump to rs1 + imm with bit 0 cleared, rd = address of the next instruction.
    - ret: imm=0 rs1=1 rd=0
    - jr rs1: imm=0 rd=0
    - jr imm(rs1): rd=0
    - jalr rs1: imm=0 rd=1
    - jalr imm(rs1): rd=1
    - jalr rd,rs1: imm=0
"""
_BRANCH = """
    beq 0; a == b; Branch when rs1 = rs2.
    - beqz rs1,branch: rs2=0
    bne 1; a != b; Branch when rs1 and rs2 differ.
    - bnez rs1,branch: rs2=0
    blt 4; a ^ SIGN < b ^ SIGN; Branch when rs1 < rs2, both signed.
    - bltz rs1,branch: rs2=0
    - bgtz rs2,branch: rs1=0
    bge 5; a ^ SIGN >= b ^ SIGN; Branch when rs1 >= rs2, both signed.
    - blez rs2,branch: rs1=0
    - bgez rs1,branch: rs2=0
    bltu 6; a < b; Branch when rs1 < rs2.
    bgeu 7; a >= b; Branch when rs1 >= rs2.
"""
_LOAD = """
    lb 0 size=1; ((value ^ 0x80) - 0x80) & MASK; rd = byte with its sign.
    lh 1 size=2; ((value ^ 0x8000) - 0x8000) & MASK; rd = 16 bits with their sign.
    lw 2 size=4; value; rd = word.
    lbu 4 size=1; value; rd = byte.
    lhu 5 size=2; value; rd = 16 bits.
"""
_STORE = """
    sb 0 size=1;; Store a byte.
    sh 1 size=2;; Store 16 bits.
    sw 2 size=4;; Store a word.
"""
_REGISTER = """
    add 0x00 0; (a + b) & MASK; rd = rs1 + rs2.
    sub 0x20 0; (a - b) & MASK; rd = rs1 - rs2.
    - neg rd,rs2: rs1=0
    sll 0x00 1; (a << (b & 31)) & MASK; rd = rs1 shifted left by the low 5 bits of rs2.
    slt 0x00 2; 1 if a ^ SIGN < b ^ SIGN else 0; rd = 1 when rs1 < rs2, both signed, else 0.
    - sltz rd,rs1: rs2=0
    - sgtz rd,rs2: rs1=0
    sltu 0x00 3; 1 if a < b else 0; rd = 1 when rs1 < rs2, else 0.
    - snez rd,rs2: rs1=0
    xor 0x00 4; a ^ b; rd = rs1 ^ rs2.
    srl 0x00 5; a >> (b & 31); rd = rs1 shifted right by the low 5 bits of rs2, zeros from the left.
    sra 0x20 5; ((a ^ SIGN) - SIGN) >> (b & 31) & MASK; \
rd = rs1 shifted right by the low 5 bits of rs2, signs from the left.
    or 0x00 6; a | b; rd = rs1 | rs2.
    and 0x00 7; a & b; rd = rs1 & rs2.
    mul 0x01 0; ((a ^ SIGN) - SIGN) * ((b ^ SIGN) - SIGN) & MASK; rd = low half of rs1 * rs2.
    mulh 0x01 1; ((a ^ SIGN) - SIGN) * ((b ^ SIGN) - SIGN) >> 32 & MASK; \
rd = high half of rs1 * rs2, both signed.
    mulhsu 0x01 2; ((a ^ SIGN) - SIGN) * b >> 32 & MASK; rd = high half of rs1 * rs2, rs1 signed.
    divu 0x01 5; MASK if b == 0 else a // b; rd = rs1 / rs2; all ones for a division by zero.
    remu 0x01 7; a if b == 0 else a % b; rd = remainder of rs1 / rs2; rs1 for a division by zero.
"""
_IMMEDIATE = """
    addi 0; add; rd = rs1 + imm.
    - nop: imm=0 rs1=0 rd=0
    - li rd,imm: rs1=0
    - mv rd,rs1: imm=0
    slti 2; slt; rd = 1 when rs1 < imm, both signed, else 0.
    sltiu 3; sltu; rd = 1 when rs1 < imm, else 0.
    - seqz rd,rs1: imm=1
    xori 4; xor; rd = rs1 ^ imm.
    - not rd,rs1: imm=-1
    ori 6; or; rd = rs1 | imm.
    andi 7; and; rd = rs1 & imm.
    - zext.b rd,rs1: imm=0xFF
"""
_SHIFT = """
    slli 0x00 1; sll; rd = rs1 shifted left.
    srli 0x00 5; srl; rd = rs1 shifted right, zeros from the left.
    srai 0x20 5; sra; rd = rs1 shifted right, signs from the left.
"""
_FENCE = """
    fence 0;; Order of memory accesses; reserved fields are not looked at, as the ISA asks.
    - fence: imm=0x0FF rs1=0 rd=0
    - fence.tso: imm=-0x7CD rs1=0 rd=0
    - pause: imm=0x010 rs1=0 rd=0
    - fence pred,succ: mode=0 rs1=0 rd=0
    fence.i 1;; \
Order of stores and fetches: nothing to do, as a core sees its own stores at once.
    - fence.i: imm=0 rs1=0 rd=0
"""
_SYSTEM = """
    ecall 0 0 0;; Environment call: has no meaning on these cores.
    ebreak 1 0 0;; The device assert.
    mret 0x302 0 0;; Return from a trap: has no meaning on these cores.
    wfi 0x105 0 0;; Wait for an interrupt: has no meaning on these cores.
"""
_CSR = f"""
    csrrw 1 always=1; b; Write rs1.
    - unimp: csr={CYCLE} rs1=0 rd=0
    - csrw csr,rs1: rd=0
    csrrs 2; old | b; Set the bits of rs1.
    - rdcycle rd: csr={CYCLE} rs1=0
    - rdtime rd: csr={TIME} rs1=0
    - rdinstret rd: csr={INSTRET} rs1=0
    - rdcycleh rd: csr={CYCLEH} rs1=0
    - rdtimeh rd: csr={TIMEH} rs1=0
    - rdinstreth rd: csr={INSTRETH} rs1=0
    - csrr rd,csr: rs1=0
    - csrs csr,rs1: rd=0
    csrrc 3; old & (b ^ MASK); Clear the bits of rs1.
    - csrc csr,rs1: rd=0
"""
_CSR_IMMEDIATE = """
    csrrwi 5 always=1; csrrw; Write the immediate.
    - csrwi csr,uimm: rd=0
    csrrsi 6; csrrs; Set the bits of the immediate.
    - csrsi csr,uimm: rd=0
    csrrci 7; csrrc; Clear the bits of the immediate.
    - csrci csr,uimm: rd=0
"""
_ATOMIC = """
    amoadd.w 0x00; (old + b) & 0xFFFFFFFF; Add rs2.
    amoswap.w 0x01; b; Write rs2.
    amoxor.w 0x04; old ^ b; Exclusive or with rs2.
    amoor.w 0x08; old | b; Or with rs2.
    amoand.w 0x0C; old & b; And with rs2.
    amomin.w 0x10; old if old ^ SIGN < b ^ SIGN else b; The smaller, both signed.
    amomax.w 0x14; b if old ^ SIGN < b ^ SIGN else old; The larger, both signed.
    amominu.w 0x18; old if old < b else b; The smaller.
    amomaxu.w 0x1C; b if old < b else old; The larger.
"""
for _format, _text in (
    *((formats.Upper, _UPPER), (formats.Jump, _JUMP), (formats.IndirectJump, _INDIRECT)),
    *((formats.Branch, _BRANCH), (formats.Load, _LOAD), (formats.Store, _STORE)),
    *((formats.Register, _REGISTER), (formats.RegisterImmediate, _IMMEDIATE)),
    *((formats.Shift, _SHIFT), (formats.Fence, _FENCE), (formats.System, _SYSTEM)),
    *((formats.Csr, _CSR), (formats.CsrImmediate, _CSR_IMMEDIATE), (formats.Atomic, _ATOMIC)),
):
    globals().update(_format.listed(_text))


class MULHU(formats.Register, funct7=0x01, funct3=3):
    """rd = high half of rs1 * rs2, in halves of rs2 so that no product exceeds 48 bits."""

    def execute(a: Any, b: Any) -> Any:
        return (a * (b >> 16) + (a * (b & 0xFFFF) >> 16)) >> 16


class DIV(formats.Register, funct7=0x01, funct3=4):
    """rd = rs1 / rs2, both signed, rounded towards zero; -1 for a division by zero."""

    def execute(a: Any, b: Any) -> Any:
        if b == 0:
            return MASK
        quotient = abs((a ^ SIGN) - SIGN) // abs((b ^ SIGN) - SIGN)
        return (-quotient if (a ^ b) & SIGN else quotient) & MASK


class REM(formats.Register, funct7=0x01, funct3=6):
    """rd = remainder of rs1 / rs2, with the sign of rs1; rs1 for a division by zero."""

    def execute(a: Any, b: Any) -> Any:
        if b == 0:
            return a
        remainder = abs((a ^ SIGN) - SIGN) % abs((b ^ SIGN) - SIGN)
        return (-remainder if a & SIGN else remainder) & MASK


class LR_W(formats.Atomic, funct5=0x02, rs2=0):
    """Load reserved: not on these cores."""

    text = "rd,(rs1)"
    note = "Zalrsc: not on these cores"


class SC_W(formats.Atomic, funct5=0x03):
    """Store conditional: not on these cores."""

    note = LR_W.note


class TTINSN(formats.Pushed):
    """Push the word rotated right by two; words whose low two bits are not both set."""

    # PushTensixInstruction, Blackhole ISA.
    @classmethod
    def pushed(cls, word: int) -> int:
        return word >> 2 | (word & 3) << 30

    @classmethod
    def assemble(cls, *operands: int) -> int:
        """The word that pushes a Tensix word."""
        return (operands[0] << 2 | operands[0] >> 30) & MASK
