"""Writes the RISC-V code of one thread: pushes, register stores, waits, loops, dumps."""

from collections.abc import Iterator
from contextlib import contextmanager

from bhemu.memmap import GPR_BASE, PC_BUF_BASE, TENSIX_CFG_BASE
from bhemu.riscv.assembly import (
    A0,
    A1,
    PARK,
    RA,
    T0,
    T1,
    T2,
    ZERO,
    addi,
    bne,
    code,
    jal,
    jalr,
    li,
    lw,
    sw,
    ttinsn,
)
from bhemu.tensix.config_fields import Field
from random_programs.plan import INSTRUCTIONS

SIZE = 0x10000  # bytes of code a thread may have
_OWN_SYNC = PC_BUF_BASE + 4  # a store then a load: the own thread has drained (TTSync)
_NEAR = 2048  # reach of a load or store offset
_TO = 28  # the register that points to where a dump goes
_CONFIG = 29  # the register that holds TENSIX_CFG_BASE


class Config:
    """Values of Config words, put together field by field."""

    def __init__(self) -> None:
        self.words: dict[int, int] = {}

    def set(self, field: Field, value: int) -> "Config":
        """Put `value` into `field`; the other fields of its word keep theirs (0 at first)."""
        assert 0 <= value <= field.mask, f"{field} = {value:#x}"
        old = self.words.get(field.word, 0) & ~(field.mask << field.shift)
        self.words[field.word] = old | value << field.shift
        return self


class Thread:
    """The code of thread `index`, written in the order it runs."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.words: list[int] = [*li(_CONFIG, TENSIX_CFG_BASE)]

    def push(self, mnemonic: str, **fields: int) -> None:
        """Push one Tensix instruction as `.ttinsn`."""
        self.words.append(ttinsn(INSTRUCTIONS[mnemonic].assemble(**fields)))

    def push_word(self, word: int) -> None:
        """Push one assembled Tensix word."""
        self.words.append(ttinsn(word))

    def setc16(self, values: dict[Field, int]) -> None:
        """Write the ThreadConfig values that hold these fields, other fields of them 0."""
        words: dict[int, int] = {}
        for field, value in values.items():
            words[field.word] = words.get(field.word, 0) | value << field.shift
        for word, value in words.items():
            self.push("SETC16", setc16_reg=word, setc16_value=value)

    def store(self, address: int, value: int) -> None:
        """Store one word."""
        self.words += [*li(T0, address), *li(T1, value), sw(T1, T0)]

    def configure(self, config: Config) -> None:
        """Store Config words by RISC-V, after everything pushed so far is done."""
        self.sync()
        for word, value in config.words.items():
            self.words += [*li(T1, value), sw(T1, _CONFIG, 4 * word)]
        # A load behind the stores: they are in place before the next push.
        self.words.append(lw(T1, _CONFIG, 0))

    def sync(self) -> None:
        """Wait until the own Tensix thread has executed everything."""
        self.words += [*li(T0, _OWN_SYNC), sw(ZERO, T0), lw(T1, T0)]

    def signal(self, flag: int) -> None:
        """Sync, then store 1 to an L1 word."""
        self.sync()
        self.store(flag, 1)

    def wait(self, flag: int) -> None:
        """Poll an L1 word until it is not 0."""
        self.words += [*li(T0, flag), lw(T1, T0), branch_back(T1, 1)]

    def done(self, address: int, value: int) -> None:
        """Sync, store the done word, park."""
        self.sync()
        self.store(address, value)
        self.words.append(PARK)

    @contextmanager
    def repeat(self, times: int) -> Iterator[None]:
        """The code written inside runs `times` times (A0 counts)."""
        self.words += li(A0, times)
        start = len(self.words)
        yield
        self.words.append(addi(A0, A0, -1))
        self.words.append(bne(A0, ZERO, 4 * (start - len(self.words))))

    def function(self, body: list[int]) -> int:
        """Place `body` as a subroutine and jump over it; the index of its first word."""
        self.words.append(jal(ZERO, 4 * (len(body) + 2)))
        start = len(self.words)
        self.words += [*body, jalr(ZERO, RA)]
        return start

    def call(self, function: int) -> None:
        """Call a subroutine."""
        self.words.append(jal(RA, 4 * (function - len(self.words))))

    def gpr_dump(self) -> int:
        """A subroutine: sync, then this thread's 64 GPRs to where `dump_to` points, advancing."""
        body = [*li(T0, _OWN_SYNC), sw(ZERO, T0), lw(T1, T0), *li(A1, GPR_BASE)]
        for i in range(64):
            body += [lw(T1, A1, 4 * i), sw(T1, _TO, 4 * i)]
        return self.function([*body, addi(_TO, _TO, 256)])

    def words_dump(self, addresses: list[int]) -> int:
        """A subroutine: sync, then the words at `addresses` to where `dump_to` points."""
        body = [*li(T0, _OWN_SYNC), sw(ZERO, T0), lw(T1, T0)]
        for i, address in enumerate(addresses):
            body += [*li(T2, address), lw(T1, T2), sw(T1, _TO, 4 * i)]
        size = 4 * len(addresses)
        assert size < _NEAR
        return self.function([*body, addi(_TO, _TO, size)])

    def dump_to(self, address: int) -> None:
        """Set the pointer of the dump subroutines."""
        self.words += li(_TO, address)

    def code(self) -> bytes:
        """The bytes."""
        data = code(self.words)
        assert len(data) <= SIZE, f"T{self.index}: {len(data):#x} bytes of code"
        return data


def branch_back(register: int, words: int) -> int:
    """`beq register, x0` to the word `words` before it."""
    return bne(register, ZERO, -4 * words) ^ 0x1000  # funct3 0: equal
