"""Who sent a NoC request: of one that was refused, or that a watchpoint has seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from bhemu.devices.niu_request import CORE, PC
from bhemu.errors import BhemuError, NotModelled, Where
from bhemu.machine import error_text
from bhemu.memmap import HOST
from bhemu.noc.describe import describe
from bhemu.noc.record import ChipState
from bhemu.tensix.status import CONDITIONS, RULES

if TYPE_CHECKING:
    from bhemu.machine.controls import Controls


def sent_by(chip: Controls, t: int, core: int, pc: int) -> Where:
    """The place of core `core` of tile `t`; of the host the tile alone."""
    tile = chip.tile_at_index(t)
    return error_text.where_core(tile, core, pc) if core < HOST else Where(tile=tile.xy)


class HostAccess(NamedTuple):
    """A request for the host's memory behind the PCIe tile: in words, and who sent it."""

    request: str
    where: Where


def host_access(chip: Controls, state: ChipState) -> HostAccess:
    """The request that is being delivered, which wants a page of the host's memory."""
    t, i = (int(word) for word in state.at)
    row = chip.tile_at_index(t).state.noc_request[i]
    return HostAccess(describe(row), sent_by(chip, t, int(row[CORE]), int(row[PC])))


def refused(chip: Controls, state: ChipState) -> BhemuError:
    """The error of a request that its target refused: the sender's place, the whole request."""
    t, i, u, status = (int(word) for word in state.refused)
    sender, target = chip.tile_at_index(t), chip.tile_at_index(u)
    target.backend.surface()
    row = sender.state.noc_request[i]
    where = sent_by(chip, t, int(row[CORE]), int(row[PC]))
    if status > 0:
        text, rule, kind, hint = CONDITIONS[status].text, "NOC-WAITS", NotModelled, ""
    else:
        found = RULES[status]
        text, rule, hint = found.sentence(target.state.detail), found.rule, found.hint
        kind = error_text.kind_of(found)
    x, y = target.xy
    return kind(
        f"tile ({x},{y}) refuses a request: {text}; {describe(row)}",
        rule=rule,
        where=where,
        hint=hint,
    )
