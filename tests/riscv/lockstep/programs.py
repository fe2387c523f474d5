"""Random programs for the five cores: all instructions, their own code, every device window."""

import random

from bhemu import memmap as mm
from bhemu.devices.bus.address_map import BLOCKS
from bhemu.riscv import csr
from bhemu.riscv.formats import (
    Atomic,
    Branch,
    Csr,
    IndirectJump,
    Jump,
    Load,
    Pushed,
    Register,
    RegisterImmediate,
    Shift,
    Store,
    Unary,
    Upper,
)
from bhemu.riscv.insn import REGISTRY, Instruction
from bhemu.riscv.isa.rv32i import TTINSN
from bhemu.tensix.insn import assemble

STARTS = {"brisc": 0x0, "trisc0": 0x10000, "trisc1": 0x20000, "trisc2": 0x30000, "ncrisc": 0x40000}
WORDS = 120
_DATA = 0x8000  # of a core, behind its start
_TOP = 2**32 - 4 * WORDS - 4  # no offset comes round to what brisc executes
_INVALIDATE = mm.TENSIX_CFG_BASE + 0x2E4
_HELD = (0x1B0, *range(0x224, 0x240, 4))  # resets and reset PCs: who runs what is not random here
_CODE, _HERE, _LOCAL, _DEVICE, _ANY = 26, 27, 28, 29, 30  # registers that hold addresses
_PUSHED = [
    *(assemble("NOP"), assemble("DMANOP"), assemble("SETC16", setc16_reg=67)),
    *(assemble("SETDMAREG", payload_sig_sel=i, reg_index_16b=i) for i in range(3)),
    *(assemble("SEMINIT", sem_sel=1, max_value=2), assemble("SEMPOST", sem_sel=2)),
    *(assemble("SEMGET", sem_sel=2), assemble("ADDDMAREG", op_a_reg_index=4, op_b_reg_index=5)),
    assemble("SEMWAIT", sem_sel=4, stall_res=1, wait_sem_cond=1),
]


def _is_held(address: int) -> bool:
    return address - mm.DEBUG_BASE & ~3 in _HELD


class Draw:
    """Random words of one core."""

    def __init__(self, seed: object, core: str) -> None:
        self.r, self.start = random.Random(str(seed)), STARTS[core]

    def register(self) -> int:
        """Mostly one that holds no address."""
        return self.r.choice((self.r.randrange(26), self.r.randrange(26), self.r.randrange(32)))

    def target(self) -> int:
        """One to write: what holds an address keeps it, no core stores into another's code."""
        return self.r.choice((*range(26), 31))

    def address(self) -> int:
        """Into a device window, aligned or not."""
        windows = [(low, high) for low, high, _ in BLOCKS if low >= mm.LOCAL_BASE]
        while True:
            low, high = self.r.choice(windows)
            at = self.r.choice((low, high - 4, self.r.randrange(low, high) & ~3, _INVALIDATE))
            at += self.r.choice((0, 0, 0, 0, 0, 0, 0, 0, 1, 2))
            if not _is_held(at):
                return at

    def values(self) -> list[int]:
        """Of registers 26 to 30."""
        start = self.start
        anything = self.r.choice((self.r.getrandbits(32), mm.L1_SIZE - 8, _TOP, 0xFFB02000))
        return [start, start + _DATA, mm.LOCAL_BASE + 0x800, self.address(), anything]

    def word(self) -> int:
        """Any word; most of them an instruction."""
        kind = self.r.randrange(400)
        if kind == 0:
            return self.r.getrandbits(32)
        if kind == 1:  # an opcode with any other bits
            return self.r.getrandbits(25) << 7 | self.r.choice(REGISTRY).match & 0x7F | 3
        if kind < 30:
            return TTINSN.assemble(self.r.choice(_PUSHED))
        return self.instruction(self.r.choice(_MEMORY if kind < 120 else _ALL))

    def instruction(self, cls: type[Instruction]) -> int:
        """A word of the class."""
        r, reg, rd = self.r, self.register, self.target
        if issubclass(cls, Register):
            return cls.assemble(rd(), reg(), reg())
        if issubclass(cls, Unary):
            return cls.assemble(rd(), reg())
        if issubclass(cls, RegisterImmediate):
            return cls.assemble(rd(), reg(), r.choice((0, 1, -1, r.randrange(-2048, 2048))))
        if issubclass(cls, Shift):
            return cls.assemble(rd(), reg(), r.randrange(32))
        if issubclass(cls, Upper):
            return cls.assemble(rd(), r.getrandbits(32))
        if issubclass(cls, Branch):
            return cls.assemble(reg(), reg(), self.distance())
        if issubclass(cls, Jump):
            return cls.assemble(rd(), self.distance())
        if issubclass(cls, IndirectJump):
            return cls.assemble(rd(), _CODE, 4 * r.randrange(WORDS) + r.choice((0, 0, 0, 1, 2)))
        if issubclass(cls, Csr):
            return self.csr(cls)
        return self.memory(cls)

    def distance(self) -> int:
        """Of a jump: some words, more of them forwards; once in a while misaligned."""
        return 4 * self.r.randrange(-8, 24) + (2 if self.r.randrange(300) == 0 else 0)

    def csr(self, cls: type[Csr]) -> int:
        """A modelled register, seldom another."""
        number = self.r.choice(sorted(csr.NAMES))
        if self.r.randrange(20) == 0:
            number = self.r.getrandbits(12)
        reads = self.r.randrange(3) and not cls.always
        return cls.assemble(self.target(), number, 0 if reads else self.register())

    def memory(self, cls: type[Instruction]) -> int:
        """A load, a store or an atomic; a word that is none of these is fixed."""
        r = self.r
        base = r.choice((_HERE, _HERE, _HERE, _LOCAL, _DEVICE, _CODE))
        if r.randrange(50) == 0:
            base = _ANY
        if issubclass(cls, Load):
            low = r.randrange(-64, 64) * cls.size + (1 if r.randrange(200) == 0 else 0)
            return cls.assemble(self.target(), base, 0 if base == _DEVICE else low)
        if issubclass(cls, Store):
            low = r.randrange(0, WORDS * 4 // cls.size) * cls.size
            return cls.assemble(self.register(), base, 0 if base == _DEVICE else low)
        if issubclass(cls, Atomic):
            base = base if r.randrange(9) == 0 else _HERE
            return cls.assemble(self.target(), self.register(), base)
        return cls.match if r.randrange(10) == 0 else _NOP

    def code(self) -> list[int]:
        """Registers, then random words, and back to their beginning."""
        lui, addi, jal = (_BY_NAME[name] for name in ("lui", "addi", "jal"))
        words = []
        for number, value in enumerate(self.values(), _CODE):
            low = (value & 0xFFF) - ((value & 0x800) << 1)
            words += [lui(number, value - low), addi(number, number, low)]
        words += [self.word() for _ in range(WORDS)]
        return [*words, jal(0, -4 * len(words))]

    def body(self) -> bytes:
        """The program's bytes."""
        return b"".join(word.to_bytes(4, "little") for word in self.code())


_NOP = 0x13
_ALL = [cls for cls in REGISTRY if not issubclass(cls, Pushed)]
_MEMORY = [cls for cls in REGISTRY if issubclass(cls, Load | Store)]
_BY_NAME = {cls.name: cls.assemble for cls in REGISTRY if hasattr(cls, "assemble")}
