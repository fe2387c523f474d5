"""What a request to the NoC may be refused for; every sentence ends with the whole request."""

from bhemu.tensix.rules import NCB, UB, UNIMPLEMENTED, condition, error

TRANSFER = error("NOC-TRANSFER", UNIMPLEMENTED, "the store to NOC_CMD_CTRL at {address:#010x} starts a NoC transfer, which a tile alone does not model: NOC_CTRL {control:#x}, target address {target:#x}, return address {answer:#x}", "make a Chip, whose tiles send to each other; or let the host write inputs into L1")  # fmt: skip
KIND = error("NOC-KIND", UB, "NOC_CTRL {control:#x} has request type 3, which is reserved", "0, 1 or 2")  # fmt: skip
RESERVED = error("NOC-RESERVED", UB, "NOC_CTRL {control:#x} has reserved bits set: {bits:#x}", "bits 12:10 and 26:18 are written as 0")  # fmt: skip
ACCUMULATE = error("NOC-L1-ACCUMULATE", UB, "NOC_CTRL {control:#x} asks for accumulation in L1, which does not work on Blackhole")  # fmt: skip
DROP_ACK = error("NOC-DROP-ACK", UNIMPLEMENTED, "NOC_CTRL {control:#x} has NOC_CMD_MEM_RD_DROP_ACK set, a notice to the overlay")  # fmt: skip
CHANNEL = error("NOC-CHANNEL", UB, "the static virtual channel has class {class_bits}; unicast takes 0 or 1, multicast 2", "bits 15:13 of NOC_CTRL: 0 to 3 for unicast, 4 or 5 for multicast")  # fmt: skip
MULTICAST_READ = error("NOC-MULTICAST-READ", UB, "a read cannot be a multicast")
EXCLUDE = error("NOC-EXCLUDE", UNIMPLEMENTED, "NOC_BRCST_EXCLUDE is {value:#x}: only rectangles are modelled")  # fmt: skip
OVERLAY = error("NOC-OVERLAY", UNIMPLEMENTED, "NOC_PACKET_TAG {tag:#x} asks for delivery to the overlay (bit 6) or header store (bit 9)")  # fmt: skip
COORDINATE = error("NOC-COORDINATE", UB, "({x},{y}) is the coordinate of no tile on NoC {noc}", "Tensix tiles are at x 1-7 and 10-16, y 2-11; DRAM at x 17-18, y 12-23")  # fmt: skip
ENDPOINT = error("NOC-ENDPOINT", UNIMPLEMENTED, "the tile at ({x},{y}) of NoC {noc} is of a kind ({kind}) that is not modelled as a target")  # fmt: skip
THIRD_TILE = error("NOC-THIRD-TILE", UNIMPLEMENTED, "({x},{y}), the own coordinate in the register at offset {register:#x}, is not the tile that sends: answers and acknowledgements to a third tile are not modelled", "put the own coordinate there: NOC_ID_LOGICAL has it")  # fmt: skip
LENGTH = error("NOC-LENGTH", UNIMPLEMENTED, "NOC_AT_LEN_BE is {length}: a request has 1 to 16384 bytes", "split longer transfers into requests of at most 16384 bytes")  # fmt: skip
LOCAL = error("NOC-LOCAL", UB, "{length} bytes at {address:#x} of the own tile are not within L1 (0..0x180000)")  # fmt: skip
REMOTE = error("NOC-REMOTE", UB, "{length} bytes at {address:#x} are not within the memory of the other tile", "L1 of a Tensix tile ends at 0x180000, its registers begin at 0xFFB11000; a DRAM bank has 0xFF000000 bytes")  # fmt: skip
ALIGNMENT = error("NOC-ALIGNMENT", UB, "local address {local:#x} and remote address {remote:#x} differ modulo {modulo}", "L1 and every write: equal modulo 16; reads of DRAM and PCIe: modulo 64; of registers: 4")  # fmt: skip
MMIO = error("NOC-MMIO", UB, "{length} bytes to or from the register at {address:#010x}: exactly 4 bytes, aligned, are possible")  # fmt: skip
INLINE_L1 = error("NOC-INLINE-L1", UB, "an inline write to L1 ({address:#x}), which a hardware bug of Blackhole forbids", "store the word to L1 and write it from there")  # fmt: skip
INLINE_ENDPOINT = error("NOC-INLINE-ENDPOINT", UB, "an inline write must go to a Tensix or Ethernet tile")  # fmt: skip
ATOMIC_ENDPOINT = error("NOC-ATOMIC-ENDPOINT", UB, "an atomic must go to L1 of a Tensix or Ethernet tile, not to {address:#x}")  # fmt: skip
ATOMIC_OPCODE = error("NOC-ATOMIC-OPCODE", UNIMPLEMENTED, "atomic opcode {opcode} (NOC_AT_LEN_BE {operands:#x}) is not modelled", "1 increment, 3 swap, 4 compare and swap, 6 and 7 swap with index are")  # fmt: skip
ATOMIC_ANSWER = error("NOC-ATOMIC-ANSWER", UB, "the address {address:#x} for the old value is not aligned to 4 bytes")  # fmt: skip
LINKED = error("NOC-LINKED", UB, "this request is not to the destination {linked:#x} of the linked request that core {core} sent at pc {pc:#010x}, and that none has closed", "the last request of a linked transaction has NOC_CMD_VC_LINKED clear")  # fmt: skip
TABLES = error("NOC-TRANSLATION-TABLE", UNIMPLEMENTED, "{value:#x} stored to the translation register at offset {offset:#x} changes it: coordinates are translated as the chip's firmware set it up")  # fmt: skip
INTERRUPT = error("NOC-INTERRUPT", UNIMPLEMENTED, "{value:#x} stored to NIU_TRANS_COUNT_RTZ_CFG enables interrupts, which are not modelled")  # fmt: skip
CLOCK = error("NOC-CLOCK", UNIMPLEMENTED, "{value:#x} stored to NIU_CFG_0 has bit 12 set, which stops the clock of the tile", "keep bit 12 clear")  # fmt: skip
REQUEST_FIFO = error("NOC-REQUEST-FIFO", UNIMPLEMENTED, "{value:#x} stored to NIU_CFG_0 has bit 16 set: the request FIFO is not modelled", "keep bit 16 clear; NOC_CMD_CTRL then says when an initiator is free")  # fmt: skip
CFG_RESERVED = error("NOC-CFG-RESERVED", UB, "{value:#x} stored to the NIU register at offset {offset:#x} changes reserved bits: {bits:#x}", "read the register and change other bits only")  # fmt: skip
POSTED_ATOMIC = error("NOC-POSTED-ATOMIC", NCB, "a posted atomic: its old value is written to the answer address, silicon sends none")  # fmt: skip
WRITE_BACK = error("NOC-WRITE-BACK", NCB, "coordinate {given:#x} of initiator {initiator} is kept, silicon replaces it by the translated one")  # fmt: skip
FULL = condition("room for another NoC request")
REQUEST_RULES = frozenset(
    (
        *(KIND, RESERVED, ACCUMULATE, DROP_ACK, CHANNEL, MULTICAST_READ, EXCLUDE, OVERLAY),
        *(COORDINATE, ENDPOINT, THIRD_TILE, LENGTH, LOCAL, REMOTE, ALIGNMENT, MMIO, INLINE_L1),
        *(INLINE_ENDPOINT, ATOMIC_ENDPOINT, ATOMIC_OPCODE, ATOMIC_ANSWER, LINKED),
    )
)
"""Rules about a whole request, which the message then decodes."""
