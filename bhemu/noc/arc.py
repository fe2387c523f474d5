"""ARC as a host meets it: messages that it answers; it executes nothing.

Source: tt-umd (message queue, codes). A queue is a header of 32 bytes, its requests, its answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bhemu.errors import NotModelled
from bhemu.noc.record import ARC_MEMORY

if TYPE_CHECKING:
    from bhemu.noc.network import Network

_CONTROL, _TRIGGER = 0x80030100, 1 << 16
_QUEUES_AT = 0x8003042C
_HEADER, _ENTRY, _WORDS = 32, 32, 8
_REQUESTS_WRITTEN, _REQUESTS_READ, _ANSWERS_WRITTEN = 0x00, 0x10, 0x14
# What firmware answers with 0 and which changes nothing that is modelled
_PLAIN = frozenset(
    {
        *(0x11, 0x21, 0x51, 0x52, 0x53, 0x54),  # nop, power, PCIe index, busy, idle
        *(0x56, 0x90, 0xA0, 0xA3),  # reset, test, states
        *(0xB6, 0xB7, 0xBA, 0xBC, 0xC1, 0xC7),  # GDDR reset, date, RISC-V reset, timers, PCIe log
    }
)
_ANSWERS = {0x34: 1000, 0x57: 0}  # AI clock in MHz, harvesting


def written(network: Network, address: int) -> None:
    """The host has written a word of ARC: where that rings, requests are answered."""
    if address == _CONTROL and _word(network, _CONTROL) & _TRIGGER:
        control = _word(network, _QUEUES_AT)
        first, shape = _word(network, control), _word(network, control + 4)
        entries, queues = shape & 0xFF, shape >> 8 & 0xFF
        for queue in range(queues):
            _answer(network, first + queue * (_HEADER + 2 * entries * _ENTRY), entries)
        _store(network, _CONTROL, [_word(network, _CONTROL) & ~_TRIGGER])


def _answer(network: Network, queue: int, entries: int) -> None:
    """Answer every request of a queue; pointers count to twice its length."""
    wanted, done = _word(network, queue + _REQUESTS_WRITTEN), _word(network, queue + _REQUESTS_READ)
    answered = _word(network, queue + _ANSWERS_WRITTEN)
    for _ in range((wanted - done) % (2 * entries)):
        code = _word(network, queue + _HEADER + done % entries * _ENTRY) & 0xFF
        if code not in _PLAIN and code not in _ANSWERS:
            raise NotModelled(f"ARC message {code:#x}", rule="ARC-MESSAGE")
        at = queue + _HEADER + (entries + answered % entries) * _ENTRY
        # The answer's word 0 is the result, 0 = done; word 1 the value that was asked for.
        _store(network, at, [0, _ANSWERS.get(code, 0), *[0] * (_WORDS - 2)])
        done, answered = (done + 1) % (2 * entries), (answered + 1) % (2 * entries)
    _store(network, queue + _REQUESTS_READ, [done])
    _store(network, queue + _ANSWERS_WRITTEN, [answered])


def _word(network: Network, address: int) -> int:
    return int.from_bytes(network.read(ARC_MEMORY, address, 4), "little")


def _store(network: Network, address: int, words: list[int]) -> None:
    network.write(ARC_MEMORY, address, np.array(words, "<u4").view(np.uint8))
