"""The execution units: importing this package declares all 137 instructions."""

from bhemu.tensix.units import adc, atomic, cfg, flop, front, memory, mover, scalar, sync
from bhemu.tensix.units.matrix import clear, conv, elw, legacy, move, mul, pool, shift
from bhemu.tensix.units.pack import histogram, pacr
from bhemu.tensix.units.unpack import nop, unpacr
from bhemu.tensix.units.vector import (
    approx,
    arith,
    cc,
    configure,
    convert,
    integer,
    loadstore,
    lut,
    macro,
    mul24,
    rounding,
)
from bhemu.tensix.units.vector import move as vector_move

MODULES = (
    *(adc, atomic, cfg, flop, front, memory, mover, scalar, sync, unpacr, nop, pacr, histogram),
    *(clear, conv, elw, legacy, move, mul, pool, shift),
    *(approx, arith, cc, configure, convert, integer, loadstore, lut, macro, mul24, rounding),
    vector_move,
)
