"""MOP and REPLAY expanders against literal expansions (MOPExpander, REPLAY, Blackhole ISA)."""

import random
from collections.abc import Iterator

import pytest

from bhemu.errors import Undefined
from bhemu.machine.tile import Tile
from bhemu.memmap import MOP_CFG_BASE
from bhemu.riscv.assembly import A0, A1, PARK, PUSH, code, li, sw, tt, ttinsn
from bhemu.tensix.insn import assemble

NOP = assemble("NOP")


def marker(n: int) -> int:
    """A distinguishable harmless word."""
    return assemble("SETDMAREG", payload_sig_sel=n, reg_index_16b=126)


def executed(
    words: list[int], mop: list[int], thread: int = 1, reference: str = "ttsim"
) -> list[int]:
    """Words that pass the wait gate of `thread`, in order."""
    tile = Tile(reference=reference)
    tile.state.trace[0] = 1
    setup = [w for i, v in enumerate(mop) for w in (*li(A1, MOP_CFG_BASE + 4 * i), *li(A0, v),
                                                    sw(A0, A1))]  # fmt: skip
    tile.write(0x10000, code(setup, [ttinsn(w) for w in words], PARK))
    name = f"trisc{thread}"
    tile.core[name].set_reset_pc(0x10000)
    tile.core[name].release()
    assert tile.run(timeout_s=20).reason == "idle"
    tile.drain_log()
    return [word for t, word, *_ in tile.log if t == thread]


def template0(words: list[int], mop: int, high: int) -> Iterator[int]:
    mask, flags = (mop & 0xFFFF) | high << 16, words[1]
    for _ in range((mop >> 16 & 0x7F) + 1):
        if mask & 1:
            yield words[7]
            if flags & 1:
                yield words[8]
        else:
            yield words[3]
            if flags & 2:
                yield from words[4:7]
            if flags & 1:
                yield words[2]
        mask >>= 1


def template1(words: list[int]) -> Iterator[int]:
    outer, inner, start, end0, end1, loop0, loop1, last, other = words
    two = loop1 != NOP
    count = inner * 2 if two else inner
    for i in range(outer):
        if start != NOP:
            yield start
        for j in range(count - 1):
            yield loop1 if two and j % 2 else loop0
        yield last if i == outer - 1 else other
        if end0 != NOP:
            yield end0
            if end1 != NOP:
                yield end1


@pytest.mark.parametrize("seed", range(12))
def test_template_0_follows_the_zero_mask(seed: int) -> None:
    rng = random.Random(seed)
    words = [0, seed % 4, *(marker(10 + i) for i in range(7))]
    high = rng.getrandbits(16)
    mop = rng.getrandbits(16) | rng.randrange(32) << 16
    stream = [assemble("MOP_CFG", zmask_hi16=high), assemble("MOP") | mop]
    assert executed(stream, words) == list(template0(words, mop, high))


@pytest.mark.parametrize("seed", range(16))
def test_template_1_loops_and_replaces_the_last_word(seed: int) -> None:
    rng = random.Random(100 + seed)
    pick = [marker(20 + i) if rng.random() < 0.6 else NOP for i in range(7)]
    pick[3] = marker(23)
    words = [rng.randint(1, 6), rng.randint(1, 9), *pick[:3], *pick[3:]]
    words[7], words[8] = marker(30), marker(31)
    assert executed([assemble("MOP", mop_type=1)], words) == list(template1(words))


def test_a_mop_uses_the_configuration_it_began_with() -> None:
    """Two MOPs of the largest counts give every word, with a configuration of 127 x 127."""
    words = [127, 127, NOP, NOP, NOP, marker(1), NOP, marker(2), marker(3)]
    assert executed([assemble("MOP", mop_type=1)], words) == list(template1(words))


@pytest.mark.parametrize(("outer", "inner"), [(128, 2), (1, 128), (1023, 2), (2, 1023)])
def test_counts_of_10_bits_where_tt_llk_decides(outer: int, inner: int) -> None:
    """tt-llk's test of tensix_sync() has a MOP of 1000 x 1000; the text has seven bits."""
    words = [outer, inner, NOP, NOP, NOP, marker(1), NOP, marker(2), marker(3)]
    mop = [assemble("MOP", mop_type=1)]
    assert executed(mop, words, reference="llk") == list(template1(words))
    with pytest.raises(Undefined, match="must be 1 to 127"):
        executed(mop, words)


@pytest.mark.parametrize("count", [0, 1024])
def test_other_counts_are_refused_there_too(count: int) -> None:
    with pytest.raises(Undefined, match="must be 1 to 1023"):
        executed(
            [assemble("MOP", mop_type=1)], [1, count, *(NOP for _ in range(7))], reference="llk"
        )


