"""A chip that is memory only, with the part of Chip's interface that hosts use."""

from types import SimpleNamespace

from bhemu.errors import Assert, BhemuError, InputError, NoProgress, NotModelled, Where
from bhemu.hosts.umd import Device

XY = tuple[int, int]
WIDTH, HEIGHT, LONGEST = 40, 36, 1 << 16
BROKEN = 0xBAD0000  # the first run after a write here fails
EBREAK = 0xBAD0004  # the same, on ebreak
REFUSED = 0xBAD0008  # where no write goes
HOST_MEMORY = 0xBAD000C  # the first run after a write here wants the host's memory
DEBUG_PORT = 0xFFB12080


class FakeChip:
    """Keeps what is written; `moves` rounds after a write all its cores only poll."""

    def __init__(self, moves: int = 0, **options: object) -> None:
        self.options = options
        self.memory: dict[tuple[XY, int], int] = {}
        self.rounds: list[int] = []
        self.log: list[tuple[object, ...]] = []
        self._moves, self._left = moves, 0
        self.stands = "polling"
        self._error: BhemuError | None = None
        self._wants_host = False
        self.host_access: SimpleNamespace | None = None

    def read(self, x: int, y: int, address: int, n: int) -> bytes:
        xy = x, y
        self._check(xy, n)
        self.log.append(("read", xy, address, n))
        return bytes(self.memory.get((xy, address + i), 0) for i in range(n))

    def write(self, x: int, y: int, address: int, data: bytes) -> None:
        xy = x, y
        self._check(xy, len(data))
        self.log.append(("write", xy, address, len(data)))
        if address == REFUSED:
            raise InputError("nothing is there")
        if address in (BROKEN, EBREAK):
            self._error = failure() if address == BROKEN else ebreak(xy)
        elif address == HOST_MEMORY:
            self._wants_host = True
        elif address == DEBUG_PORT and isinstance(self._error, Assert):
            self._error = None
        self._left = self._moves
        self.memory.update({(xy, address + i): byte for i, byte in enumerate(data)})

    def run(self, until: str, *, rounds: int, resume: bool = False) -> SimpleNamespace:
        assert until == "polling" and resume
        self.rounds.append(rounds)
        self.log.append(("run", rounds))
        if self._wants_host:
            self.host_access = SimpleNamespace(request="read of 64 bytes", where=Where(tile=(1, 2)))
        if self._error:
            raise self._error
        self._left -= rounds
        return SimpleNamespace(reason="rounds" if self._left > 0 else self.stands)

    def tiles_made(self) -> tuple[object, ...]:
        return ()

    def standstill(self, xy: XY) -> NoProgress:
        return NoProgress(f"tile {xy} waits", rule="LIVELOCK")

    def _check(self, xy: XY, n: int) -> None:
        if not (0 <= xy[0] < WIDTH and 0 <= xy[1] < HEIGHT):
            raise InputError(f"there is no endpoint at {xy}")
        if n > LONGEST:
            raise InputError(f"{n} bytes do not fit")


def failure() -> BhemuError:
    return NotModelled("the chip met what it does not know", rule="FAKE", hint="none")


def ebreak(xy: XY) -> BhemuError:
    return Assert("a core stands on ebreak", rule="EBREAK", where=Where(tile=xy))


def device(moves: int = 0) -> tuple[FakeChip, Device]:
    chip = FakeChip(moves)
    return chip, Device(chip)
