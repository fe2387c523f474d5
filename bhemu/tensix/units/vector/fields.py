"""Field sets that several vector instructions have."""

from bhemu.bits import Word, bits
from bhemu.operand import number
from bhemu.tensix import tables
from bhemu.tensix.insn import Argument

LREG = number("LReg")
NO_TARGET = number("0; 12 to 15: the word becomes a macro template")

# Arguments that tt-llk's macros have for bits that the instruction does not use
NO_IMMEDIATE = (Argument("imm12_math", 23, 12),)
NO_SOURCE = (*NO_IMMEDIATE, Argument("lreg_c", 11, 8))
NO_MODE = (*NO_IMMEDIATE, Argument("instr_mod1", 3, 0))
WIDE_ADDRESS = (Argument("dest_reg_addr", 12, 0),)  # three bits more than are read
ALL_BUT_TARGET = (*NO_SOURCE, Argument("instr_mod1", 3, 0))


class Target(Word):
    """Mode and destination."""

    instr_mod1 = bits(3, 0, number("mode"), mode=True)
    lreg_dest = bits(
        7,
        4,
        number("LReg that is written, and often read; 12 to 15: the word becomes a macro template"),
    )


class OneSource(Target):
    """Also a source, which the simple sub-unit's texts call lreg_c."""

    lreg_c = bits(11, 8, LREG)


class TwoSources(OneSource):
    """Also a register that imm12_math names, in some modes."""

    imm12_math = bits(15, 12, number("LReg that is read in mode 1"))


class SourceAndImmediate(OneSource):
    """Also an immediate of 12 bits."""

    imm12_math = bits(23, 12, number("immediate of 12 bits, signed where it is added or shifts"))


class SourceC(Target):
    """Also a source, which other texts call lreg_src_c."""

    lreg_src_c = bits(11, 8, LREG)


class ThreeSources(SourceC):
    """Also two factors."""

    lreg_src_b = bits(15, 12, LREG)
    lreg_src_a = bits(19, 16, LREG)


class DstAccess(Word):
    """Loads from Dst and stores to it."""

    dest_reg_addr = bits(
        9, 0, number("Dst row of 32 datums: bits 9:2 four rows, bit 1 the odd columns")
    )
    sfpu_addr_mode = bits(15, 13, tables.ADDR_MOD)
    instr_mod0 = bits(19, 16, mode=True)
    lreg_ind = bits(23, 20, LREG)
