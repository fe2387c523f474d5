"""What any device access may be refused for; detail = address, value, size, core."""

from bhemu.tensix.status import GUEST, NCB, UB, UNIMPLEMENTED, UNSUPPORTED, condition, error

RETRY = condition("the access to be repeated after a stop")

UNMAPPED = error(
    "MMIO-UNMAPPED", GUEST, "address {0:#010x} is not mapped for this core", "check the pointer"
)
NOT_MODELLED = error(
    "MMIO-NOT-MODELLED", UNIMPLEMENTED, "the register at {0:#010x} is not modelled"
)
WRONG_CORE = error("MMIO-CORE", UB, "this core has no access to the block at {0:#010x}")
STORE_SIZE = error("MMIO-STORE-SIZE", UB, "{2}-byte store to {0:#010x}: only 4-byte stores exist")
LOAD_SIZE = error("MMIO-LOAD-SIZE", UB, "{2}-byte load from {0:#010x}: only 4-byte loads exist")
MISALIGNED = error(
    "RV-ALIGN",
    NCB,
    "{2}-byte access to {0:#010x} is not aligned",
    "align the pointer, or copy byte by byte",
)
READ_ONLY = error("MMIO-READ-ONLY", UB, "store of {1:#x} to the read-only register {0:#010x}")
WRITE_ONLY = error("MMIO-WRITE-ONLY", UB, "load from the write-only register {0:#010x}")
FIELD = error(
    "MMIO-FIELD", UNSUPPORTED, "value {1:#x} stored to {0:#010x} asks for what is not modelled"
)
