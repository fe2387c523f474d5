"""A launched program as commands run it, and what its run did, in words and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from bhemu.cli import output
from bhemu.cli.options import Settings
from bhemu.cli.output import Progress
from bhemu.devices.bus.address_map import INERT
from bhemu.devices.bus.window import Register
from bhemu.errors import EXIT_INTERRUPTED, InputError
from bhemu.launch import Launched, RunResult, tolerated
from bhemu.machine.stop import Stop
from bhemu.machine.tile import Tile
from bhemu.memmap import CORE_NAMES
from bhemu.program import coordinates
from bhemu.program.options import ENGINES
from bhemu.text import counted

if TYPE_CHECKING:
    from bhemu.launch import Result
    from bhemu.machine.machine import Chip


class Target(Launched):
    """A launched program: `tile` is the one that is shown."""

    def __init__(self, chosen: Settings, progress: Progress, **more: Any) -> None:
        self.chosen, self.progress = chosen, progress
        # --tile names one of the program's tiles
        tiles = [xy for part in chosen.program.placed() for xy in part.at]
        if chosen.tile is not None and chosen.tile not in tiles:
            x, y = chosen.tile
            hint = f"tiles: {coordinates.text(sorted(tiles, key=lambda xy: (xy[1], xy[0])))}"
            raise InputError(f"--tile {x},{y}: the program has nothing there", hint=hint)
        super().__init__(chosen.program, chosen.tile, progress=progress, **more)
        named = "begun" not in more and chosen.program.run.options.get("engine")
        if self.tile.state.timed[0] and named == ENGINES[0]:
            progress.say("the compiled engine runs the cores: words and instructions take time")

    def finish(self) -> RunResult:
        """As of every launch; the error of a session gets names, of ELFs that hosts leave."""
        ended = super().finish()
        if ended.error is not None and self.machine.loop.host is not None:
            from bhemu.hosts.naming import of_environment

            where = ended.error.where
            xy = where.tile if where is not None and isinstance(where.tile, tuple) else None
            of_environment(cast("Chip", self.machine)).look(xy, ended.error)
        return ended

    def finish_shown(self) -> RunResult:
        """As finish; on a terminal the clock is shown meanwhile."""
        with self.progress.running(self):
            return self.finish()

    def save(self) -> None:
        """Write the state of the machine to the file of --save, if any."""
        if self.chosen.save is not None:
            self.machine.snapshot().save(self.chosen.save)


REASONS = {
    "until": "end condition met",
    "idle": "everything is idle or parked",
    "limit": "clock limit reached",
    "timeout": "time-out",
    "interrupt": "interrupted",
}


def as_dict(target: Target, stop: Stop | None, results: Sequence[Result]) -> dict[str, object]:
    """The summary as JSON-ready values; `stop` None when an error ended the run.

    Each tile has its own under "tiles", by "x,y"; that of the only one stands on top too.
    """
    report = {
        "program": target.program.name,
        "stop": "error" if stop is None else stop.reason,
        "clock": target.clock,
        "outputs": [result.as_dict() for result in results],
        "warnings": list(target.chosen.warnings),
    }
    tiles = {f"{tile.xy[0]},{tile.xy[1]}": _tile_dict(tile) for tile in target.tiles}
    return {**report, **(_tile_dict(target.tile) if len(tiles) == 1 else {}), "tiles": tiles}


def interrupted(target: Target, ended: RunResult) -> int:
    """Tell, as `bhemu run` does, of a run that the user has stopped; the exit code."""
    chosen = target.chosen
    lines = [] if chosen.quiet else text(target, ended.stop, ())
    found = as_dict(target, ended.stop, ())
    return output.report(found, EXIT_INTERRUPTED, lines, as_json=chosen.as_json)


def _tile_dict(tile: Tile) -> dict[str, object]:
    executed = tile.state.executed
    return {
        "cores": {
            name: {"state": core.state, "retired": core.retired, "pc": core.pc}
            for name, core in tile.core.items()
        },
        "tensix": {f"T{t}": int(executed[t]) for t in range(3)},
        "inert": [
            {
                "register": register.name,
                "address": address,
                "accesses": accesses,
                "reason": register.inert,
            }
            for address, register, accesses in inert(tile)
        ],
        "queued": {f"T{t}": waiting(tile, t) for t in range(3)},
        "tolerated": tolerated([tile]),
    }


def inert(tile: Tile) -> list[tuple[int, Register, int]]:
    """(address, register, accesses) of the inert registers that were accessed."""
    used = zip(INERT.items(), tile.state.inert_count[: len(INERT)].tolist(), strict=True)
    return [(address, register, count) for (address, register), count in used if count]


def waiting(tile: Tile, t: int) -> int:
    """Words of thread `t` in its FIFO and wait gate: pushed, and not executed yet."""
    s = tile.state
    return int(s.fifo_write[t] - s.fifo_read[t] + s.gate_full[t])


def text(target: Target, stop: Stop | None, results: Sequence[Result]) -> list[str]:
    """The summary as lines: of the only tile, or of all tiles and the one of --tile."""
    lines = [str(result) for result in results]
    reason = "stopped by an error" if stop is None else REASONS.get(stop.reason, stop.reason)
    alone = len(target.tiles) == 1
    on = "" if alone else f", {counted(len(target.tiles), 'tile')}"
    lines.append(f"{target.program.name}: {reason}, clock {target.clock}{on}")
    if alone:
        return lines + _tile_lines(target.tile, stop)
    lines += _sums(target.tiles)
    if target.chosen.tile is not None:
        x, y = target.tile.xy
        lines += [f"tile ({x},{y})", *_tile_lines(target.tile, stop)]
    return lines


def _tile_lines(tile: Tile, stop: Stop | None) -> list[str]:
    lines = []
    cores = [core for core in tile.core.values() if core.retired or core.state != "reset"]
    for core in cores:
        found = next(filter(None, (symbols.lookup(core.pc) for symbols in core.images)), None)
        at = f"pc 0x{core.pc:08X}{('' if found is None else f' in {found[0]}')}"
        lines.append(f"  {core.name:<7} {core.retired:>12} retired  {core.state:<8} {at}")
    words = tile.state.executed
    if words.any():
        lines.append(_words([int(n) for n in words]))
    if stop is not None and stop.reason == "until":
        # What the end condition cut off: its mistakes, if any, have not been found
        lines += [
            f"  queued  T{t}: {counted(n, 'word')} pushed and not executed when the run ended"
            for t in range(3)
            if (n := waiting(tile, t))
        ]
    lines += [
        f"  inert   {register.name}: {counted(accesses, 'access')} ({register.inert})"
        for _, register, accesses in inert(tile)
    ]
    return lines + [_tolerated(rule, count) for rule, count in tolerated([tile]).items()]


def _words(counts: Sequence[int]) -> str:
    shown = "  ".join(f"T{t} {n}" for t, n in enumerate(counts))
    return f"  Tensix  {shown}  words executed"


def _sums(tiles: Sequence[Tile]) -> list[str]:
    """What the cores of all tiles did, by their names, and what was tolerated on any of them."""
    lines = []
    for name in CORE_NAMES:
        cores = [tile.core[name] for tile in tiles]
        if states := Counter(core.state for core in cores if core.retired):
            retired = sum(core.retired for core in cores)
            shown = ", ".join(f"{count} {state}" for state, count in states.most_common())
            lines.append(f"  {name:<7} {retired:>12} retired  {shown}")
    words = [sum(int(tile.state.executed[t]) for tile in tiles) for t in range(3)]
    lines += [_words(words)] if any(words) else []
    return lines + [_tolerated(rule, count) for rule, count in tolerated(tiles).items()]


def _tolerated(rule: str, count: int) -> str:
    """With sentence and hint of the rule, unless the sentence needs the numbers of one case."""
    from bhemu.machine.sentences import RULES

    about = next(r for r in RULES.values() if r.rule == rule)
    why = "" if "{" in about.text else f" ({about.text}{'; ' if about.hint else ''}{about.hint})"
    return f"  tolerated  {rule}: {counted(count, 'time')}{why}"


def opcodes(tile: Tile) -> list[str]:
    """Executed words by thread and mnemonic, most frequent first."""
    from bhemu.tensix.insn import instructions

    lines: list[str] = []
    counts: Any = tile.state.op_count
    for t in range(3):
        if ranked := sorted(((int(n), op) for op, n in enumerate(counts[t]) if n), reverse=True):
            named = (f"{instructions()[op].name} {n}" for n, op in ranked)
            lines.append(f"  T{t}      {', '.join(named)}")
    return lines
