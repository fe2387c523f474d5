"""A debugger at the debug port of a core, with the accesses of tt-exalens."""

from bhemu.devices import debug_port
from bhemu.machine.tile import Tile
from bhemu.riscv.assembly import code

CNTL_0, CNTL_1, STATUS_0, STATUS_1 = range(0xFFB12080, 0xFFB12090, 4)
CORES = ("brisc", "trisc0", "trisc1", "trisc2")
START = 0x4000


class Port:
    """Debug registers of one core; what it runs begins at START."""

    def __init__(self, *program: int | list[int], core: str = "trisc1", used: bool = True) -> None:
        self.tile = Tile()
        self.core = self.tile.core[core]
        self._which = CORES.index(core) << 17
        start = START if self._which else 0
        self.tile.write(start, code(*program))
        if self._which:
            self.core.set_reset_pc(start)
        if used:
            self.read(debug_port.STATUS)
        self.core.release()

    def write(self, register: int, value: int) -> None:
        self.tile.write32(CNTL_1, value)
        self.tile.write32(CNTL_0, 0x80010000 | self._which | register)
        self.tile.write32(CNTL_0, 0)

    def read(self, register: int) -> int:
        self.tile.write32(CNTL_0, 0x80000000 | self._which | register)
        self.tile.write32(CNTL_0, 0)
        assert self.tile.read32(STATUS_0) & 1 << 30
        return self.tile.read32(STATUS_1)

    def command(self, *actions: int) -> None:
        for action in actions:
            self.write(debug_port.CONTROL, debug_port.SLOW | action)

    def step(self) -> None:
        self.command(debug_port.STEP, debug_port.STEP)
        self.run()

    def resume(self) -> int:
        """Go on to the next halt; DR(0)."""
        self.command(debug_port.RESUME)
        self.run()
        return self.read(debug_port.STATUS)

    def run(self) -> str:
        return self.tile.run(limit=10_000).reason

    def point(self, i: int, mode: int, address: int) -> None:
        self.write(debug_port.ADDRESSES + i, address)
        self.write(debug_port.MODES, self.read(debug_port.MODES) & ~(15 << 4 * i) | mode << 4 * i)

    def at(self) -> int:
        """The word of the program at which the core stands."""
        return (self.core.pc - (START if self._which else 0)) // 4

    def gpr(self, number: int) -> int:
        self.write(debug_port.ARG_0, number)
        self.command(debug_port.READ_GPR)
        return self.read(debug_port.RESULT)

    def set_gpr(self, number: int, value: int) -> None:
        self.write(debug_port.ARG_1, value)
        self.write(debug_port.ARG_0, number)
        self.command(debug_port.WRITE_GPR)

    def word(self, address: int) -> int:
        self.write(debug_port.ARG_0, address)
        self.command(debug_port.READ_MEMORY)
        return self.read(debug_port.RESULT)

    def set_word(self, address: int, value: int) -> None:
        self.write(debug_port.ARG_1, value)
        self.write(debug_port.ARG_0, address)
        self.command(debug_port.WRITE_MEMORY)
