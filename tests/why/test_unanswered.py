"""Whose answers a core has looked for: by the counter of a kind, or of a transaction id."""

import numpy as np
import pytest

from bhemu import Tile
from bhemu.devices import niu_request as request
from bhemu.memmap import NIU_COUNTERS, NOC0_BASE, NOC_CMD_CTRL, NOC_CTRL, NOC_PACKET_TAG
from bhemu.why.network.unanswered import Unanswered
from bhemu.why.walk import Access, Instruction

ID, KINDS = 3, {"read": request.READ, "write": request.WRITE | request.ANSWERED}
COUNTERS = {"read": 2, "write": 1}


def looked_for(kind: str, counter: int) -> bool:
    """Whether a load of that counter looks for the answer of a request with transaction id 3."""
    tile = Tile()
    registers = tile.state.niu_command[0, 0]
    registers[NOC_CTRL >> 2], registers[NOC_PACKET_TAG >> 2] = KINDS[kind], ID << 10
    seen = Unanswered(tile)
    step = Instruction(0, 0, 0, 0, np.zeros(32, np.uint32))
    seen.instruction(step, Access(NOC0_BASE + NOC_CMD_CTRL, 4, False, True, 1))
    assert len(seen.sent) == 1
    seen.instruction(step, Access(NOC0_BASE + NIU_COUNTERS + 4 * counter, 4, True, False, 0))
    return not seen.sent


@pytest.mark.parametrize("kind", KINDS)
def test_the_counter_of_the_kind(kind: str) -> None:
    assert [n for n in range(16) if looked_for(kind, n)] == [COUNTERS[kind]]


@pytest.mark.parametrize("kind", KINDS)
def test_the_counter_of_the_transaction(kind: str) -> None:
    assert [n for n in range(16) if looked_for(kind, 16 + n)] == [ID]
