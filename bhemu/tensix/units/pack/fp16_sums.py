"""Sums of fp16 in L1 for which a card has given NaN: a note, because no text says for which values.

Reported from a P100A (boopdotpng/tenstorrent-docs, hardware/packer-l1-acc-float16-hardware-bug.md):
0x7FFF or 0xFFFF in place of ordinary sums, where a matmul is packed with Pack_L1_Acc in fp16 and
two subblocks or more are packed between one addition to a place and the next.  Clean are one
subblock, bf16, fp32, and sums without a matmul.
A subblock is what is packed of one section of Dst: the next one begins where the packer's offset
changes or its row goes back.  Two in a row that begin at the same place of L1 are one subblock in
two cycles.
"""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.tensix import config
from bhemu.tensix import config_fields as cf
from bhemu.tensix.formats import FP16
from bhemu.tensix.quirks import noted
from bhemu.tensix.status import UNIMPLEMENTED, error
from bhemu.tensix.units.matrix.mul import MVMUL

# Places in s.pack_sum: 1 while fp16 is accumulated, then of the subblock that is being packed.
_OPEN, _ADDRESS, _OFFSET, _ROW, _MATMULS = range(5)
_MVMUL = MVMUL.opcode

_SUBBLOCKS = error(
    "PACR-FP16-SUMS",
    UNIMPLEMENTED,
    "Pack_L1_Acc with fp16 after a matmul of two subblocks or more: a P100A has given NaN (0x7FFF,"
    " 0xFFFF) for some such sums, which is not modelled",
    "accumulate bf16 or fp32 in L1, or pack one subblock per block",
)


@njit
def note(s: Any, m: Any, rows: Any, address: Any) -> None:
    """Look at a PACR in Mode `m` of the Rows whose first datum goes to L1 `address`."""
    last = s.pack_sum
    if m.accumulate == 0 or m.out != FP16:
        last[_OPEN] = 0
        return
    offset = config.get(s, m.bank, cf.DEST_TARGET_REG_CFG_PACK_SEC0_Offset)
    begins = offset != last[_OFFSET] or rows.first <= last[_ROW]
    if last[_OPEN] == 0 or begins:
        matmuls = np.int64(0)
        for t in range(3):
            matmuls += s.op_count[t, _MVMUL]
        if last[_OPEN] and matmuls != last[_MATMULS] and address != last[_ADDRESS]:
            noted(s, _SUBBLOCKS)
        last[_OPEN], last[_ADDRESS], last[_OFFSET] = 1, address, offset
        last[_MATMULS] = matmuls
    last[_ROW] = rows.first
