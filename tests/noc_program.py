"""Small programs that send requests to the NoC, for a tile of a chip."""

from typing import Any

from bhemu.machine.machine import Chip
from bhemu.noc.grid import XY
from bhemu.riscv.assembly import A0, A1, A2, PARK, bne, code, li, lw, sw

NIU = (0xFFB20000, 0xFFB30000)
TARG, RET, TAG, CTRL, LEN, LEN_HI, DATA, EXCLUDE = 0x00, 0x0C, 0x18, 0x1C, 0x20, 0x24, 0x28, 0x2C
CMD = 0x40
READ, WRITE, POSTED, INLINE, ATOMIC = 0x2090, 0x92, 0x82, 0x9A, 0x91
MULTICAST, LOOPBACK, LINKED, ENABLES = 0x8120, 0x20000, 0x40, 0x4
INCREMENT = 0x107C


def hi(xy: XY) -> int:
    """A coordinate as the HI registers hold it."""
    return xy[0] | xy[1] << 6


def box(start: XY, end: XY) -> int:
    """A rectangle as the HI registers hold it."""
    return hi(end) | hi(start) << 12


def send(
    control: int,
    target: tuple[int, int],
    answer: tuple[int, int],
    length: int = 4,
    *,
    noc: int = 0,
    initiator: int = 0,
    data: int = 0,
    **more: int,
) -> list[int]:
    """Store a whole request and send it; `target`, `answer`: (address, HI word)."""
    values = {
        TARG: target[0] & 0xFFFFFFFF,
        TARG + 4: target[0] >> 32,
        TARG + 8: target[1],
        RET: answer[0] & 0xFFFFFFFF,
        RET + 4: answer[0] >> 32,
        RET + 8: answer[1],
        TAG: more.get("tag", 0),
        CTRL: control,
        LEN: length & 0xFFFFFFFF,
        LEN_HI: length >> 32,
        DATA: data,
        EXCLUDE: more.get("exclude", 0),
        CMD: 1,
    }
    words = [*li(A1, NIU[noc] + 0x800 * initiator)]
    for at, value in values.items():
        words += [*li(A0, value), sw(A0, A1, at)]
    return words


def wait(counter: int, value: int, noc: int = 0) -> list[int]:
    """Wait until a counter has a value."""
    return [*li(A1, NIU[noc] + 0x200), *li(A2, value), lw(A0, A1, 4 * counter), bne(A0, A2, -4)]


def put(chip: Chip, xy: XY, *words: Any, core: str = "brisc") -> None:
    """Let brisc of a tile run these words, then park."""
    chip.tile[xy].write(0, code(*words, PARK))
    chip.tile[xy].core[core].release()
