"""The host side of tt-llk's BRISC boot protocol: mailboxes and commands in L1 (docs/llk.md).

BRISC polls two command words in turn and counts what it has carried out; each kernel ends by
storing COMPLETE in its mailbox (tests/helpers/src/brisc.cpp, trisc.cpp, in tt-llk's own checkout
and in tt-metal's, tt_metal/tt-llk).  Once it listens, the counter is 0 in the former, READY in the
latter, until the first command is carried out.
"""

from typing import Final

from bhemu.errors import Limit
from bhemu.machine.tile import Tile

KERNELS: Final = {"trisc0": "unpack", "trisc1": "math", "trisc2": "pack"}
MAILBOXES: Final = {"trisc0": 0x1FFB8, "trisc1": 0x1FFBC, "trisc2": 0x1FFC0}
COMMANDS: Final = (0x1FFC4, 0x1FFC8)
COUNTER: Final = 0x1FFCC
WORDS: Final = range(0x1FFB8, 0x1FFD8)  # mailboxes, commands, counter, and BRISC's two echoes
READY: Final = 0xB001_CAFE
COMPLETE: Final = 0xFF
START_TRISCS: Final = 1
RESET_TRISCS: Final = 2

BOOT_LIMIT: Final = 1_000_000  # clock units; BRISC polls every 1350
_NAMES: Final = {START_TRISCS: "START_TRISCS", RESET_TRISCS: "RESET_TRISCS"}
_STALE: Final = 0xFFFF_FFFF  # in the counter until BRISC sets it
_HINT: Final = "is this the brisc.elf of tt-llk's tests, for BRISC boot mode, without coverage?"


def boot(tile: Tile) -> None:
    """Release brisc and run until it listens; Limit (rule LLK-BOOT) when it never does."""
    tile.write32(COUNTER, _STALE)
    tile.core["brisc"].release()
    if tile.run(_listens, limit=BOOT_LIMIT).reason != "until":
        raise Limit(
            f"brisc did not set the command counter at {COUNTER:#x} to 0 or {READY:#x} within"
            f" {BOOT_LIMIT} clock units: its program does not listen to the harness",
            rule="LLK-BOOT",
            where=tile.core["brisc"].where(),
            hint=_HINT,
        )


def _listens(tile: Tile) -> bool:
    return tile.read32(COUNTER) in (0, READY)


def _carried_out(tile: Tile) -> int:
    """How many commands brisc has carried out."""
    count = tile.read32(COUNTER)
    return 0 if count == READY else count


def send(tile: Tile, command: int) -> None:
    """Give brisc its next command, to be carried out when the tile runs."""
    tile.write32(COMMANDS[_carried_out(tile) % 2], command)


def command(tile: Tile, command: int) -> None:
    """Send and run until brisc has carried it out; Limit (rule LLK-COMMAND) when it does not."""
    count = _carried_out(tile)
    send(tile, command)
    if tile.run([(COUNTER, count + 1)], limit=BOOT_LIMIT).reason != "until":
        name = _NAMES.get(command, str(command))
        raise Limit(
            f"brisc did not carry out command {name} within {BOOT_LIMIT} clock units:"
            f" the counter at {COUNTER:#x} is {tile.read32(COUNTER)}, not {count + 1}",
            rule="LLK-COMMAND",
            where=tile.core["brisc"].where(),
            hint=_HINT,
        )


def start(tile: Tile) -> None:
    """Boot brisc, reset the TRISCs and send START_TRISCS; the next run carries that out.

    The ELFs are in place and every core is in reset. The mailboxes are 0 on return.
    """
    for mailbox in MAILBOXES.values():
        tile.write32(mailbox, 0)
    boot(tile)
    command(tile, RESET_TRISCS)
    send(tile, START_TRISCS)


def done_words() -> list[tuple[int, int]]:
    """The end condition: every mailbox holds COMPLETE."""
    return [(mailbox, COMPLETE) for mailbox in MAILBOXES.values()]


def word_name(address: int) -> str:
    """How a message calls a word of L1: the kernel whose mailbox it is, or its address."""
    for core, mailbox in MAILBOXES.items():
        if mailbox == address:
            return f"the mailbox of {core} ({KERNELS[core]}) at {address:#x}"
    return f"word {address:#x}"
