"""The bit-field descriptor."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bhemu.bits import Bits, bits


class Word:
    """A register with two fields and a flag, as configuration and instruction classes have."""

    low = bits(3, 0)
    high = bits(31, 24)
    flag = bits(7)

    def __init__(self, word: int) -> None:
        self.word = word


def test_the_attribute_of_the_class_is_the_descriptor_and_knows_its_name():
    assert isinstance(Word.high, Bits)
    assert (Word.high.name, Word.high.hi, Word.high.lo) == ("high", 31, 24)
    assert (Word.high.width, Word.high.mask, Word.high.max) == (8, 0xFF000000, 255)
    assert (Word.flag.width, Word.flag.mask) == (1, 0x80)
    assert repr(Word.low) == "<low = bits(3, 0)>"
    assert repr(bits(5)) == "<bits(5, 5)>"


def test_instances_read_and_write_their_word():
    word = Word(0xA6A1000A)
    assert (word.low, word.high, word.flag) == (0xA, 0xA6, 0)
    word.flag = 1
    word.low = 0
    assert word.word == 0xA6A10080


@given(st.integers(0, 2**32 - 1), st.integers(0, 31), st.integers(0, 31), st.data())
def test_put_then_get_gives_the_value_and_leaves_the_rest(word, a, b, data):
    field = bits(max(a, b), min(a, b))
    value = data.draw(st.integers(0, field.max))
    written = field.put(word, value)
    assert field.get(written) == value
    assert written & ~field.mask == word & ~field.mask


@pytest.mark.parametrize("value", [16, -1])
def test_a_value_that_does_not_fit_is_refused_by_name(value):
    with pytest.raises(ValueError, match=rf"low \[3:0\] takes 0..15, not {value}"):
        Word.low.put(0, value)
    with pytest.raises(ValueError, match="low"):
        Word(0).low = value


@pytest.mark.parametrize(("hi", "lo"), [(2, 3), (-1, -1), (3, -1)])
def test_impossible_positions_are_refused(hi, lo):
    with pytest.raises(ValueError, match="want hi >= lo >= 0"):
        bits(hi, lo)


def test_one_descriptor_cannot_have_two_names():
    field = bits(3, 0)
    field.__set_name__(Word, "first")
    field.__set_name__(Word, "first")  # a class rebuilt by a decorator
    with pytest.raises(TypeError, match=r"Word\.second: this field is already named first"):
        field.__set_name__(Word, "second")
