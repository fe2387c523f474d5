"""The host of a recorded session: it does again what it did, when it did it, and compares."""

from __future__ import annotations

from collections.abc import Callable
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bhemu.devices import noc_map
from bhemu.errors import InputError
from bhemu.machine.ethernet import packet_of, set_sent, waiting_packet
from bhemu.noc import firmware
from bhemu.noc.grid import number_at
from bhemu.program.recorded import ARRIVED, END, FETCH, READ, SENT, STORE, WRITE, Act, Recorded
from bhemu.tensix.state import DRAWN

if TYPE_CHECKING:
    from bhemu.machine.machine import Machine
    from bhemu.machine.tile import Tile

_OWN, _TRANSFERS = 0, 1  # of `host_acts` in the record, so that saved states hold it
_LATE_LOOKS = 32  # rounds of a late run, which are short, between two looks
_PATIENCE = 4096  # looks for which a host waits for what it once read, where time is another one
_CYCLES = 1 << 22  # and cycles where they are modelled: rounds may be shorter than an operation
_SHOWN = 3  # reads that differ
_NAME = "host reads"


class RecordedHost:
    """What a session holds, done between the rounds of a machine.

    same_times: each act has its round, as it was recorded. Without, as in late runs, the host waits
    in each read until it gets what it got, and goes on then.
    """

    def __init__(self, machine: Machine, session: Recorded, *, same_times: bool) -> None:
        self._machine, self._state = machine, machine.network.state
        self.acts = [act for act in session.acts if act.kind not in (FETCH, STORE)]
        self.done: Callable[[int], object] = lambda number: None  # told each act that it has done
        self._transfers = [act for act in session.acts if act.kind in (FETCH, STORE)]
        self._other_times = not same_times
        self._waited = self._next_look = self._looked = 0
        self._patience = _CYCLES if self._state.timed[0] else _PATIENCE
        self._in_vain = len(self.acts)  # the read that it gave up, and has written nothing since
        self._every = _LATE_LOOKS if self._state.timed[0] == DRAWN else 1
        self._compared: set[int] = set()  # reads, by their number among the acts
        self.differences: dict[int, tuple[Act, bytes]] = {}
        self.has_one_time = session.has_one_time
        if self._other_times and self.has_one_time:
            # InputError of a session that can be run in its own rounds alone
            if self._transfers:
                text = "this session's kernels read the host's memory, which had its own time"
                hint = "record it with TT_METAL_DRAM_BACKED_CQ=1, or leave --late"
                raise InputError(text, hint=hint)
            text = "this session is of one of several chips, and the others had their own times"
            hint = "run, why, check, trace and step take it, without --late, --timing, --quantum"
            hint += " and --delivery; profile takes a session of one chip alone"
            raise InputError(text, hint=hint)
        if self._transfers:  # else kernels find there what a chip without a host's memory has
            machine.network.share_host_memory(self._transfer)

    @property
    def over(self) -> bool:
        """Whether it has done everything, and the last round of the session is over."""
        last = self._next
        return last is None or (last.kind == END and (self._other_times or self._is_due(last)))

    @property
    def is_due(self) -> bool:
        """Whether it does something in this round."""
        return not self.over and self._is_due(self._next)

    @property
    def rounds(self) -> int | None:
        """Rounds until it does something more; None: nothing is left."""
        if self.over or self._next is None:
            return None
        if self._other_times:
            return max(self._next_look - self._machine.round, 1)
        return self._next.round - self._machine.round

    @property
    def _next(self) -> Act | None:
        at = int(self._state.host_acts[_OWN])
        return self.acts[at] if at < len(self.acts) else None

    def _is_due(self, act: Act | None) -> bool:
        if act is None or not self._other_times:
            return act is not None and act.round <= self._machine.round
        return not 0 < self._next_look - self._machine.round <= self._every

    def act(self) -> None:
        """Do what is due."""
        while (act := self._next) is not None and act.kind != END and self._is_due(act):
            at = int(self._state.host_acts[_OWN])
            if not self._do(at):
                break
            self._state.host_acts[_OWN] = at + 1
            self.done(at)
        self._next_look = self._machine.round + self._every - 1

    def continues(self) -> bool:
        """Whether it does something although the chip stands: it waits no longer."""
        if self.over or not self._other_times:
            return False
        self._waited, self._next_look = self._patience, 0
        return True

    def _do(self, at: int) -> bool:
        """One act; False where its time has not come."""
        act = self.acts[at]
        if act.kind == WRITE:
            self._in_vain = len(self.acts)
            self._machine.write(*act.xy, act.address, act.data)
            if self._machine.network.endpoint(0, act.xy) & 15 == noc_map.ARC:
                firmware.written(self._machine.network, act.address)
            return True
        if act.kind == ARRIVED:
            packet_of(act.address, act.data).arrive(self._at(act))
            return True
        if act.kind == SENT:
            # What a queue has sent instead of what it sent in the session; b"" for nothing
            tile, queue = self._at(act), packet_of(act.address, act.data).queue
            packet = waiting_packet(tile, queue)
            set_sent(tile, queue)
            got = b"" if packet is None or packet.place != act.address else packet.data
        else:
            got = self._machine.read(*act.xy, act.address, len(act.data))
        waits = self._other_times and at <= self._in_vain
        before, self._looked = self._looked, int(self._state.clock[0])
        passed = max(self._looked - before, 1) if self._state.timed[0] else 1
        if got != act.data and waits and self._waited < self._patience:
            self._waited += passed
            act, following = self.acts[at], self.acts[at + 1 : at + 2]
            return any((n.kind, n.xy, n.address) == (READ, act.xy, act.address) for n in following)
        self._waited = 0
        if got != act.data:
            self._in_vain = min(self._in_vain, at)
            self.differences[at] = act, got
        else:
            self.differences.pop(at, None)
        self._compared.add(at)
        return True

    def _at(self, act: Act) -> Tile:
        """The Ethernet tile of an act."""
        return self._machine.tile_at_index(number_at(act.xy))

    def _transfer(self, write: bool, address: int, data: npt.NDArray[np.uint8]) -> None:
        """What a kernel reads or writes of the host's memory."""
        at = int(self._state.host_acts[_TRANSFERS])
        kind = STORE if write else FETCH
        one = self._transfers[at] if at < len(self._transfers) else None
        if one is None or (one.kind, one.address, len(one.data)) != (kind, address, len(data)):
            raise InputError(
                f"a kernel wants the host's memory at {address:#x}, other than in the session",
                hint="run it with the options that it was recorded with",
            )
        self._state.host_acts[_TRANSFERS] = at + 1
        if not write:
            data[:] = np.frombuffer(one.data, np.uint8)

    # How its reads compare

    @property
    def reads(self) -> int:
        """How many have been compared, those once that were done again after going back."""
        return len(self._compared)

    @property
    def equal(self) -> bool:
        """Whether all that it has read so far is as recorded."""
        return not self.differences

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready values: how many reads, those that differ."""
        found = [self._difference(act, got) for _, (act, got) in sorted(self.differences.items())]
        return {"name": _NAME, "equal": self.equal, "reads": self.reads, "differences": found}

    def __str__(self) -> str:
        found = self.as_dict()["differences"]
        if not found:
            return f"{_NAME}  {self.reads} as recorded"
        row = "  ({tile[0]},{tile[1]}) {at:#x}: recorded {recorded}, got {got}"
        head = f"{_NAME}  {len(found)} of {self.reads} differ from the session"
        return "\n".join([head, *(row.format(**one) for one in found[:_SHOWN])])

    @staticmethod
    def _difference(act: Act, got: bytes) -> dict[str, Any]:
        """Where a read first differs: the endpoint, the address, four bytes of each."""
        pairs = zip_longest(act.data, got)
        first = next(n for n, (a, b) in enumerate(pairs) if a != b)
        values = {"recorded": act.data, "got": got}
        base = act.address & 0xFFFFFFFF if act.kind == SENT else act.address
        held = {name: data[first : first + 4].hex() for name, data in values.items()}
        return {"tile": list(act.xy), "at": base + first, **held}
