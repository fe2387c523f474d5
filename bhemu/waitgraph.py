"""Who waits for whom: each blocked core and thread with its reason and who could release it."""

from dataclasses import dataclass
from typing import Any

from bhemu.memmap import CORE_NAMES
from bhemu.tensix import gate, streams
from bhemu.tensix.insn import decode, disassemble
from bhemu.tensix.state import BLOCKED, CORES, THREADS, State
from bhemu.tensix.status import CONDITIONS

@dataclass(frozen=True)
class Waiter:
    """One edge of the graph: `who` waits for `reason`; `place` is where, `detail` the numbers."""

    who: str
    reason: str
    place: str
    detail: str

    def __str__(self) -> str:
        text = f"{self.who} waits for {self.reason}"
        if self.detail:
            text += f" ({self.detail})"
        return f"{text}, {self.place}" if self.place else text


@dataclass(frozen=True)
class WaitGraph:
    """All waiters of a tile that makes no progress."""

    waiters: tuple[Waiter, ...]

    def __str__(self) -> str:
        return "\n".join(f"  {w}" for w in self.waiters)

    def as_dict(self) -> dict[str, object]:
        """JSON form."""
        return {"waiters": [vars(w) for w in self.waiters]}


def _semaphores(s: State, t: int) -> str:
    mask = int(s.latch_sem[t])
    return ", ".join(
        f"semaphore {i} = {int(s.sem[i])}, max {int(s.sem_max[i])}"
        for i in range(8)
        if (mask >> i) & 1
    )


def _stream(s: State, t: int) -> str:
    n = int(gate.stream_index(s, t, int(s.latch_stream[t])))
    phase = int(s.latch_cond[t]) == 1 << gate.PHASE
    value = streams.phase(s, n) if phase else streams.messages(s, n)
    return f"stream {n} = {int(value)}, awaited {int(s.latch_target[t])}"


def _thread(tile: Any, t: int) -> Waiter:
    s = tile.state
    condition = CONDITIONS.get(int(s.gate_blocked[t]))
    reason = condition.text if condition else "the next word"
    detail = f"at the gate: {disassemble(int(s.gate_word[t]))}"
    if s.latch[t]:
        detail += f"; held by {disassemble(int(s.latch_word[t]))}"
        if s.latch[t] == gate.SEMAPHORE:
            detail += f"; {_semaphores(s, t)}"
        elif s.latch[t] == gate.STREAM:
            detail += f"; {_stream(s, t)}"
    else:
        word = int(s.gate_word[t])
        cls = decode(word)
        more = cls.explain(s, t, word) if cls else ""
        detail += f"; {more}" if more else ""
    pc = int(s.latch_pc[t] if s.latch[t] else s.gate_pc[t])
    return Waiter(f"thread T{t}", reason, tile.place(int(s.gate_core[t]), pc), detail)


def _core(tile: Any, c: int) -> Waiter:
    s = tile.state
    condition = CONDITIONS.get(int(s.core_wait[c]))
    detail = f"address {int(s.core_address[c]):#010x}"
    if 1 <= c <= THREADS:
        detail += f", {int(s.fifo_write[c - 1] - s.fifo_read[c - 1])} words queued for T{c - 1}"
    reason = condition.text if condition else "a device"
    return Waiter(CORE_NAMES[c], reason, tile.place(c, int(s.pc[c])), detail)


def wait_for_graph(tile: Any) -> WaitGraph:
    """The graph of `tile` (a Tile) as it stands."""
    s = tile.state
    threads = [_thread(tile, t) for t in range(THREADS) if s.gate_full[t]]
    cores = [_core(tile, c) for c in range(CORES) if s.core_state[c] == BLOCKED]
    return WaitGraph(tuple(threads + cores))
