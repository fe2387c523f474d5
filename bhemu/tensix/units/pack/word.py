"""The word of PACR: its fields, and those that are not specified."""

from bhemu.bits import Word, bits


class PackWord(Word):
    """Fields of PACR, for its own entry and for its second entry."""

    last = bits(0)
    flush = bits(1, mode=True)
    ctxt_ctrl = bits(3, 2)
    concat = bits(4, mode=True)
    ovrd_thread_id = bits(7)
    read_intf_sel = bits(11, 8, mode=True)
    zero_write = bits(12, mode=True)
    addr_cnt_context = bits(14, 13)
    addr_mode = bits(16, 15)
    dst_access_mode = bits(17, mode=True)
    row_pad_zero = bits(20, 18)
    cfg_context = bits(22, 21)


UNKNOWN = PackWord.ctxt_ctrl.mask | PackWord.row_pad_zero.mask | PackWord.cfg_context.mask
