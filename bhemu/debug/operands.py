"""What the words of a trace really did, and who set the configuration that they used."""

from collections import deque
from typing import NamedTuple

from bhemu.jit.plain import plain
from bhemu.machine.operands import effective, format_fields
from bhemu.memmap import TENSIX_CFG_BASE, TENSIX_CFG_END
from bhemu.tensix import config
from bhemu.tensix.config import CONFIG_WORDS, SHARED
from bhemu.tensix.insn import decode
from bhemu.tensix.status import DONE
from bhemu.tile import Tile

_BY_FIELD = {"WRCFG": "cfg_reg", "STREAMWRCFG": "cfg_reg", "CFGSHIFTMASK": "cfg_reg"}
_BY_FIELD |= {f"RMWCIB{byte}": "cfg_reg_addr" for byte in range(4)}
_WIDE = 4  # Config words that WRCFG with wr128b writes


class Seen(NamedTuple):
    """An executed word: its meaning, Config words it depends on by name, and those it wrote."""

    text: str
    uses: dict[str, int]
    writes: tuple[int, ...]


class Operands:
    """Looks at every word before it executes; `next` gives what was seen, in that order."""

    def __init__(self, tile: Tile) -> None:
        self._s = tile.state
        self._seen: deque[Seen] = deque()
        self._writers: dict[int, str] = {}
        tile.backend.table.observe(self._before, self._after)

    def _before(self, t: int, word: int) -> Seen:
        s = self._s
        return Seen(effective(s, t, word), format_fields(s, t, word), self._written(t, word))

    def _after(self, seen: Seen, status: int) -> None:
        if status == DONE:
            self._seen.append(seen)

    def _written(self, t: int, word: int) -> tuple[int, ...]:
        cls = decode(word)
        if cls is None or cls.name not in _BY_FIELD:
            return ()
        values = cls.operands(word)
        first = values[_BY_FIELD[cls.name]]
        bank = int(plain(config.bank)(self._s, t))
        words = range(first, first + (_WIDE if values.get("wr128b") else 1))
        return tuple(_index(bank, word) for word in words)

    def next(self, place: str) -> tuple[str, str]:
        """(meaning, who set what it used) of the next executed word, which is at `place`."""
        seen = self._seen.popleft()
        for index in seen.writes:
            self._writers[index] = place
        by: dict[str, list[str]] = {}
        for name, index in seen.uses.items():
            writer = self._writers.get(_index(*divmod(index, CONFIG_WORDS)))
            if writer is not None:
                by.setdefault(writer, []).append(
                    name.partition("_REG")[2].partition("_")[2] or name
                )
        return seen.text, "; ".join(f"{', '.join(names)} by {who}" for who, names in by.items())

    def stored(self, address: int, place: str) -> None:
        """A core at `place` has stored to a device."""
        if TENSIX_CFG_BASE <= address < TENSIX_CFG_END:
            index = (address - TENSIX_CFG_BASE) >> 2
            bank, word = divmod(index, CONFIG_WORDS)
            for one in (0, 1) if bank == 2 else (bank,):
                self._writers[_index(one, word)] = place


def _index(bank: int, word: int) -> int:
    """One number for a Config word; shared words belong to no bank."""
    return word if word >= SHARED else bank * CONFIG_WORDS + word
