"""What SFPLOADMACRO and the stall logic must know of a vector instruction; stands on its class.

Source: SFPLOADMACRO, SFPMAD, Blackhole ISA.
"""

from enum import IntEnum
from typing import NamedTuple

# Sub-units, in the order of the bytes of a sequence; the load sub-unit takes nothing scheduled.
SIMPLE, MAD, ROUND, STORE, LOAD, ELSEWHERE = range(6)


class Form(IntEnum):
    """Where a word names its operands."""

    ALIAS = 0  # VB is VD
    THREE = 1  # VA, VB and VC have fields of their own
    LOGIC = 2  # as ALIAS or as THREE, by mode
    IMMEDIATE = 3  # VC is VD
    TABLE = 4  # LRegs that no field names; the destination is in [23:20]
    NONE = 5  # no register operand that a macro could replace


class Writes(IntEnum):
    """Which LRegs a word can write."""

    NONE = 0
    DEST = 1  # what its destination names
    CONSTANT = 2  # a constant or a macro register, by number
    SEVERAL = 3


VA, VD = 4, 8  # mode bits: LReg[7] names that operand lane by lane

# Operands by the bit of their field, from [7:4] upwards, and the register of SFPSTORE
OPERANDS = {"VD": 1, "VC": 2, "VB": 4, "VA": 8, "stored": 16}


class Sfpu(NamedTuple):
    """Facts about one vector instruction.

    reads: operands that the stall logic knows of, as "VB VC"; implied: LRegs (mask) that it reads
    and no field names; indirect: "VA" and "VD", where LReg[7] can name them.
    """

    sub_unit: int = SIMPLE
    form: Form = Form.ALIAS
    reads: str = ""
    implied: int = 0
    indirect: str = ""
    writes: Writes = Writes.DEST

    @property
    def noticed(self) -> int:
        """`reads` as a mask of OPERANDS."""
        return sum(OPERANDS[name] for name in self.reads.split())

    @property
    def indirect_factor(self) -> int:
        """Bit of the word with which LReg[7] names the first factor, or 0."""
        return VA if "VA" in self.indirect else 0

    @property
    def indirect_dest(self) -> int:
        """Bit of the word with which LReg[7] names the destination, or 0."""
        mode = VD << 16 if self.form == Form.TABLE else VD
        return mode if "VD" in self.indirect else 0


READS_VC, READS_VD_VC = Sfpu(reads="VC"), Sfpu(reads="VD VC")
CONDITION = Sfpu(form=Form.NONE, writes=Writes.NONE)
FACTORS = Sfpu(MAD, Form.THREE, reads="VA VB VC", indirect="VA VD")
IMMEDIATE = Sfpu(MAD, Form.IMMEDIATE, reads="VD", indirect="VD")
LOGIC = Sfpu(form=Form.LOGIC, reads="VD VC")
