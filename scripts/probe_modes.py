"""Asks every instruction, mode by mode and format by format, whether it would be refused.

Prints JSON: mnemonic -> rows of debug.coverage, with the rule that refused the mode, or "".  Each
word executes alone on a prepared state, interpreted; what is undefined for that state says nothing
about the mode and is left out.  Used by scripts/golden_coverage.py.
"""

import itertools
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ["NUMBA_DISABLE_JIT"] = "1"
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from bhemu.debug import trace
from bhemu.machine.sentences import RULES
from bhemu.machine.tile import Tile
from bhemu.tensix import config_fields as cf
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.config_fields import Field
from bhemu.tensix.formats import NAMES
from bhemu.tensix.insn import Instruction, instructions
from bhemu.tensix.rules import MISSING, UNIMPLEMENTED, UNSUPPORTED

BF16, MOST, THREAD = 5, 256, 1
MATRIX = ("ELWADD", "ELWSUB", "ELWMUL", "MVMUL", "GAPOOL", "GMPOOL", "MOVA2D", "MOVB2D")
PLAIN = {
    "UNPACR": {"last": 1, "ovrd_thread_id": 1},
    "GAPOOL": {"instr_mod19": 1},
    "GMPOOL": {"instr_mod19": 1},
    "SFPADD": {"lreg_src_a": 10, "lreg_src_b": 10},
    "SFPMUL": {"lreg_src_c": 9},
    "SFPMUL24": {"lreg_src_c": 9},
}
Setup = Callable[[Any], None]


def put(s: Any, field: Field, value: int) -> None:
    """Set a field of both configuration banks."""
    s.cfg[:, field.word] &= np.uint32(~(field.mask << field.shift) & 0xFFFFFFFF)
    s.cfg[:, field.word] |= np.uint32(value << field.shift)


def prepare(s: Any) -> None:
    """Banks valid, bf16 everywhere, one face of 16 rows to unpack or pack, flags on the stack."""
    s.cc_depth[0] = 1
    s.dst_valid[:] = s.src_valid[:] = 1
    s.src_fmt[:] = BF16
    s.thread_cfg[:, tf.SRCA_SET_SetOvrdWithAddr.word] |= 1 << tf.SRCA_SET_SetOvrdWithAddr.shift
    for u in range(2):
        first = getattr(cf, f"THCON_SEC{u}_REG0_TileDescriptor").word
        s.cfg[:, first] = 256 << 16 | 1 << 4
        s.cfg[:, first + 1] = 1 | 4 << 16
        put(s, getattr(cf, f"THCON_SEC{u}_REG2_Disable_zero_compress_cntx0"), 1)
        put(s, getattr(cf, f"THCON_SEC{u}_REG3_Base_address"), 0x4000)
        unpacking(s, u, BF16, BF16)
    put(s, cf.THCON_SEC0_REG5_Dest_cntx0_address, 64)
    put(s, cf.THCON_SEC0_REG5_Tile_x_dim_cntx0, 256)
    s.adc[:, :, 1, 0] = 15
    put(s, cf.PCK_EDGE_OFFSET_SEC0_mask, 0xFFFF)
    put(s, cf.THCON_SEC0_REG1_Disable_zero_compress, 1)
    put(s, cf.THCON_SEC0_REG1_L1_Dest_addr, 0x4000)
    packing(s, BF16, BF16, 0)


def unpacking(s: Any, u: int, source: int, target: int) -> None:
    """Formats of unpacker `u`; its bank is free."""
    s.src_valid[u] = 0
    put(s, Field(getattr(cf, f"THCON_SEC{u}_REG0_TileDescriptor").word, 0, 0xF), source)
    put(s, getattr(cf, f"THCON_SEC{u}_REG2_Out_data_format"), target)


def packing(s: Any, source: int, target: int, wide: int) -> None:
    """Formats of the packer and the width of Dst."""
    put(s, cf.ALU_FORMAT_SPEC_REG2_Dstacc, source)
    put(s, cf.THCON_SEC0_REG1_In_data_format, source)
    put(s, cf.THCON_SEC0_REG1_Out_data_format, target)
    put(s, cf.PCK_DEST_RD_CTRL_Read_32b_data, wide)


def multiplying(s: Any, a: int, b: int, wide: int) -> None:
    """Formats of the banks and the width of Dst."""
    s.src_valid[:] = 1
    s.src_fmt[0], s.src_fmt[1] = a, b
    put(s, cf.ALU_ACC_CTRL_Fp32_enabled, wide)


def words(cls: type[Instruction]) -> Iterator[int]:
    """A word for every combination of mode fields, or for every value of one where too many."""
    fields = [f for f in cls.fields if f.mode]
    plain = PLAIN.get(cls.name, {})
    ranges = [range(f.max + 1) for f in fields]
    total = 1
    for values in ranges:
        total *= len(values)
    if total <= MOST:
        for chosen in itertools.product(*ranges):
            given = dict(zip((f.name for f in fields), chosen, strict=True))
            yield cls.assemble(**{**plain, **given})
        return
    for field in fields:
        for value in range(min(field.max + 1, MOST)):
            yield cls.assemble(**{**plain, field.name: value})


def probes() -> Iterator[tuple[type[Instruction], int, Setup]]:
    """(instruction, word, what to set up for it)."""
    for cls in instructions().values():
        if cls.execute is not None:
            for word in words(cls):
                yield cls, word, lambda s: None
    named = {cls.name: cls for cls in instructions().values()}
    codes = sorted(NAMES)
    for source, target in itertools.product(codes, codes):
        for u in range(2):
            word = named["UNPACR"].assemble(**PLAIN["UNPACR"], unpack_block_selection=u)
            yield named["UNPACR"], word, lambda s, f=(u, source, target): unpacking(s, *f)
        for wide in range(2):
            word = named["PACR"].assemble()
            yield named["PACR"], word, lambda s, f=(source, target, wide): packing(s, *f)
            if source == target:
                for name in MATRIX:
                    word = named[name].assemble(**PLAIN.get(name, {}))
                    yield named[name], word, lambda s, f=(source, source, wide): multiplying(s, *f)


def main() -> None:
    """Print the modes that execute and those that are refused."""
    tile = Tile()
    s = tile.state
    prepare(s)
    clean = s.buffer.copy()
    found: dict[trace.Mode, str] = {}
    for cls, word, setup in probes():
        s.buffer[:] = clean
        setup(s)
        mode = trace.mode_of(s, THREAD, cls, word)
        with np.errstate(all="ignore"):
            status = tile.backend.table.interpret(s, THREAD, word)
        if status >= 0:
            found.setdefault(mode, "")
        elif status in RULES and RULES[status].category in (UNSUPPORTED, UNIMPLEMENTED, MISSING):
            found.setdefault(mode, RULES[status].rule)
    rows = [
        {"mnemonic": name, "fields": dict(fields), "formats": formats, "rule": rule}
        for (name, fields, formats), rule in sorted(found.items())
    ]
    json.dump(rows, sys.stdout)


if __name__ == "__main__":
    main()
