"""Scalar unit: REG2FLOP to THCON configuration and to address counters (REG2FLOP_*, ISA)."""

import random

import numpy as np
import pytest
from unit_runner import SILICON, WARN, WORD, count, run, sentence

from bhemu.machine import sentences
from bhemu.tensix import rules
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.insn import assemble
from bhemu.tensix.state import State
from bhemu.tensix.units import scalar

WIDTHS = (18, 13, 8, 8)


def tolerant(seed: int) -> tuple[State, random.Random]:
    rng = random.Random(seed)
    s = State()
    s.ub_mode[0] = SILICON
    s.gpr[:] = np.frombuffer(rng.randbytes(768), np.uint32).reshape(3, 64)
    return s, rng


@pytest.mark.parametrize("target", [0, 2, 3])
def test_unsupported_on_blackhole_unless_tolerated(target: int) -> None:
    """ "UnsupportedFunctionality ... confidence in specification below is weak"."""
    s = State()
    s.gpr[0, 1] = 77
    f = {"target_sel": target, "size_sel": 1, "reg_index": 1}
    assert run(s, "REG2FLOP", **f) == scalar.WEAK
    assert sentences.RULES[scalar.WEAK].category == rules.UNSUPPORTED
    assert not s.cfg.any()
    assert not s.adc.any()
    s.ub_mode[0] = WARN
    assert run(s, "REG2FLOP", **f) == rules.DONE
    assert count(s, scalar.WEAK) == 1
    assert bool(s.cfg.any()) != bool(s.adc.any())


@pytest.mark.parametrize("size", range(4))
def test_configuration(size: int) -> None:
    """Size 0: four aligned words; every other size: 32 bits (REG2FLOP_Configuration)."""
    s, rng = tolerant(size)
    for _ in range(100):
        t, bank = rng.randrange(3), rng.randrange(2)
        s.thread_cfg[t, tf.CFG_STATE_ID_StateID.word] = bank
        index, register = rng.randrange(180 - 64), rng.randrange(64)
        want = s.cfg.copy()
        if size:
            want[bank, 64 + index] = s.gpr[t, register]
        else:
            at, first = 64 + index // 4 * 4, register // 4 * 4
            want[bank, at : at + 4] = s.gpr[t, first : first + 4]
        got = run(s, "REG2FLOP", t, size_sel=size, flop_index=index, reg_index=register)
        assert got == rules.DONE
        assert (s.cfg == want).all()


def test_configuration_beyond_thcon_is_undefined() -> None:
    s, _ = tolerant(1)
    for index in (116, 127):
        assert run(s, "REG2FLOP", size_sel=1, flop_index=index) == scalar.INDEX
        assert sentence(s, scalar.INDEX).startswith(f"REG2FLOP to THCON configuration word {index}")
    assert not s.cfg.any()


@pytest.mark.parametrize("field", ["byte_offset", "context_id_2", "target_sel"])
def test_bits_that_the_configuration_form_lacks(field: str) -> None:
    s, _ = tolerant(2)
    assert run(s, "REG2FLOP", size_sel=1, **{field: 1}) == rules.RESERVED_BITS
    assert not s.cfg.any()


@pytest.mark.parametrize("byte_offset", range(4))
@pytest.mark.parametrize("context", range(4))
@pytest.mark.parametrize("target", [0, 1])
def test_the_sentence_shows_the_bits_that_are_set(
    byte_offset: int, context: int, target: int
) -> None:
    s, _ = tolerant(2)
    fields = {"byte_offset": byte_offset, "context_id_2": context, "target_sel": target}
    word = assemble("REG2FLOP", **fields) & 0xFFFFFF
    done = run(s, "REG2FLOP", **fields)
    assert done == (rules.RESERVED_BITS if word else rules.DONE)
    assert not word or s.detail[0] == word


def part(value: int, size: int, shift8: int) -> int:
    """The value by size and byte offset (functional model of REG2FLOP_ADC)."""
    if size == 0:
        return 0
    if size == 1:
        return 0 if shift8 else value
    if size == 2:
        return {0: value & 0xFFFF, 2: value >> 16}.get(shift8, 0)
    return value >> (shift8 * 8) & 0xFF


@pytest.mark.parametrize("size", range(4))
@pytest.mark.parametrize("shift8", range(4))
def test_counters(size: int, shift8: int) -> None:
    s, rng = tolerant(10 * size + shift8)
    for _ in range(120):
        t, other, override = rng.randrange(3), rng.randrange(4), rng.randrange(2)
        channel, engine, back, dimension = (rng.randrange(n) for n in (2, 4, 2, 4))
        s.gpr[t, 9] = rng.choice([0, WORD, rng.getrandbits(32)])
        want, want_back = s.adc.copy(), s.adc_cr.copy()
        owner = other if override else t
        if owner < 3 and engine < 3:
            value = part(int(s.gpr[t, 9]), size, shift8) % 2 ** WIDTHS[dimension]
            (want_back if back else want)[owner, engine, channel, dimension] = value
        done = run(
            s,
            "REG2FLOP",
            t,
            size_sel=size,
            target_sel=2 + override,
            byte_offset=shift8,
            context_id_2=other,
            flop_index=channel << 5 | engine << 3 | back << 2 | dimension,
            reg_index=9,
        )
        assert done == rules.DONE
        assert (s.adc == want).all()
        assert (s.adc_cr == want_back).all()


def test_the_counter_form_has_six_index_bits() -> None:
    s, _ = tolerant(3)
    assert run(s, "REG2FLOP", target_sel=2, flop_index=64) == rules.RESERVED_BITS
    assert s.detail[0] == 1 << 12
