"""Registers that change nothing bhemu models: plain storage, counted, shown in the run summary."""

from bhemu.memmap import INERT, Inert


class InertRegister:
    """One 32-bit register of `memmap.INERT`: reads give the last value stored."""

    def __init__(self, address: int) -> None:
        self.address = address
        self.reset()

    @property
    def about(self) -> Inert:
        """Name and reason."""
        return INERT[self.address]

    def read(self, core: int, offset: int, size: int) -> int:
        """Load the word."""
        self.accesses += 1
        return self.value

    def write(self, core: int, offset: int, size: int, value: int) -> None:
        """Store the word."""
        self.accesses += 1
        self.value = value & 0xFFFFFFFF

    def reset(self) -> None:
        """Power-up: zero, no accesses."""
        self.value = 0
        self.accesses = 0

    def state(self) -> object:
        """Value and count."""
        return (self.value, self.accesses)

    def load_state(self, state: object) -> None:
        """Take back (value, count)."""
        assert isinstance(state, tuple)
        self.value, self.accesses = state
