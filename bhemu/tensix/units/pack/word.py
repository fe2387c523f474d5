"""The word of PACR: its fields, and those that are not specified."""

from bhemu.bits import Word, bits
from bhemu.operand import choice, flags, number
from bhemu.tensix import tables


class PackWord(Word):
    """Fields of PACR, for its own entry and for its second entry."""

    last = bits(0, 0, choice({0: "the tile goes on", 1: "ends the tile"}))
    flush = bits(1, 1, choice({0: "packs", 1: "ends the tile, packs nothing"}), mode=True)
    ctxt_ctrl = bits(3, 2, tables.ZERO)
    concat = bits(4, 4, tables.IGNORED, mode=True)
    ovrd_thread_id = bits(
        7,
        7,
        choice({0: "counters of the issuing thread", 1: "counters of thread addr_cnt_context"}),
    )
    read_intf_sel = bits(
        11,
        8,
        flags(
            "row 0",
            "row 1",
            "row 2",
            "row 3",
            about="rows of the four from the first on",
            none="all four rows",
        ),
        mode=True,
    )
    zero_write = bits(12, 12, choice({0: "datums from Dst", 1: "zeros"}), mode=True)
    addr_cnt_context = bits(14, 13, choice({0: "thread 0", 1: "thread 1", 2: "thread 2"}))
    addr_mode = bits(16, 15, number("ADDR_MOD_PACK section, applied to the counters afterwards"))
    dst_access_mode = bits(
        17,
        17,
        choice(
            {
                0: "rows that follow each other",
                1: "rows that lie 16 apart (read_intf_sel 0, 1 or 3)",
            }
        ),
        mode=True,
    )
    row_pad_zero = bits(20, 18, tables.ZERO)
    cfg_context = bits(22, 21, tables.ZERO)


UNKNOWN = PackWord.ctxt_ctrl.mask | PackWord.row_pad_zero.mask | PackWord.cfg_context.mask
