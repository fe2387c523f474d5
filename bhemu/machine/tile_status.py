"""Acting on the status with which the compiled loop of a tile has returned."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bhemu.jit.later import Later
from bhemu.machine.stop import Stop, stop
from bhemu.tensix import rules

if TYPE_CHECKING:
    from bhemu.machine import error_text
    from bhemu.machine.tile import Tile
else:
    error_text = Later("bhemu.machine.error_text")


_STOPS = {
    rules.STOP_STEP: "step",
    rules.STOP_BREAKPOINT: "breakpoint",
    rules.STOP_UNTIL: "until",
    rules.STOP_LIMIT: "limit",
    rules.STOP_IDLE: "idle",
    rules.STOP_WATCH: "watchpoint",
}


def resolve(tile: Tile, status: int) -> Stop | None:
    """Act on a status: None to go on, a Stop, or an exception."""
    s, engine = tile.state, tile.backend.engine
    if status < 0:
        # The error of a Tensix word, its place with what the word would have done
        error = error_text.rule_error(tile, status)
        where = error.where
        if where is not None and where.thread is not None and where.word is not None:
            from bhemu.machine.word_text import describe

            error.where = replace(where, operands=describe(tile, where.thread, where.word) or None)
        raise error
    c = int(s.core[0])
    if status == rules.STOP_FLUSH:
        engine.flush(c)
        return None
    if status == rules.STOP_CODE_PAGE:
        if not engine.make_executable(c, int(s.pc[c])):
            raise error_text.fetch_error(tile, c)
        return None
    if status == rules.STOP_ENGINE:
        raise error_text.engine_error(tile)
    if status == rules.STOP_ASSERT:
        raise error_text.assert_error(tile, int(s.agent[0]))
    if status in (rules.STOP_DEADLOCK, rules.STOP_QUIET):
        # Raise an error unless a tile without progress is still alive
        # Imported here: much code, which most programs do not need.
        from bhemu.machine.hang.explore import livelock
        from bhemu.machine.hang.graph import no_progress

        if status == rules.STOP_DEADLOCK:
            raise no_progress(tile, ())
        # The look may follow half as many instructions as rounds went by: a small part of the time.
        if loops := livelock(tile, int(tile.state.quiet[0]) // 2):
            raise no_progress(tile, loops)
        return None
    if status == rules.STOP_LOG:
        tile.drain_log()
        return None
    return stop(tile, _STOPS[status])
