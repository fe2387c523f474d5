"""The execution units: importing this package declares all 137 instructions."""

from bhemu.tensix.units import adc, cfg, front, memory, mover, scalar, sync
from bhemu.tensix.units.matrix import clear, elw, legacy, move, mul, pool
from bhemu.tensix.units.pack import histogram, pacr
from bhemu.tensix.units.unpack import nop, unpacr
from bhemu.tensix.units.vector import arith, cc, convert, integer, loadstore, lut, macro
from bhemu.tensix.units.vector import move as vector_move

MODULES = (
    *(adc, cfg, front, memory, mover, scalar, sync, unpacr, nop, pacr, histogram),
    *(clear, elw, legacy, move, mul, pool),
    *(arith, cc, convert, integer, loadstore, lut, macro, vector_move),
)
