"""Address counters: every ADC instruction against a literal model (ADCs, Blackhole ISA)."""

import random

import numpy as np
import pytest
from unit_runner import run

from bhemu.machine import sentences
from bhemu.tensix import rules
from bhemu.tensix.insn import instructions
from bhemu.tensix.rules import counted
from bhemu.tensix.state import State
from bhemu.tensix.units import counters

WIDTHS = {"X": 18, "Y": 13, "Z": 8, "W": 8}


class Reference:
    """Counters by name: values[thread, engine, channel, "X"] and the carriage returns beside."""

    def __init__(self) -> None:
        keys = [(t, e, c, d) for t in range(3) for e in range(3) for c in range(2) for d in "XYZW"]
        self.values = dict.fromkeys(keys, 0)
        self.returns = dict.fromkeys(keys, 0)

    def put(self, key: tuple[int, int, int, str], value: int) -> None:
        self.values[key] = self.returns[key] = value % 2 ** WIDTHS[key[3]]

    def increment(self, key: tuple[int, int, int, str], value: int) -> None:
        self.values[key] = (self.values[key] + value) % 2 ** WIDTHS[key[3]]

    def advance(self, key: tuple[int, int, int, str], value: int) -> None:
        self.put(key, self.returns[key] + value)

    def pair(self, mnemonic: str, t: int, fields: dict[str, int]) -> None:
        """SETADCXY INCADCXY ADDRCRXY SETADCZW INCADCZW ADDRCRZW."""
        act = {"SET": self.put, "INC": self.increment, "ADD": self.advance}[mnemonic[:3]]
        names = ("ch0_x", "ch0_y", "ch1_x", "ch1_y")
        for engine in range(3):
            for bit, name in enumerate(names):
                chosen = fields.get("bit_mask", 15) >> bit & 1
                if fields["cnt_set_mask"] >> engine & 1 and chosen:
                    dimension = mnemonic[-2:][name[-1] == "y"]
                    act((t, engine, bit // 2, dimension), fields[name])

    def check(self, s: State) -> None:
        for values, member in ((self.values, s.adc), (self.returns, s.adc_cr)):
            want = np.zeros_like(member)
            for (t, engine, channel, dimension), value in values.items():
                want[t, engine, channel, "XYZW".index(dimension)] = value
            assert (member == want).all()


PAIRS = ["SETADCXY", "INCADCXY", "ADDRCRXY", "SETADCZW", "INCADCZW", "ADDRCRZW"]


def pair_fields(rng: random.Random, mnemonic: str) -> dict[str, int]:
    fields = {name: rng.randrange(8) for name in ("ch0_x", "ch0_y", "ch1_x", "ch1_y")}
    fields["cnt_set_mask"] = rng.randrange(1, 8)
    if not mnemonic.startswith("INC"):
        fields["bit_mask"] = rng.randrange(1, 16)
    return fields


@pytest.mark.parametrize("mnemonic", PAIRS)
def test_each_pair_instruction(mnemonic: str) -> None:
    rng = random.Random(mnemonic)
    for _ in range(40):
        s, reference = State(), Reference()
        for key in reference.values:
            top = 2 ** WIDTHS[key[3]] - 1
            reference.values[key] = rng.choice([0, top, rng.randrange(top)])
            reference.returns[key] = rng.choice([0, top, rng.randrange(top)])
            at = (*key[:3], "XYZW".index(key[3]))
            s.adc[at], s.adc_cr[at] = reference.values[key], reference.returns[key]
        t, fields = rng.randrange(3), pair_fields(rng, mnemonic)
        assert run(s, mnemonic, t, **fields) == rules.DONE
        reference.pair(mnemonic, t, fields)
        reference.check(s)


@pytest.mark.parametrize("channel", [0, 1])
@pytest.mark.parametrize("dimension", range(4))
def test_setadc_sets_one_counter_and_its_carriage_return(dimension: int, channel: int) -> None:
    s, reference = State(), Reference()
    for value in (0xFFFF, 0x1234):
        for mask in range(1, 8):
            fields = {"dimension_index": dimension, "channel_index": channel}
            assert run(s, "SETADC", 1, value=value, cnt_set_mask=mask, **fields) == rules.DONE
            for engine in range(3):
                if mask >> engine & 1:
                    reference.put((1, engine, channel, "XYZW"[dimension]), value)
            reference.check(s)


def test_setadcxx_sets_the_x_range() -> None:
    s, reference = State(), Reference()
    for mask in range(1, 8):
        start, end = 1023 - mask, 100 * mask
        fields = {"x_start": start, "x_end2": end, "cnt_set_mask": mask}
        assert run(s, "SETADCXX", 2, **fields) == rules.DONE
        for engine in range(3):
            if mask >> engine & 1:
                reference.put((2, engine, 0, "X"), start)
                reference.put((2, engine, 1, "X"), end)
        reference.check(s)


def test_counters_wrap_at_their_width() -> None:
    s = State()
    run(s, "SETADC", dimension_index=3, value=0xFF, cnt_set_mask=4)
    run(s, "INCADCZW", ch0_y=2, cnt_set_mask=4)
    assert s.adc[0, 2, 0].tolist() == [0, 0, 0, 1]
    assert s.adc_cr[0, 2, 0].tolist() == [0, 0, 0, 0xFF]
    run(s, "ADDRCRZW", ch0_y=2, bit_mask=2, cnt_set_mask=4)
    assert s.adc[0, 2, 0, 3] == s.adc_cr[0, 2, 0, 3] == 1


def test_random_sequence() -> None:
    rng = random.Random(7)
    s, reference = State(), Reference()
    for _ in range(600):
        mnemonic, t = rng.choice(PAIRS), rng.randrange(3)
        fields = pair_fields(rng, mnemonic)
        run(s, mnemonic, t, **fields)
        reference.pair(mnemonic, t, fields)
    reference.check(s)


@pytest.mark.parametrize("mnemonic", [*PAIRS, "SETADC", "SETADCXX"])
def test_no_engine_selected(mnemonic: str) -> None:
    """Nothing to do on silicon; the golden model refuses the word."""
    s = State()
    s.adc[:] = s.adc_cr[:] = 5
    fields = {} if mnemonic[:3] == "INC" or mnemonic in ("SETADC", "SETADCXX") else {"bit_mask": 15}
    assert run(s, mnemonic, **fields) == counters.NO_ENGINE
    s.ub_mode[0] = 2
    assert run(s, mnemonic, **fields) == rules.DONE
    assert (s.adc == 5).all()
    assert (s.adc_cr == 5).all()
    assert counted(s).get(counters.NO_ENGINE, 0) == 1


@pytest.mark.parametrize("mnemonic", [m for m in PAIRS if not m.startswith("INC")])
def test_no_counter_selected(mnemonic: str) -> None:
    s = State()
    s.adc[:] = s.adc_cr[:] = 5
    assert run(s, mnemonic, cnt_set_mask=7, ch0_x=1) == counters.NO_COUNTER
    s.ub_mode[0] = 1
    assert run(s, mnemonic, cnt_set_mask=7, ch0_x=1) == rules.DONE
    assert (s.adc == 5).all()
    assert (s.adc_cr == 5).all()


def test_thread_override_is_refused_by_name() -> None:
    """Bits 17:16 of the value select another thread's counters (SETADC, ISA)."""
    s = State()
    for value in (0x10000, 0x3FFFF):
        assert run(s, "SETADC", value=value, cnt_set_mask=1) == counters.THREAD_OVERRIDE
        assert s.detail[0] == value
    assert not s.adc.any()


def test_rstdma_is_refused_with_its_reason() -> None:
    assert instructions()[0x44].execute is None
    assert instructions()[0x44].refused


@pytest.mark.parametrize("setvalid", range(4))
def test_setdvalid_is_unsupported_on_blackhole(setvalid: int) -> None:
    """ "interaction with implied data formats is ill-specified" (SETDVALID, ISA)."""
    s = State()
    assert run(s, "SETDVALID", setvalid=setvalid) == counters.SETDVALID_FORMAT
    assert sentences.RULES[counters.SETDVALID_FORMAT].category == rules.UNSUPPORTED
    assert not s.src_valid.any()
    assert not s.unpack_bank.any()


@pytest.mark.parametrize("setvalid", range(4))
def test_setdvalid_where_it_is_tolerated(setvalid: int) -> None:
    """Bit 0 SrcA, bit 1 SrcB; "records a stale/held copy of a previous unpack's output format"."""
    rng = random.Random(setvalid)
    s = State()
    s.ub_mode[0] = 2
    for n in range(20):
        s.unpack_bank[:] = rng.randrange(2), rng.randrange(2)
        s.src_valid[:] = 0
        s.src_fmt[:] = [[rng.randrange(16) for _ in range(2)] for _ in range(2)]
        banks_before, formats = s.unpack_bank.copy(), s.src_fmt.copy()
        valid = s.src_valid.copy()
        for which in range(2):
            if setvalid >> which & 1:
                bank = banks_before[which]
                valid[which, bank] = 1
                formats[which, bank] = formats[which, 1 - bank]
                banks_before[which] ^= 1
        assert run(s, "SETDVALID", rng.randrange(3), setvalid=setvalid) == rules.DONE
        assert (s.src_valid == valid).all()
        assert (s.unpack_bank == banks_before).all()
        assert (s.src_fmt == formats).all()
        assert counted(s)[counters.SETDVALID_FORMAT] == n + 1
