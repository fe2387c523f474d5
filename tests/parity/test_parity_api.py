"""A tile is a machine of one tile: each call of the API does the same on a Tile and on a Chip."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import twins

from bhemu import BhemuError, InputError, Program, Snapshot
from bhemu.program.schema import ENGINES

LONG = bool(os.environ.get("BHEMU_LONG"))
XY = (1, 2)
DONE = [(0x100, 0xD0E0)]


@pytest.fixture(params=ENGINES)
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., tuple[Any, Any]]:
    """pair(name, **options): the program launched on a tile, and on a chip."""
    engine = request.param

    def launch(name: str, **options: Any) -> tuple[Any, Any]:
        paths = twins.write(name, tmp_path / str(len(list(tmp_path.iterdir()))))
        made = [Program.load(paths[form]).launch(engine=engine, **options) for form in twins.TWINS]
        return made[0], made[1]

    return launch


def seen(machine: Any) -> dict[str, Any]:
    """What a user sees of a machine and of its tile at (1, 2)."""
    tile = machine.tile[XY]
    stop, error = machine.stop, machine.error
    return {
        "clock": (machine.clock, tile.clock),
        "stop": None if stop is None else (stop.reason, stop.clock, str(stop.where), stop.change),
        "error": None if error is None else _error(error),
        "tile's error": None if tile.error is None else type(tile.error).__name__,
        "where": str(tile.where()),
        "l1": tile.l1.tobytes(),
        "regs": [core.regs.tolist() for core in tile.core.values()],
        "retired": [core.retired for core in tile.core.values()],
        "executed": tile.state.executed.tolist(),
        "sem": tile.tensix.sem.tolist(),
        "breakpoints": str(machine.breakpoints),
        "watchpoints": str(machine.watchpoints),
    }


def _error(error: BhemuError) -> tuple[str, str, str]:
    """Kind and text of an error; what a chip adds to names is the coordinate of the tile."""
    return type(error).__name__, error.rule or "", re.sub(r"\(1,2\) ", "", str(error))


def same(machines: tuple[Any, Any], *calls: Callable[[Any], Any]) -> None:
    """Each call gives the same on both, and leaves the same behind."""
    for number, call in enumerate(calls):
        results = []
        for machine in machines:
            try:
                results.append(_plain(call(machine)))
            except BhemuError as error:
                results.append(_error(error))
        assert results[0] == results[1], number
        one, other = map(seen, machines)
        different = [name for name in one if one[name] != other[name]]
        assert not different, (number, {name: (one[name], other[name]) for name in different[:2]})


def _plain(result: Any) -> Any:
    if isinstance(result, np.ndarray):
        return result.tolist()
    return result if isinstance(result, int | float | str | bytes | None | tuple) else str(result)


@pytest.mark.parametrize("quantum", [1000, 7])
@pytest.mark.parametrize("name", twins.PROGRAMS)
def test_run(pair, name: str, quantum: int) -> None:
    same(
        pair(name, quantum=quantum),
        lambda m: m.run(),
        lambda m: m.check(),
        lambda m: m.run(),
        lambda m: m.run(resume=True),
    )


@pytest.mark.parametrize(
    "until",
    [
        DONE,
        [("runtime_args", 1)],
        [{"word": 0x100, "equals": 0xD0E0}],
        [(XY, 0x100, 0xD0E0)],
        [{"word": 0x100, "equals": 0xD0E0, "tile": XY}],
        [(0x104, 0xD0E1), (0x100, 0xD0E0)],
        "idle",
        "polling",
        "never",
        7,
        [7],
        [(2, 0)],
        [("nowhere", 0)],
        DONE * 17,
    ],
    ids=str,
)
def test_until(pair, until: Any) -> None:
    same(pair("add1"), lambda m: m.run(until, limit=3000, timeout_s=20))


@pytest.mark.parametrize("at", [0x20, 0x100, 0x1F0])
def test_until_is_exact_at_the_store(pair, at: int) -> None:
    """The next store is not executed."""
    machines = pair("matmul", quantum=100_000)
    same(machines, lambda m: m.run([(0x10C, 0xD0E3)]), lambda m: m.run(limit=at))
    for machine in machines:
        assert machine.tile[XY].read32(0x10C) in (0, 0xD0E3)


def test_a_callable_is_asked_with_the_machine(pair) -> None:
    machines = pair("add1")
    asked: list[Any] = []
    same(
        machines,
        lambda m: m.run(lambda x: asked.append(x is m) or x.tile[XY].state.round[0] >= 2),
        lambda m: m.run(rounds=1),
        lambda m: m.run(limit=17),
        lambda m: m.run(lambda x: 1 // 0 if False else False, limit=300),
    )
    assert all(asked)


def test_steps(pair) -> None:
    same(
        pair("add1"),
        lambda m: m.step("brisc"),
        lambda m: m.step("brisc", 40),
        lambda m: m.step("brisc", 5, hold=True),
        lambda m: m.run_to("trisc1", "main"),
        lambda m: m.next("trisc1"),
        lambda m: m.finish("brisc"),
        lambda m: m.tstep(1),
        lambda m: m.tstep(1, 9),
        lambda m: m.tnext(1),
        lambda m: m.tstep(2, 0),
        lambda m: m.step("ncrisc"),
        lambda m: m.step("nobody"),
        lambda m: m.tstep(3),
        lambda m: m.run(),
    )


def test_breakpoints(pair) -> None:
    same(
        pair("matmul"),
        lambda m: m.break_at("trisc1", "main"),
        lambda m: m.break_word("PACR", 2),
        lambda m: m.break_at("brisc", "nowhere"),
        lambda m: m.watch("sem:1"),
        lambda m: m.run(),
        lambda m: m.run(),
        lambda m: m.run(),
        lambda m: m.delete(3),
        lambda m: m.delete(99),
        lambda m: m.run(),
        lambda m: m.run(),
        lambda m: m.delete(),
        lambda m: m.run(),
    )


def test_conditions(pair) -> None:
    same(
        pair("matmul"),
        lambda m: m.break_word("MVMUL", condition=lambda tile: tile.state.executed[1] > 100),
        lambda m: m.watch("0xC0000", ignore=2),
        lambda m: m.run(),
        lambda m: m.run(),
        lambda m: m.run(),
    )


def test_trace(pair) -> None:
    same(
        pair("add1"),
        lambda m: str(m.trace(12)),
        lambda m: str(m.traced),
        lambda m: str(m.trace()),
    )


def test_history(pair) -> None:
    def kept(machine: Any) -> str:
        return repr(machine.keep_history())

    same(
        pair("add1"),
        lambda m: m.history,
        kept,
        lambda m: m.watch("sem:1"),
        lambda m: m.run(),
        lambda m: m.run(),
        lambda m: m.history.reverse_continue(),
        lambda m: m.history.goto(1500),
        lambda m: m.history.reverse_step(m.tile[XY].core["brisc"], 3),
        lambda m: m.history.goto(1200),
        lambda m: m.history.reverse_tstep(1, 2),
        lambda m: m.tile[XY].write32(0x150000, 5),
        lambda m: m.run(limit=10),
        lambda m: m.history.goto(1100),
        lambda m: m.tile[XY].read32(0x150000),
        lambda m: m.delete(),
        lambda m: m.run(),
        lambda m: m.check(),
    )


def test_states(pair, tmp_path: Path) -> None:
    machines = pair("matmul")
    for number, machine in enumerate(machines):
        machine.run(limit=2000)
        machine.snapshot().save(tmp_path / f"{number}.npz")
    saved = [Snapshot.load(tmp_path / f"{number}.npz") for number in range(2)]
    assert [list(one.tiles) for one in saved] == [[XY], [XY]]
    assert (saved[0].sem == saved[1].sem).all()
    same(machines, lambda m: m.run(), lambda m: m.check())
    for machine, own in zip(machines, saved, strict=True):
        machine.restore(own)
    same(machines, lambda m: m.run(), lambda m: m.check())
    again = tuple(Program.load(tmp_path / f"{number}.npz").launch() for number in range(2))
    for machine in again:
        assert machine.run().reason == "until"
    for machine, other in zip(machines, reversed(saved), strict=True):
        with pytest.raises(InputError, match=r"is the state of a (chip|tile)"):
            machine.restore(other)


def test_an_error_is_that_of_the_machine_and_of_its_tile(pair) -> None:
    machines = pair("add1")
    for machine in machines:
        machine.run(limit=200)
        machine.tile[XY].write32(machine.tile[XY].core["brisc"].pc, 0x00100073)  # ebreak
    same(
        machines,
        lambda m: m.run(),
        lambda m: m.run(),
        lambda m: m.step("brisc"),
        lambda m: repr(m.tile[XY]).partition("stopped by")[2],
        lambda m: m.reset(),
        lambda m: m.run(limit=10),
        lambda m: m.check(),
    )


def test_names_of_registers(pair) -> None:
    tile, chip = pair("add1")
    tile.write32("SOFT_RESET_0", 0)
    chip.write32(*XY, "SOFT_RESET_0", 0)
    same((tile, chip), lambda m: m.run(limit=100))
    assert chip.read32(*XY, "SOFT_RESET_0") == tile.read32("SOFT_RESET_0")


@pytest.mark.parametrize("pair", ENGINES if LONG else ENGINES[:1], indirect=True)
@pytest.mark.parametrize("name", ["hang_flag", "hang_cycle"])
def test_why(pair, name: str) -> None:
    def findings(machine: Any) -> list[tuple[str, str]]:
        return [(found.check, _bare(found.text)) for found in machine.why()]

    machines = pair(name)
    assert findings(machines[0]) == findings(machines[1])


def _bare(text: str) -> str:
    return re.sub(r"\(1,2\) ", "", text)


def test_what_is_where(pair) -> None:
    same(pair("add1"), lambda m: str(m.where()), lambda m: m.run(), lambda m: str(m.where()))
