"""Literal reference of the mover and of the TDMA-RISC command processor (Mover, TDMA-RISC, ISA)."""

L1_SIZE = 1536 * 1024
BANK_WORDS, SHARED = 224, 180
DUAL = 3 * BANK_WORDS


class Mover:
    """L1 as bytes, Config as two lists of words; destinations in Config have no side effects."""

    def __init__(self, l1: bytes, config: list[list[int]]) -> None:
        self.l1, self.config = bytearray(l1), config

    def store(self, index: int, value: int) -> None:
        if index >= 2 * BANK_WORDS:
            banks, word = (0, 1), index - 2 * BANK_WORDS
        else:
            banks, word = (index // BANK_WORDS,), index % BANK_WORDS
            if word >= SHARED:
                banks = (0, 1)
        for bank in banks:
            self.config[bank][word] = value

    def move(self, dst: int, src: int, count: int, mode: int) -> None:
        """All three in 16-byte units; mode 0 zero-L1, 1 L1-config, 2 zero-config, 3 L1-L1."""
        dst, src, count = dst * 16, src * 16, count * 16
        data = bytes(self.l1[src : src + count]) if mode in (1, 3) else bytes(count)
        if mode in (0, 3):
            self.l1[dst : dst + count] = data
        elif dst <= 0xFFFF:
            for i in range(0, count, 4):
                self.store((dst + i) // 4, int.from_bytes(data[i : i + 4], "little"))
