"""Literal reference of the scalar unit's memory instructions, on plain bytes (Wormhole ISA).

GPRs of a thread are 256 bytes and L1 is a bytearray, as the functional models index them.
"""

L1_SIZE = 1536 * 1024


class Memory:
    """GPR bytes of one thread and L1."""

    def __init__(self, gprs: bytes, l1: bytes) -> None:
        self.gprs, self.l1 = bytearray(gprs), bytearray(l1)

    def gpr(self, index: int) -> int:
        return int.from_bytes(self.gprs[4 * index : 4 * index + 4], "little")

    def half(self, index: int) -> int:
        return int.from_bytes(self.gprs[2 * index : 2 * index + 2], "little")

    def increment(self, half: int, spec: int) -> None:
        value = (self.half(half) + [0, 2, 4, 16][spec]) % 65536
        self.gprs[2 * half : 2 * half + 2] = value.to_bytes(2, "little")

    def address(self, register: int, half: int) -> int | None:
        at = (self.gpr(register) * 16 + self.half(half)) % 2**32
        return at if at < L1_SIZE else None

    def loadind(self, f: dict[str, int]) -> bool:
        """LOADIND: False when the address is not in L1."""
        at = self.address(f["addr_reg_index"], f["offset_half_reg"])
        if at is None:
            return False
        self.increment(f["offset_half_reg"], f["auto_inc_spec"])
        n = (16, 4, 2, 1)[f["size_sel"]]
        first = 4 * (f["data_reg_index"] & (0x3C if n == 16 else 0x3F))
        self.gprs[first : first + n] = self.l1[at // n * n : at // n * n + n]
        return True

    def storeind(self, f: dict[str, int]) -> bool:
        """STOREIND_L1: False when the address is not in L1."""
        at = self.address(f["addr_reg_index"], f["offset_half_reg"])
        if at is None:
            return False
        self.increment(f["offset_half_reg"], f["auto_inc_spec"])
        n = (16, 4, 2, 1)[2 * f["size_sel"] + f["reg_size_sel"]]
        first = 4 * (f["data_reg_index"] & (0x3C if n == 16 else 0x3F))
        self.l1[at // n * n : at // n * n + n] = self.gprs[first : first + n]
        return True

    def word(self, at: int) -> int:
        return int.from_bytes(self.l1[at : at + 4], "little")

    def put_word(self, at: int, value: int) -> None:
        self.l1[at : at + 4] = (value % 2**32).to_bytes(4, "little")

    def put_gpr(self, index: int, value: int) -> None:
        self.gprs[4 * index : 4 * index + 4] = (value % 2**32).to_bytes(4, "little")

    def atincget(self, f: dict[str, int]) -> None:
        at = self.gpr(f["addr_reg_index"]) * 16 + f["sel32b"] * 4
        by, old = self.gpr(f["data_reg_index"]), self.word(at)
        mask = (2 << f["wrap_val"]) % 2**32 - 1
        mask %= 2**32
        self.put_word(at, ((old + by) & mask) | (old & ~mask))
        self.put_gpr(f["data_reg_index"], old)

    def atincgetptr(self, f: dict[str, int]) -> bool:
        """ATINCGETPTR: False while it would retry."""
        base = self.gpr(f["addr_reg_index"]) * 16
        size = (self.word(base + 4) - self.word(base)) % 2**32
        if f["sel32b"] % 2:
            capacity = 2 ** (f["wrap_val"] - 1) if f["wrap_val"] else 0x8000
            if size % capacity == 0 and size != 0:
                return False
        elif size == 0:
            return False
        at = base + 4 * f["sel32b"]
        old, mask = self.word(at), 2 ** f["wrap_val"] - 1
        by = 0 if f["no_incr"] else 2 ** f["incr_val"]
        self.put_word(at, ((old + by) & mask) | (old & ~mask))
        self.put_gpr(f["data_reg_index"], old)
        return True

    def atswap(self, f: dict[str, int]) -> None:
        at, data = self.gpr(f["addr_reg_index"]) * 16, f["data_reg_index"]
        source = bytearray(16)
        if f["single_data_reg"]:
            source[data % 4 * 4 : data % 4 * 4 + 4] = self.gprs[4 * data : 4 * data + 4]
        else:
            source[:] = self.gprs[data // 4 * 16 : data // 4 * 16 + 16]
        for i in range(8):
            if f["swap_mask"] >> i & 1:
                self.l1[at + 2 * i : at + 2 * i + 2] = source[2 * i : 2 * i + 2]


def src_cell(value: int, high: bool) -> int:
    """19-bit Src datum of a half of a data register, sign mantissa exponent from the top."""
    if high:
        sign, exponent, mantissa = value >> 31, value >> 23 & 0xFF, value >> 16 & 0x7F
        return sign << 18 | mantissa << 11 | exponent
    sign, mantissa, exponent = value & 0x8000, value & 0x7F00, value & 0xFF
    return sign << 3 | mantissa << 3 | exponent


def record_cell(datum: int) -> int:
    """The same datum as the state record keeps it: sign 31, exponent 30:23, mantissa 22:13."""
    return datum >> 18 << 31 | (datum & 0xFF) << 23 | (datum >> 8 & 0x3FF) << 13