@pytest.mark.parametrize("seed", range(12))
def test_replay_records_and_plays_with_wrap(seed: int) -> None:
    rng = random.Random(seed)
    buffer = [0] * 32
    stream, want = [], []
    for n in range(8):
        slot, length = rng.randrange(32), rng.randint(1, 32)
        if n < 4 or rng.random() < 0.3:
            execute = rng.randrange(2)
            stream.append(assemble("REPLAY", load_mode=1, execute_while_loading=execute,
                                   len=length % 32, start_idx=slot))  # fmt: skip
            for k in range(length):
                word = marker(1000 * n + k)
                stream.append(word)
                buffer[(slot + k) % 32] = word
                if execute:
                    want.append(word)
        else:
            filled = [k for k in range(32) if buffer[k]]
            slot, length = rng.choice(filled), 1
            stream.append(assemble("REPLAY", len=length, start_idx=slot))
            want.append(buffer[slot])
    assert executed(stream, []) == want


def test_a_recorded_replay_is_stored_and_refused_when_played() -> None:
    stream = [assemble("REPLAY", load_mode=1, len=1), assemble("REPLAY", len=1)]
    assert executed(stream, []) == []
    with pytest.raises(Undefined, match="REPLAY-NESTED"):
        executed([*stream, assemble("REPLAY", len=1)], [])


@pytest.mark.parametrize(
    ("words", "rule"),
    [
        ([0, 1, NOP, NOP, NOP, NOP, NOP, NOP, NOP], "MOP-COUNT"),
        ([1, 128, NOP, NOP, NOP, NOP, NOP, NOP, NOP], "MOP-COUNT"),
    ],
)
def test_counts_outside_their_range_are_refused(words: list[int], rule: str) -> None:
    with pytest.raises(Undefined, match=rule):
        executed([assemble("MOP", mop_type=1)], words)


def test_template_0_with_unknown_flags_is_refused() -> None:
    with pytest.raises(Undefined, match="MOP-FLAGS"):
        executed([assemble("MOP")], [0, 4, NOP, NOP, NOP, NOP, NOP, NOP, NOP])


def test_replay_out_of_range_is_refused() -> None:
    with pytest.raises(Undefined, match="REPLAY-RANGE"):
        executed([assemble("REPLAY", len=33)], [])


def test_brisc_words_skip_the_mop_expander() -> None:
    tile = Tile()
    tile.core["brisc"].write32(PUSH, assemble("MOP", mop_type=1))
    with pytest.raises(Undefined, match="MOP-BRISC"):
        tile.run()


def test_brisc_pushes_to_each_thread_by_its_window() -> None:
    tile = Tile()
    for t in range(3):
        word = assemble("SETDMAREG", payload_sig_sel=t + 5, reg_index_16b=0)
        tile.core["brisc"].write32(PUSH + 0x10000 * t, word)
    assert tile.run().reason == "idle"
    assert [int(tile.tensix.gpr[t][0]) for t in range(3)] == [5, 6, 7]


def test_unknown_opcode_names_thread_word_and_place() -> None:
    tile = Tile()
    tile.write(0x10000, code(ttinsn(0xAF000000), PARK))
    tile.core["trisc2"].set_reset_pc(0x10000)
    tile.core["trisc2"].release()
    with pytest.raises(Undefined) as caught:
        tile.run()
    where = caught.value.where
    assert where is not None
    assert (where.core, where.thread, where.pc, where.word) == ("trisc2", 2, 0x10000, 0xAF000000)


def test_reserved_bits_are_refused() -> None:
    with pytest.raises(Undefined, match="ENC-RESERVED"):
        executed([assemble("DMANOP") | 4], [])


def test_nop_is_held_only_by_all_nine_block_bits() -> None:
    stream = [tt("SEMWAIT", sem_sel=1, stall_res=0x0FF, wait_sem_cond=1), tt("NOP")]
    tile = Tile()
    tile.core["brisc"].write32(PUSH, assemble("SEMINIT", sem_sel=1, max_value=1))
    tile.write(0x10000, code(*stream, PARK))
    tile.core["trisc0"].set_reset_pc(0x10000)
    tile.core["trisc0"].release()
    assert tile.run().reason == "idle"
    assert int(tile.state.op_count[0, NOP >> 24]) == 1


def test_resourcedecl_is_consumed_without_effect() -> None:
    assert executed([assemble("RESOURCEDECL"), marker(5)], []) == [marker(5)]
