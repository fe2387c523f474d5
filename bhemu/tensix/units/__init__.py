"""The execution units: importing this package declares all 137 instructions."""

from bhemu.tensix.units import cfg, counters, memory, scalar, sync
from bhemu.tensix.units.matrix import clear, matmul, move, pool
from bhemu.tensix.units.pack import output, pacr
from bhemu.tensix.units.unpack import nop, unpacr
from bhemu.tensix.units.vector import arith, cc, convert, integer, loadstore, macro, schedule
from bhemu.tensix.units.vector import move as vector_move

MODULES = (
    *(cfg, counters, memory, scalar, sync, unpacr, nop, pacr, output),
    *(clear, matmul, move, pool),
    *(arith, cc, convert, integer, loadstore, macro, schedule, vector_move),
)
