"""Zicsr: access to control and status registers (RISC-V unprivileged ISA, chapter "Zicsr").

What the registers hold is csr.py's.
"""

from typing import Any

from bhemu.riscv.csr import CYCLE, CYCLEH, INSTRET, INSTRETH, TIME, TIMEH
from bhemu.riscv.formats import Csr
from bhemu.riscv.insn import MASK, form


class CSRRW(Csr, funct3=1):
    """Write rs1."""

    always = True
    forms = (form("unimp", csr=CYCLE, rs1=0, rd=0), form("csrw csr,rs1", rd=0))

    def execute(old: Any, b: Any) -> Any:
        return b


class CSRRS(Csr, funct3=2):
    """Set the bits of rs1."""

    forms = (
        form("rdcycle rd", csr=CYCLE, rs1=0),
        form("rdtime rd", csr=TIME, rs1=0),
        form("rdinstret rd", csr=INSTRET, rs1=0),
        form("rdcycleh rd", csr=CYCLEH, rs1=0),
        form("rdtimeh rd", csr=TIMEH, rs1=0),
        form("rdinstreth rd", csr=INSTRETH, rs1=0),
        form("csrr rd,csr", rs1=0),
        form("csrs csr,rs1", rd=0),
    )

    def execute(old: Any, b: Any) -> Any:
        return old | b


class CSRRC(Csr, funct3=3):
    """Clear the bits of rs1."""

    forms = (form("csrc csr,rs1", rd=0),)

    def execute(old: Any, b: Any) -> Any:
        return old & (b ^ MASK)


class CSRRWI(Csr, funct3=5):
    """Write the immediate."""

    always = immediate = True
    text = "rd,csr,uimm"
    forms = (form("csrwi csr,uimm", rd=0),)
    execute = CSRRW.execute


class CSRRSI(Csr, funct3=6):
    """Set the bits of the immediate."""

    immediate = True
    text = "rd,csr,uimm"
    forms = (form("csrsi csr,uimm", rd=0),)
    execute = CSRRS.execute


class CSRRCI(Csr, funct3=7):
    """Clear the bits of the immediate."""

    immediate = True
    text = "rd,csr,uimm"
    forms = (form("csrci csr,uimm", rd=0),)
    execute = CSRRC.execute
