"""Early looks at the outputs of a changed run: most changes are refuted long before its end."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bhemu.errors import BhemuError
from bhemu.program import comparison, input_files, tensor
from bhemu.program.specs import OutputSpec, Program
from bhemu.why.repair.bench import Bench

_SHORTEST = 20_000  # clock units of a run that is worth a look before its end
_TIMES = 256, 64, 16, 4, 2  # a look comes after this part of the unchanged run's time
_SLOWER = 2  # times that a changed run may be as slow
_WORDS = 8  # that are looked at, of the wrong ones and of the right ones
_SLACK = 2  # times the tolerance of an output: what is outside of that is wrong for certain
_WORD = 4

Words = npt.NDArray[np.uint32]


@dataclass(frozen=True)
class _Look:
    """At a clock, words of outputs that the unchanged run has long written for the last time."""

    clock: int
    words: tuple[tuple[int, int], ...]  # (output, word)


class Looks:
    """When to look at a changed run, and what shows then that it cannot come out right.

    A word of an output that holds neither what it held at first nor what is expected there refutes
    the change, if the unchanged run had written the word for the last time after half as long.
    """

    def __init__(self, program: Program, bench: Bench, clock: int) -> None:
        """clock: when the unchanged run ended. It is run once."""
        self._specs = [spec for spec in program.outputs if _has_words(spec)]
        self._bench = bench
        self._expected = [_words(_expected(spec)) for spec in self._specs]
        self._wrong: dict[tuple[int, int, int], bool] = {}
        self._looks: list[_Look] = []
        length = clock - bench.first_clock
        if self._specs and length >= _SHORTEST:
            self._plan(length)

    @property
    def clocks(self) -> Sequence[int]:
        """When to look."""
        return [look.clock for look in self._looks]

    def refutes(self, number: int) -> bool:
        """Whether what the bench holds at the clock of a look cannot come out right."""
        held = self._held()
        return any(
            held[n][at] != self._first[n][at] and self._is_wrong(n, at, int(held[n][at]))
            for n, at in self._looks[number].words
        )

    def _held(self) -> list[Words]:
        return [_words(self._bench.read(spec)) for spec in self._specs]

    def _plan(self, length: int) -> None:
        bench, held = self._bench, list[list[Words]]()
        bench.begin()
        self._first = self._held()
        try:
            for times in _TIMES:
                if bench.reaches(bench.first_clock + length // (_SLOWER * times)) is not None:
                    return
                held.append(self._held())
            bench.reaches(bench.first_clock + length)
        except BhemuError:
            pass  # how it ended: what it has written until there stays
        held.append(self._held())
        for number, times in enumerate(_TIMES[: len(held) - 1]):
            words = tuple(self._settled(held[number:]))
            if words:
                self._looks.append(_Look(bench.first_clock + length // times, words))

    def _settled(self, held: Sequence[list[Words]]) -> list[tuple[int, int]]:
        """Some words, wrong and right ones, that have been written and do not change any more."""
        found: list[tuple[int, int]] = []
        for n, first in enumerate(self._first):
            last = held[-1][n]
            stays = last != first
            for one in held[:-1]:
                stays &= one[n] == last
            for group in (stays & (last != self._expected[n]), stays & (last == self._expected[n])):
                places = np.flatnonzero(group)
                some = places[:: max(1, -(-places.size // _WORDS))]
                found += [(n, int(at)) for at in some]
        return found

    def _is_wrong(self, n: int, at: int, value: int) -> bool:
        """Whether this is not what is expected in a word of output `n`."""
        key = n, at, value
        if key not in self._wrong:
            self._wrong[key] = self._differs(n, at, value)
        return self._wrong[key]

    def _differs(self, n: int, at: int, value: int) -> bool:
        spec, wanted = self._specs[n], self._expected[n][at : at + 1].tobytes()
        shape = (_WORD * 8 // tensor.format_of(spec.dtype).bits,)
        differing = comparison.differing(
            tensor.decode(wanted, shape, spec.dtype, "rows"),
            value.to_bytes(_WORD, "little"),
            spec.dtype,
            spec.compare,
            "rows",
            max_ulp=_SLACK * spec.max_ulp,
            rtol=_SLACK * spec.rtol,
            atol=_SLACK * spec.atol,
        )
        return bool(differing.any())


def _has_words(spec: OutputSpec) -> bool:
    """Whether each word of an output is so many of its elements."""
    return (
        spec.expect is not None
        and tensor.format_of(spec.dtype).kind in ("float", "int")
        and spec.size % _WORD == 0
    )


def _expected(spec: OutputSpec) -> bytes:
    assert spec.expect is not None
    values = input_files.read_array(spec.expect, spec.dtype, spec.origin)
    return tensor.encode(values, spec.dtype, spec.layout, "nearest")


def _words(data: bytes) -> Words:
    return np.frombuffer(data, np.uint32)
