"""Halves of GPRs that one line sets and another sets anew before anything has read them."""

from bhemu.tensix.insn import decode
from bhemu.why.walk import Instruction

_HALVES = 128  # of a thread
_WIDE = 8  # halves of four GPRs


class Gprs:
    """Follows the words that the cores of a tile push, but for those that are recorded."""

    def __init__(self) -> None:
        self._set: list[dict[int, tuple[Instruction, int]]] = [{} for _ in range(3)]
        self._recorded = [False] * 3  # words of GPRs, whose order is not followed

    def recorded(self, t: int, word: int) -> None:
        """A word goes into the replay buffer of thread `t`."""
        cls = decode(word)
        self._recorded[t] |= cls is not None and cls.unit in ("scalar", "cfg")

    def pushed(self, t: int, word: int, step: Instruction) -> tuple[Instruction, int] | None:
        """A word of thread `t`: whose value it replaces that nobody has read, and in which GPR."""
        cls, held = decode(word), self._set[t]
        if cls is None or self._recorded[t]:
            return None
        f = cls.operands(word)
        if cls.name == "SETDMAREG" and not f["set_signals_mode"]:
            half, value = f["reg_index_16b"], f["payload_sig_sel"] | f["payload_sig_sel_size"] << 14
            old = held.get(half)
            held[half] = step, value
            if old is not None and old[0].pc != step.pc and old[1] != value:
                return old[0], half >> 1
        elif cls.name == "WRCFG":
            first, count = 2 * f["gpr_address"], _WIDE if f["wr128b"] else 2
            self._read(t, first & -count, count)
        elif cls.name == "STOREREG":
            self._read(t, 2 * f["tdma_data_reg_index"], 2)
        elif cls.unit in ("scalar", "cfg", "mover"):
            self._read(t, 0, _HALVES)
        return None

    def loaded(self, t: int) -> None:
        """The core of thread `t` has looked at its GPRs."""
        self._read(t, 0, _HALVES)

    def _read(self, t: int, first: int, count: int) -> None:
        for half in range(first, first + count):
            self._set[t].pop(half, None)
