"""Which stream counts which circular buffer: builds of tt-metal begin at stream 0 or at 8."""

import pytest

from bhemu.program.specs import BufferSpec
from bhemu.why.checks.buffers import Buffer, Event, Wrong, first_stream


def counts(*streams: int) -> list[Event]:
    return [Event(0, None, 0x1000, "received", 1, stream) for stream in streams]


@pytest.mark.parametrize(
    ("streams", "buffers", "first"),
    [
        ((0, 1, 16), (0, 1, 16), 0),
        ((8, 9, 24), (0, 1, 16), 8),
        ((16,), (0, 1, 16), 0),
        ((24,), (0, 1, 16), 8),
        ((0, 16), (0, 8, 16), 0),
        ((8,), (0, 8), None),  # buffer 8 or buffer 0
        ((), (0, 16), 0),  # nothing is counted: no matter
    ],
)
def test_first_stream(
    streams: tuple[int, ...], buffers: tuple[int, ...], first: int | None
) -> None:
    assert first_stream(counts(*streams), buffers) == first


def test_a_count_of_nothing_says_nothing() -> None:
    reset = [Event(0, None, 0x1000, "acked", 0, stream) for stream in range(64)]
    assert first_stream([*reset, *counts(8, 24)], (0, 16)) == 8


def wrong_counts(*, skips: bool, pages: int = 1, times: int = 1) -> list[str]:
    """A consumer that reads `pages` in one request and gives back two, of two that are there."""
    return [one.text for one in counted(skips=skips, pages=pages, times=times)]


def counted(*, skips: bool, pages: int, times: int) -> list[Wrong]:
    buffer = Buffer(BufferSpec(16, 0x1000, 2, 0x800), skips=skips)
    events = [
        Event(3, None, 0x10, "received", 2, 16),
        Event(0, None, 0x20, "reads", 0x1000, 0x1000 + 0x800 * pages),
        Event(0, None, 0x24, "acked", 2, 16),
    ]
    buffer.owners = {"received": {"trisc2"}, "acked": {"brisc"}}
    found = [buffer.counted(events[0])]
    for _ in range(times):
        found.append(buffer.accessed(events[1], elsewhere=False))
    return [one for one in (*found, buffer.counted(events[2])) if one is not None]


def test_the_counts_of_two_consumers_say_nothing_more() -> None:
    """Each keeps a count of its own, so that the count of the buffer goes back."""
    buffer = Buffer(BufferSpec(16, 0x1000, 2, 0x800))
    buffer.counted(Event(3, None, 0x10, "received", 2, 16))
    acts = [(0, 1), (0, 2), (2, 1), (0, 3)]
    found = [buffer.counted(Event(core, None, 0x20, "acked", n, 16)) for core, n in acts]
    assert [one and one.text for one in found[:2]] == [None, None]
    assert found[2] is not None
    assert found[2].text == "trisc1 gives back pages of buffer 16, as brisc does"
    assert found[3] is None
    assert buffer.counts["acked"] == 3


def test_pages_are_given_back_that_nobody_has_read() -> None:
    (text,) = wrong_counts(skips=False)
    assert text.startswith("brisc gives back 2 pages at once, 1 of them read: buffer 16")


def test_a_right_program_may_skip_pages() -> None:
    assert wrong_counts(skips=True) == []


def test_a_request_may_read_several_pages() -> None:
    assert wrong_counts(skips=False, pages=2) == []


def announced(*lows: int) -> Wrong | None:
    """A producer that fills pages from `lows` on and announces two."""
    buffer = Buffer(BufferSpec(16, 0x1000, 4, 0x800))
    buffer.owners = {"received": {"ncrisc"}, "acked": {"trisc0"}}
    for n, low in enumerate(lows):
        filled = Event(4, None, 0x20 + 4 * n, "writes", low, low + 0x800)
        assert buffer.accessed(filled, elsewhere=False) is None
    return buffer.counted(Event(4, None, 0x10, "received", 2, 16))


def test_who_announces_more_than_was_filled_is_to_blame() -> None:
    found = announced(0x1000)
    assert found is not None
    assert found.text.startswith("ncrisc announces 2 pages at once, 1 of them written")
    assert announced(0x1000, 0x1800) is None


def pushed(*acts: tuple[str, int]) -> list[str]:
    """What is said of pages of a buffer of four that are written (by number) and announced (to)."""
    buffer = Buffer(BufferSpec(16, 0x1000, 4, 0x100))
    buffer.owners = {"received": {"trisc2"}, "acked": {"brisc"}}
    found: list[Wrong | None] = []
    for kind, number in acts:
        if kind == "writes":
            event = Event(3, 2, 0x20, kind, 0x1000 + 0x100 * number, 0x1000 + 0x100 * (number + 1))
            found.append(buffer.accessed(event, elsewhere=False))
        else:
            core = 3 if kind == "received" else 0
            found.append(buffer.counted(Event(core, None, 0x24, kind, number)))
    return [one.text for one in found if one is not None]


def test_a_page_is_announced_and_another_one_was_written() -> None:
    acts = [("writes", 0), ("received", 1), ("acked", 1), ("writes", 0), ("received", 2)]
    (text,) = pushed(*acts)
    assert text.startswith("trisc2 announces page 1, which nothing has written, and page 0 was")


def test_pages_may_be_written_ahead_and_announced_without_being_seen_to_be_written() -> None:
    ahead = [("writes", 0), ("writes", 1), ("received", 1), ("writes", 2), ("received", 2)]
    assert pushed(*ahead, ("received", 3)) == []
    assert pushed(("received", 1), ("received", 3)) == []
    both = [("writes", 0), ("writes", 1), ("received", 1), ("received", 2), ("acked", 2)]
    assert pushed(*both, ("writes", 2), ("received", 3)) == []


def test_what_is_longer_than_a_page_is_no_pointer_that_does_not_wrap() -> None:
    """One that begins where a page begins; else the pointer is wrong."""

    def past(low: int, high: int) -> Wrong:
        found = Buffer(BufferSpec(16, 0x1000, 2, 0x800)).accessed(
            Event(1, 0, 0x20, "reads", low, high), elsewhere=False
        )
        assert found is not None
        assert "trisc0 reads" in found.text
        return found

    longer = past(0x1800, 0x2800)
    assert longer.text.endswith("past buffer 16 (0x1000 to 0x2000), more than a page of 2048 bytes")
    assert longer.advice.startswith(
        "look at the format and the counts that make it so long, or let"
    )
    for low, high in ((0x1C00, 0x2400), (0x1C00, 0x2800)):
        assert past(low, high).text.endswith("past buffer 16 (0x1000 to 0x2000)")
        assert past(low, high).advice == "let the pointer wrap at the end of the buffer"
