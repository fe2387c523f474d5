"""The entry of every opcode in an observed run: what a word touches, and how it is ordered."""

from typing import Any

import numpy as np

from bhemu.jit.intrinsics import call_access, call_entry, flat
from bhemu.jit.subset import njit
from bhemu.memmap import LOCAL_BASE
from bhemu.tensix import config, dest, formats
from bhemu.tensix import config_fields as cf
from bhemu.tensix.config import CONFIG_WORDS, SHARED
from bhemu.tensix.frontend import FROM_REPLAY, MOP
from bhemu.tensix.insn import decoder
from bhemu.tensix.rules import DONE
from bhemu.tensix.thread import taker
from bhemu.tensix.units import cfg, counters
from bhemu.tensix.units.memory import half
from bhemu.tensix.units.pack import addresses as pack_addresses
from bhemu.tensix.units.pack import modes as pack_modes
from bhemu.tensix.units.unpack import addresses as unpack_addresses
from bhemu.tensix.units.unpack.modes import UnpackWord, mode_of_word
from bhemu.tensix.units.vector import loadstore, schedule
from bhemu.tensix.units.vector.sfpu import STORE
from bhemu.why import order as r
from bhemu.why.order import clocks, shadow

# Columns of the description of a word (observe.py fills them)
(
    AGENT_UNIT, BANKS, STALL, KIND, BLOCKS, CONDITIONS, SEMAPHORES, SEM_CONDITION, VALUE, MOST,
    GPR_READ, GPR_WRITE, CONFIG_WRITE, DST_COUNT, DST_FIELD, DST_HOW, MODE, MOVES, CONFIG_READ,
    L1_WRITE, IS_ATOMIC, L1_READ, ADDRESS_GPR, OFFSET_HALF, DATA_GPR,
) = range(25)  # fmt: skip
COLUMNS = 25
WAITS, SEMINIT, SEMPOST, SEMGET, ATGETM, ATRELM, STOREREG, MACRO, WRCFG = range(1, 10)  # KIND
MATRIX_ROWS, VECTOR_ROWS, ANY_ROW, STORED_ROWS = 1, 2, 4, 8  # DST_HOW, as bits
UNPACKS, PACKS = 1, 2  # MOVES
INDIRECT, ATOMIC_LINE, MOVER = 1, 2, 3  # L1_WRITE
TEXT, LIST, SITE, LEAVES = range(4)  # questions and messages to Python
_VECTOR_UNIT = r.UNIT_NAMES.index("vector")
_LINE = 16
_WRITES = r.RANGES // 2  # of `range`, where those written begin


_unpack_fields, _pack_fields = decoder(UnpackWord), decoder(pack_modes.PackWord)


@njit
def _range(o: Any, write: Any, low: Any, high: Any) -> None:
    i = _WRITES * write + o.ranges[write]
    o.range[i, 0], o.range[i, 1] = low, high
    o.ranges[write] += 1


