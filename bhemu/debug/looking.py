"""The stepper's commands that show registers, state and memory."""

import numpy as np
import numpy.typing as npt

from bhemu.debug import dump, registers
from bhemu.debug.commands import Commands
from bhemu.debug.memory import Memory, word_of
from bhemu.debug.places import address, number
from bhemu.debug.position import listing
from bhemu.debug.view import View
from bhemu.errors import InputError
from bhemu.memmap import L1_SIZE

_MOST = 4096  # words or instructions of one command


class Looking(Commands):
    """regs and its sisters; the rest of the stepper is stepper.py."""

    _regs: dict[str, npt.NDArray[np.uint32]]

    def do_regs(self, args: list[str]) -> None:
        """regs [CORE]: registers; * marks what changed since the last dump."""
        core = self._one_core(args, "regs [CORE]")
        self._print(registers.regs(core, self._regs.get(core.name)))
        self._regs[core.name] = core.regs

    def do_gpr(self, args: list[str]) -> None:
        """gpr [THREAD]: the 64 Tensix GPRs."""
        self._need(args, 0, 1, "gpr [THREAD]")
        self._print(registers.gpr(self.tile, self._thread(args)))

    def do_cfg(self, args: list[str]) -> None:
        """cfg [NAME|WORD]: configuration, by (part of) a field name or word index."""
        self._need(args, 0, 1, "cfg [NAME|WORD]")
        self._print(registers.cfg(self.tile, args[0] if args else None))

    def do_rwc(self, args: list[str]) -> None:
        """rwc: row counters."""
        self._need(args, 0, 0, "rwc")
        self._print(registers.rwc(self.tile))

    def do_adc(self, args: list[str]) -> None:
        """adc: address counters of unpackers and packer."""
        self._need(args, 0, 0, "adc")
        self._print(registers.adc(self.tile))

    def do_dst(self, args: list[str]) -> None:
        """dst [ROW|ROW-ROW [FORMAT]]: Dst decoded; bf16 fp16 fp32 int32."""
        self._need(args, 0, 2, "dst [ROW|ROW-ROW [FORMAT]]")
        self._print(registers.dst(self.tile, *[*args, None, None][:2]))

    def do_src(self, args: list[str]) -> None:
        """src [a|b [ROW|ROW-ROW]]: SrcA and SrcB."""
        self._need(args, 0, 2, "src [a|b [ROW|ROW-ROW]]")
        self._print(registers.src(self.tile, *[*args, None, None][:2]))

    def do_lreg(self, args: list[str]) -> None:
        """lreg [N]: LRegs of the vector unit."""
        self._need(args, 0, 1, "lreg [N]")
        self._print(registers.lreg(self.tile, number(args[0]) if args else None))

    def do_sem(self, args: list[str]) -> None:
        """sem: semaphores and mutexes."""
        self._need(args, 0, 0, "sem")
        self._print(registers.sem(self.tile))

    def do_mem(self, args: list[str]) -> None:
        """mem ADDRESS [N] [CORE]: N words (8) of L1, local RAM or a device, as the core sees it."""
        self._need(args, 1, 3, "mem ADDRESS [N] [CORE]")
        n, core = self._count_and_core(args[1:], default=8)
        memory = Memory(self.tile, core)
        start = address(self.tile, core, args[0])
        if start % 4:
            raise InputError(f"{start:#x} is not aligned to 4 bytes")
        if n > _MOST:
            raise InputError(f"mem shows 1 to {_MOST} words", hint="bhemu dump shows all of L1")
        for at in range(start, start + 4 * n, 16):
            words = [memory.word(a) for a in range(at, min(at + 16, start + 4 * n), 4)]
            self._out(f"  {at:08x}:  " + "  ".join(f"{word:08x}" for word in words))

    def do_read32(self, args: list[str]) -> None:
        """read32 ADDRESS [CORE]: load a word as the core does, with what else the load does."""
        self._need(args, 1, 2, "read32 ADDRESS [CORE]")
        core = self._one_core(args[1:], "read32 ADDRESS [CORE]")
        at = address(self.tile, core, args[0])
        self._out(f"  {at:08x}:  {core.read32(at):08x}{word_of(at, core.index)}")

    def do_dump(self, args: list[str]) -> None:
        """dump NAME[:RANGE]...: any state as bhemu dump shows it (stream:8, niu, dst:0-3)."""
        if not args:
            raise InputError(
                "usage: dump NAME[:RANGE]...", hint="bhemu dump --list lists the names"
            )
        chosen = dump.select(args)
        self._print(dump.text(self.tile.snapshot().tiles[self.tile.xy], chosen, View()))

    def do_dis(self, args: list[str]) -> None:
        """dis [ADDRESS [N]]: N instructions (10) from an address (pc)."""
        self._need(args, 0, 2, "dis [ADDRESS [N]]")
        start = address(self.tile, self.core, args[0]) if args else self.core.pc
        if start % 4 or not 0 <= start < L1_SIZE:
            raise InputError(f"{start:#x} is no code address (a multiple of 4 in L1)")
        count = number(args[1]) if len(args) > 1 else 10
        if not 1 <= count <= _MOST:
            raise InputError(f"dis shows 1 to {_MOST} instructions")
        self._print(listing(self.tile, self.core, start, count))
