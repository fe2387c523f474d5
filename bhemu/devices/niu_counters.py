"""The counters of a NIU by name, from offset 0x200 on (NIU Counters, Blackhole ISA)."""

from bhemu import memmap as mm

_SENDER = (
    *("ATOMIC_RESP_RECEIVED", "WR_ACK_RECEIVED", "RD_RESP_RECEIVED", "RD_DATA_WORD_RECEIVED"),
    *("CMD_ACCEPTED", "RD_REQ_SENT", "NONPOSTED_ATOMIC_SENT", "POSTED_ATOMIC_SENT"),
    *("NONPOSTED_WR_DATA_WORD_SENT", "POSTED_WR_DATA_WORD_SENT", "NONPOSTED_WR_REQ_SENT"),
    *("POSTED_WR_REQ_SENT", "NONPOSTED_WR_REQ_STARTED", "POSTED_WR_REQ_STARTED"),
    *("RD_REQ_STARTED", "NONPOSTED_ATOMIC_STARTED"),
    *(f"REQS_OUTSTANDING_ID({i})" for i in range(16)),
    *(f"WRITE_REQS_OUTGOING_ID({i})" for i in range(16)),
)
_TARGET = (
    *("ATOMIC_RESP_SENT", "WR_ACK_SENT", "RD_RESP_SENT", "RD_DATA_WORD_SENT", "REQ_ACCEPTED"),
    *("RD_REQ_RECEIVED", "NONPOSTED_ATOMIC_RECEIVED", "POSTED_ATOMIC_RECEIVED"),
    *("NONPOSTED_WR_DATA_WORD_RECEIVED", "POSTED_WR_DATA_WORD_RECEIVED"),
    *("NONPOSTED_WR_REQ_RECEIVED", "POSTED_WR_REQ_RECEIVED"),
    *("NONPOSTED_WR_REQ_STARTED", "POSTED_WR_REQ_STARTED"),
)
NAMES = (*(f"NIU_MST_{name}" for name in _SENDER), *(f"NIU_SLV_{name}" for name in _TARGET))
assert mm.NIU_COUNTERS + 4 * len(NAMES) == mm.NIU_COUNTERS_END


def place(address: int) -> tuple[int, int] | None:
    """(NoC, index of the counter) at an address of the tile, None elsewhere."""
    noc, offset = divmod(address - mm.NOC0_BASE, mm.NOC_SIZE)
    if noc in (0, 1) and mm.NIU_COUNTERS <= offset < mm.NIU_COUNTERS_END:
        return noc, (offset - mm.NIU_COUNTERS) >> 2
    return None