@njit
def _unpacks(s: Any, o: Any, t: Any, w: Any) -> Any:
    """Note the L1 that an UNPACR reads; returns its context, -1 if it unpacks nothing."""
    f = _unpack_fields(w)
    if f.cfg_context_cnt_inc or f.search_cache_flush:
        return np.int64(-1)
    m, u = mode_of_word(s, t, f), f.unpack_block_selection
    if m.counters >= s.adc.shape[0]:
        return np.int64(-1)
    count = s.adc[m.counters, u, 1, 0] - s.adc[m.counters, u, 0, 0] + 1
    read = unpack_addresses.source(s, t, m)
    rows = max((count - 1) // read.row, 0)
    bits = 8 * read.step * rows + read.bits * (count - rows * read.row)
    _range(o, 0, read.data >> 3, read.data + bits + 7 >> 3)
    if not f.zero_write2:
        o.moving[r.M_UNIT], o.moving[r.M_FORMAT] = u, m.fmt
        o.moving[r.M_DATUMS] = 0 if m.tileize else count
    if m.to_dst:
        o.dst_rows[0] = -1
    return np.int64(m.context)


@njit
def _storage(s: Any, o: Any, row: Any, wide: Any) -> None:
    """Note the rows of storage that hold a row of datums."""
    n = o.dst_rows[0]
    if wide:
        high = dest.adj32(row & 0x3FF)
        o.dst_row[n], o.dst_row[n + 1] = high, high + dest.LOW_HALF
        o.dst_rows[0] = n + 2
    else:
        o.dst_row[n] = dest.row16(s, row)
        o.dst_rows[0] = n + 1


@njit
def _packs(s: Any, o: Any, t: Any, w: Any) -> None:
    """Note the rows of Dst that a PACR reads, and the L1 that it writes."""
    f = _pack_fields(w)
    m = pack_modes.mode_of(s, t)
    a = f.addr_cnt_context if f.ovrd_thread_id else np.int64(t)
    if f.flush or a >= s.adc.shape[0]:
        return
    rows = pack_addresses.rows_of(s, a, m, f.read_intf_sel, f.dst_access_mode)
    for k in range(rows.number):
        _storage(s, o, pack_addresses.row_of(rows, k), m.wide)
    o.dst_rows[1] = o.dst_rows[0]
    data = pack_addresses.place_of(s, a, m).data
    bits = pack_addresses.count_of(s, m, rows) * formats.datum_bits(m.out)
    _range(o, 1, data, data + (bits + 7 >> 3))
    o.moving[r.M_UNIT], o.moving[r.M_FORMAT], o.moving[r.M_DATUMS] = 2, m.out, 0


@njit
def _vector_rows(rows: Any, n: Any, first: Any, both: Any) -> Any:
    """Add the rows of storage of 32 datums, from `first` on, to `n` others; how many these are."""
    for i in range(0 if first < 0 else 8):
        if i < 4 or first >= loadstore.WIDE or both:
            rows[n] = first % loadstore.WIDE + (dest.LOW_HALF if i >= 4 else 0) + (i & 3)
            n += 1
    return n


@njit
def _rows(s: Any, o: Any, t: Any, text: Any) -> None:
    """Note the rows of Dst that a word of the matrix or vector unit reads or fills."""
    count, how = text[DST_COUNT], text[DST_HOW]
    row = counters.dst_row(s, t, text[DST_FIELD]) & -count
    if how & (VECTOR_ROWS | STORED_ROWS):
        for stores in range(1 if how & STORED_ROWS else 0, 2):
            first = loadstore.first_of_storage(s, t, text[MODE], row, stores)
            both = stores and dest.halves(s)
            o.dst_rows[0] = _vector_rows(o.dst_row, o.dst_rows[0], first, both)
            if not stores:
                o.dst_rows[1] = o.dst_rows[0]
    elif how & MATRIX_ROWS:
        wide = config.get(s, config.bank(s, t), cf.ALU_ACC_CTRL_Fp32_enabled)
        for k in range(count):
            _storage(s, o, row + k, wide)
        o.dst_rows[1] = o.dst_rows[0]
        for k in range(count if not wide and dest.halves(s) else 0):
            o.dst_row[o.dst_rows[0]] = dest.row16(s, row + k) + dest.LOW_HALF
            o.dst_rows[0] += 1
    if how & ANY_ROW:
        o.dst_rows[0] = -1


@njit
def _row_changed(s: Any, row: Any, valid: Any, cells: Any) -> Any:
    differs = np.int64(s.dst_valid[row] != valid)
    for k in range(16):
        differs |= np.int64(s.dst[row, k]) ^ np.int64(cells[k])
    return differs != 0


@njit
def _stores_of_macro(s: Any, o: Any, opcode: Any, t: Any, word: Any) -> Any:
    """A word comes again while the vector unit carries out stores that SFPLOADMACRO has scheduled:
    execute it, and note the rows that they have written; its status."""
    n = np.int64(0)
    for delay in range(s.macro_slot.shape[1]):
        slot = s.macro_slot[STORE, delay]
        if slot[schedule.KIND] != schedule.FREE:
            row, mode = slot[schedule.ROW], slot[schedule.MODE]
            first = loadstore.first_of_storage(s, s.macro_thread[0], mode, row, 1)
            n = _vector_rows(o.macro_row, n, first, False)
    for k in range(n):
        o.macro_valid[k] = s.dst_valid[o.macro_row[k]]
        clocks.copy(o.macro_dst[k], 0, s.dst[o.macro_row[k]], 0, 16)
    status = call_entry(s.profile_table[opcode], s, t, word)
    agent, one = np.int64(-1), np.int64(0)
    clocks.copy(o.step, 0, o.macro_step, 0, 6)
    for k in range(n):
        row = o.macro_row[k]
        if _row_changed(s, row, o.macro_valid[k], o.macro_dst[k]):
            if agent < 0:
                agent = clocks.begins(o, o.step[4], np.int64(_VECTOR_UNIT))
                one = shadow.event(s, o, agent, np.int64(1))
            shadow.place(o, agent, np.int64(r.DST + row), one, np.int64(1))
    return status


@njit
def _line_of(s: Any, t: Any, text: Any) -> Any:
    """The 16 bytes of L1 that a word of the scalar unit touches."""
    base = np.int64(s.gpr[t, text[ADDRESS_GPR]]) * _LINE
    if text[L1_WRITE] != ATOMIC_LINE:
        base += half(s, t, text[OFFSET_HALF])
    return base & 0xFFFFFFFF


@njit
def _before(s: Any, o: Any, t: Any, w: Any, text: Any) -> Any:
    """Keep what a word may touch before it executes; its context, -1 if it reads no Config."""
    o.ranges[0] = o.ranges[1] = o.dst_rows[0] = o.dst_rows[1] = 0
    context, o.moving[r.M_FORMAT] = np.int64(0), -1
    if text[MOVES] == UNPACKS:
        context = _unpacks(s, o, t, w)
    elif text[MOVES] == PACKS:
        _packs(s, o, t, w)
    if text[DST_HOW]:
        _rows(s, o, t, text)
    if text[L1_WRITE] == MOVER:
        b = config.bank(s, t)
        to = config.get(s, b, cf.THCON_SEC0_REG6_Destination_address) << cfg.UNIT & cfg.ADDRESS
        source = config.get(s, b, cf.THCON_SEC0_REG6_Source_address) << cfg.UNIT & cfg.ADDRESS
        count = (config.get(s, b, cf.THCON_SEC0_REG6_Buffer_size) & cfg.COUNT) << cfg.UNIT
        direction = config.get(s, b, cf.THCON_SEC0_REG6_Transfer_direction)
        if direction == cfg.L1_TO_L0 or direction == cfg.L1_TO_L1:
            _range(o, 0, source, source + count)
        if direction == cfg.L0_TO_L1 or direction == cfg.L1_TO_L1:
            _range(o, 1, to, to + count)
    elif text[L1_READ]:
        low = _line_of(s, t, text) & -text[L1_READ]
        _range(o, 0, low, low + text[L1_READ])
    elif text[L1_WRITE]:
        low = _line_of(s, t, text) & -_LINE
        _range(o, 1, low, low + _LINE)
        for k in range(_LINE):
            o.old_l1[k] = s.l1[low + k] if low + k < s.l1.size else 0
    if o.dst_rows[0] < 0:
        clocks.copy(flat(o.old_dst), 0, flat(s.dst), 0, s.dst.size)
        clocks.copy(o.old_valid, 0, s.dst_valid, 0, s.dst_valid.size)
    for k in range(o.dst_rows[0]):
        o.old_valid[o.dst_row[k]] = s.dst_valid[o.dst_row[k]]
        clocks.copy(o.old_dst[o.dst_row[k]], 0, s.dst[o.dst_row[k]], 0, 16)
    if text[GPR_WRITE]:
        clocks.copy(o.old_gpr[t], 0, s.gpr[t], 0, 64)
    if text[CONFIG_WRITE]:
        keep_config(s, o)
    return context if text[CONFIG_READ] else np.int64(-1)


# After the word


@njit
def _reads_config(s: Any, o: Any, t: Any, i: Any, context: Any, agent: Any, later: Any) -> None:
    """A word reads bits of Config, at its issue or later."""
    bank, place = config.bank(s, t), context & 7
    if o.text_list[i, bank, place, later] == 0:
        call_access(o.ask[0], s, np.int64(LIST), np.int64(i), np.int64(bank), place)
    which = np.int64(o.text_list[i, bank, place, later]) - 1
    if which >= 0:
        shadow.config_read(o, agent, which, shadow.event(s, o, agent, np.int64(0)))


@njit
def _reads(s: Any, o: Any, t: Any, i: Any, agent: Any, context: Any) -> None:
    text = o.text[i]
    if context >= 0:
        _reads_config(s, o, t, i, context, np.int64(r.ISSUE + t), np.int64(0))
    one = shadow.event(s, o, agent, np.int64(0))
    if context >= 0:
        _reads_config(s, o, t, i, context, agent, np.int64(1))
    gprs = np.uint64(text[GPR_READ])
    for k in range(64 if gprs else 0):
        if gprs >> np.uint64(k) & np.uint64(1):
            low = np.int64(r.GPRS + 2 * (64 * t + k))
            for cell in range(low, low + 2):
                shadow.place(o, agent, cell, one, np.int64(0))
    for k in range(o.dst_rows[1]):
        shadow.place(o, agent, np.int64(r.DST + o.dst_row[k]), one, np.int64(0))
    for k in range(o.ranges[0]):
        shadow.l1(o, agent, o.range[k, 0], o.range[k, 1], one, np.int64(0))


@njit
def _writes(s: Any, o: Any, t: Any, agent: Any, text: Any) -> None:
    one = shadow.event(s, o, agent, np.int64(1))
    for k in range(64 if text[GPR_WRITE] else 0):
        differ = np.int64(s.gpr[t, k] ^ o.old_gpr[t, k])
        if differ:
            low = np.int64(r.GPRS + 2 * (64 * t + k))
            for at_half in range(2):
                if differ >> 16 * at_half & 0xFFFF:
                    shadow.place(o, agent, low + at_half, one, np.int64(1))
            if o.polled_gpr[64 * t + k]:
                clocks.save(o, clocks.named(o, np.int64(clocks.GPR | 64 * t + k)), agent)
    for k in range(1024 if o.dst_rows[0] < 0 else max(o.dst_rows[0], 0)):
        row = np.int64(k) if o.dst_rows[0] < 0 else o.dst_row[k]
        if _row_changed(s, row, o.old_valid[row], o.old_dst[row]):
            shadow.place(o, agent, np.int64(r.DST + row), one, np.int64(1))
    for k in range(_WRITES, _WRITES + o.ranges[1]):
        low, high = o.range[k, 0], o.range[k, 1]
        if text[L1_WRITE] == INDIRECT or text[L1_WRITE] == ATOMIC_LINE:
            for n in range(_LINE):
                if low + n < s.l1.size and s.l1[low + n] != o.old_l1[n]:
                    shadow.l1(o, agent, low + n, low + n + 1, one, np.int64(1))
        else:
            shadow.l1(o, agent, low, high, one, np.int64(1))
    if text[CONFIG_WRITE]:
        gpr, read = np.int64(-1), np.uint64(text[GPR_READ] if text[KIND] == WRCFG else 0)
        for k in range(64 if read else 0):
            if gpr < 0 and read >> np.uint64(k) & np.uint64(1):
                gpr = np.int64(r.GPRS + 2 * (64 * t + k))
        config_changes(s, o, agent, one, gpr)
        keep_config(s, o)  # a store of a core may be waiting for this word


@njit
def keep_config(s: Any, o: Any) -> None:
    """Keep Config."""
    clocks.copy(flat(o.old_cfg), 0, flat(s.cfg), 0, s.cfg.size)


@njit
def config_changes(s: Any, o: Any, agent: Any, one: Any, gpr: Any) -> None:
    """Note the bits of Config that have changed; shared words stand in the first bank.

    gpr: the place of the GPR from which they are copied, -1: none.
    """
    for k in range(CONFIG_WORDS + SHARED):
        bank, word = k // CONFIG_WORDS, k % CONFIG_WORDS
        differ = np.int64(s.cfg[bank, word] ^ o.old_cfg[bank, word])
        if differ:
            shadow.config_written(o, agent, np.int64(k), differ, one)
            clocks.copy(o.set_by[k], 0, o.step, 0, 6)
            if gpr >= 0 and max(o.writer[gpr], o.writer[gpr + 1]):
                by = o.event[max(o.writer[gpr], o.writer[gpr + 1])]
                clocks.copy(o.set_by[k], 0, by, r.PC, 6)


@njit
def _mop_begins(s: Any, o: Any, t: Any, issue: Any) -> None:
    """The first word of a MOP, which has read its template."""
    pc, pushed, word = o.step[0], o.step[1], o.step[2]
    o.mop[t, 0], o.mop[t, 1] = o.pushed[t], o.clocks[issue, issue]
    o.step[0], o.step[1], o.step[2] = s.mop_pc[t], s.mop_pc[t], MOP << 24
    one = shadow.event(s, o, issue, np.int64(0))
    for cell in range(r.TEMPLATES + r.TEMPLATE * t, r.TEMPLATES + r.TEMPLATE * (t + 1)):
        shadow.place(o, issue, np.int64(cell), one, np.int64(0))
    o.step[0], o.step[1], o.step[2] = pc, pushed, word


@njit
def _after(s: Any, o: Any, t: Any, i: Any, context: Any) -> None:
    """A word has executed."""
    text, issue = o.text[i], np.int64(r.ISSUE + t)
    for u in range(2 if text[BANKS] else 0):  # it comes after the words that gave it the banks
        given = clocks.named(o, np.int64(clocks.BANK | u << 1 | (text[BANKS] == 2)))
        clocks.join(o, issue, given, given)
    clocks.issues(o, t, s.fifo_read[t] - 1)
    if s.mop_on[t] and o.mop[t, 0] != o.pushed[t]:
        _mop_begins(s, o, t, issue)
    if o.wait[t, 0] & text[STALL]:
        clocks.passes(o, t)
    if text[KIND] == WAITS:
        wait = o.wait[t]
        wait[0], wait[1], wait[2] = text[BLOCKS], text[CONDITIONS], text[SEMAPHORES]
        wait[3], wait[4], wait[5] = text[SEM_CONDITION], o.step[1], o.step[2]
    agent = clocks.begins(o, t, text[AGENT_UNIT])
    o.done_by[o.step[3], agent] = o.clocks[agent, agent]
    kind = text[KIND]
    if kind == MACRO:
        clocks.copy(o.macro_step, 0, o.step, 0, 6)
    elif kind == ATGETM:
        clocks.acquire(o, agent, clocks.MUTEX | text[VALUE])
    elif kind == ATRELM:
        clocks.release(o, agent, clocks.MUTEX | text[VALUE])
    changes = kind == SEMINIT or kind == SEMPOST or kind == SEMGET
    for k in range(8 if changes else 0):
        if text[SEMAPHORES] >> k & 1 and kind == SEMINIT:
            clocks.sem_init(o, agent, np.int64(k), text[VALUE], text[MOST])
        elif text[SEMAPHORES] >> k & 1:
            clocks.sem_change(o, agent, np.int64(k), np.int64(kind == SEMGET))
    if text[IS_ATOMIC]:
        clocks.acquire(o, agent, np.int64(clocks.ATOMIC))
    _reads(s, o, t, i, agent, context)
    _writes(s, o, t, agent, text)
    if o.dst_rows[0] or o.dst_rows[1]:
        o.dst_word[clocks.owner(agent), 0] = o.step[1]
    if text[IS_ATOMIC]:
        clocks.release(o, agent, np.int64(clocks.ATOMIC))
    if kind == STOREREG:
        address = np.int64(LOCAL_BASE + 4 * text[VALUE])
        clocks.release(o, issue, address)
        value = np.int64(s.gpr[t, text[DATA_GPR]])
        what = np.int64(shadow.STORED)
        shadow.note(s, o, what, np.int64(t), value, o.step[0], o.step[3], address, np.int64(0))
    for u in range(4):  # banks of Src that change hands
        valid = s.src_valid[u >> 1, u & 1]
        if valid != o.valid[u >> 1, u & 1]:
            name = np.int64(clocks.BANK | u & 2 | (valid != 0))
            clocks.save(o, clocks.named(o, name), agent)
            o.valid[u >> 1, u & 1] = valid
    shadow.make_room(o)


def observed_word(s: Any, t: Any, word: Any) -> Any:
    """ENTRY: execute a word of thread `t` and note what it touches; t < 0: a thread waits."""
    o = r.at(s.profile_table[r.ADDRESS])
    w = np.int64(word)
    opcode = taker(s, w >> 24)
    if t < 0 or o.full[0]:
        return call_entry(s.profile_table[opcode], s, t, word)
    if s.route[0]:  # the word comes again, from the entry that has claimed it
        return _stores_of_macro(s, o, opcode, t, word)
    key = w & o.key_mask[w >> 24]  # of the row that describes the word
    i = (key * 0x9E3779B1 >> 9) % r.TEXTS
    while o.text_word[i] != key + 1:
        if o.text_word[i] == 0:  # Python fills it when the word comes first
            if o.texts[0] > r.TEXTS // 2:
                clocks.clear(o.text_word)
                o.texts[0] = 0
            call_access(o.ask[0], s, np.int64(TEXT), np.int64(i), key, np.int64(0))
            o.text_word[i] = key + 1
            o.texts[0] += 1
        else:
            i = (i + 1) % r.TEXTS
    context = _before(s, o, t, w, o.text[i])
    status = call_entry(s.profile_table[opcode], s, t, word)
    if status <= DONE:
        pc = np.int64(s.gate_pc[t])
        pushed = np.int64(s.play_pc[t]) if s.gate_from[t] >= FROM_REPLAY else pc
        shadow.steps(s, o, pc, pushed, w, s.gate_core[t], np.int64(t))
        if o.moving[r.M_FORMAT] >= 0:
            shadow.moves(s, o, t, np.int64(_WRITES if o.text[i, MOVES] == PACKS else 0))
        if status == DONE and o.text[i, AGENT_UNIT] > -2:
            _after(s, o, t, i, context)
    return status
