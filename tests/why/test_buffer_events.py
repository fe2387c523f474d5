"""Which stream counts which circular buffer: builds of tt-metal begin at stream 0 or at 8."""

import pytest

from bhemu.why.buffer_events import Event, first_stream


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
