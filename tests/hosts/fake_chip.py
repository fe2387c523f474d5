"""A chip that is memory only, with the part of Chip's interface that hosts use."""

from types import SimpleNamespace

from bhemu.errors import BhemuError, InputError, NoProgress, NotModelled
from bhemu.hosts.umd import Device

XY = tuple[int, int]
WIDTH, HEIGHT, LONGEST = 40, 36, 1 << 16
BROKEN = 0xBAD0000  # the first run after a write here fails


class FakeChip:
    """Keeps what is written; `moves` rounds after a write all its cores only poll."""

    def __init__(self, moves: int = 0, **options: object) -> None:
        self.options = options
        self.memory: dict[tuple[XY, int], int] = {}
        self.rounds: list[int] = []
        self.log: list[tuple[object, ...]] = []
        self._moves, self._left, self._error = moves, 0, False

    def read(self, x: int, y: int, address: int, n: int) -> bytes:
        xy = x, y
        self._check(xy, n)
        self.log.append(("read", xy, address, n))
        return bytes(self.memory.get((xy, address + i), 0) for i in range(n))

    def write(self, x: int, y: int, address: int, data: bytes) -> None:
        xy = x, y
        self._check(xy, len(data))
        self.log.append(("write", xy, address, len(data)))
        self._error |= address == BROKEN
        self._left = self._moves
        self.memory.update({(xy, address + i): byte for i, byte in enumerate(data)})

    def run(self, until: str, *, rounds: int) -> SimpleNamespace:
        assert until == "polling"
        self.rounds.append(rounds)
        self.log.append(("run", rounds))
        if self._error:
            raise failure()
        self._left -= rounds
        return SimpleNamespace(reason="rounds" if self._left > 0 else "polling")

    def standstill(self, xy: XY) -> NoProgress:
        return NoProgress(f"tile {xy} waits", rule="LIVELOCK")

    def _check(self, xy: XY, n: int) -> None:
        if not (0 <= xy[0] < WIDTH and 0 <= xy[1] < HEIGHT):
            raise InputError(f"there is no endpoint at {xy}")
        if n > LONGEST:
            raise InputError(f"{n} bytes do not fit")


def failure() -> BhemuError:
    return NotModelled("the chip met what it does not know", rule="FAKE", hint="none")


def device(moves: int = 0) -> tuple[FakeChip, Device]:
    chip = FakeChip(moves)
    return chip, Device(chip)
