"""Recorded sessions: what a host did is a program, which does the same again, byte for byte."""

import itertools
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from elf_builder import Elf, Sec, Seg, Sym
from hosts import library_host

from bhemu import Chip
from bhemu.errors import InputError
from bhemu.hosts import simulator
from bhemu.hosts.umd import Device
from bhemu.jit.cache import root
from bhemu.launch import Launched, Program
from bhemu.program import recorded
from bhemu.riscv.assembly import A0, A1, T0, T1, ZERO, add, beq, code, li, lw, sw
from bhemu.tensix.insn import assemble

TILES = ((1, 2), (2, 2))
ASKED, DONE, RESULT = 0x300, 0x304, 0x400
TURNS = 4
# Waits for another number in ASKED, stores three times that number to RESULT, then it to DONE.
KERNEL = code(
    *li(T0, ASKED), add(A0, ZERO, ZERO),
    lw(T1, T0, 0), beq(T1, A0, -4), add(A0, T1, ZERO),
    add(A1, A0, A0), add(A1, A1, A0), sw(A1, T0, RESULT - ASKED), sw(A0, T0, DONE - ASKED),
    beq(ZERO, ZERO, -28),
)  # fmt: skip


def word(value: int) -> bytes:
    return value.to_bytes(4, "little")


def used(at: Device) -> list[bytes]:
    """A host that asks two kernels in turn; what it reads."""
    seen = []
    for xy in TILES:
        at.write(xy, 0, KERNEL)
        at.deassert_reset(xy)
    for turn in range(1, TURNS + 1):
        for xy in TILES:
            at.write(xy, ASKED, word(turn))
        for xy in TILES:
            while at.read(xy, DONE, 4) != word(turn):
                pass
            seen.append(at.read(xy, RESULT, 4))
        at.write((17, 12), 0x1000 * turn, b"to DRAM")
    return seen


def record(path: Path, **options: Any) -> Chip:
    chip = Chip(livelock=0, **options)
    at = Device(chip)
    at.recorder = recorded.Recorder(path, {"livelock": 0, **options})
    assert used(at) == [word(3 * turn) for turn in range(1, TURNS + 1) for _ in TILES]
    at.recorder.act(recorded.END, chip.round, (0, 0), 0, b"")
    return chip


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Chip]:
    path = tmp_path_factory.mktemp("recorded") / "turns.session"
    return path, record(path)


def bytes_of(chip: Any) -> tuple[Any, ...]:
    tiles = tuple(
        (t.xy, t.clock, t.l1.tobytes(), t.state.regs.tobytes(), t.state.retired.tobytes())
        for t in chip.tiles_made()
    )
    pages = tuple(sorted((at, page.tobytes()) for at, page in chip.network.pages.items()))
    return chip.round, tiles, pages


def test_it_runs_again_byte_for_byte(session: tuple[Path, Chip]) -> None:
    path, chip = session
    again = Program.load(path).launch()
    assert again.run().reason == "until"
    assert bytes_of(again) == bytes_of(chip)
    assert again.run().reason == "until"
    host = again.loop.host
    assert host.differences == {}
    assert host.reads >= 2 * TURNS * len(TILES)
    assert str(host) == f"host reads  {host.reads} as recorded"


def test_in_pieces_from_states_and_back(session: tuple[Path, Chip], tmp_path: Path) -> None:
    path, chip = session
    again = Program.load(path).launch()
    while again.run(limit=700).reason == "limit" and again.clock < chip.clock // 2:
        again.snapshot().save(tmp_path / "state.npz")
        again = Program.load(path).launch()
        again.restore(type(again.snapshot()).load(tmp_path / "state.npz"))
    history = again.keep_history(tile=TILES[0])
    again.run()
    assert bytes_of(again) == bytes_of(chip)
    reads = again.loop.host.reads
    history.goto((history.first + again.tile[TILES[0]].clock) // 2)
    again.run()
    assert again.loop.host.reads == reads
    assert bytes_of(again) == bytes_of(chip)
    assert again.loop.host.differences == {}


@pytest.mark.parametrize("options", [{"late": 3}, {"timing": "model"}, {"quantum": 100}])
def test_with_other_times_the_host_waits_for_what_it_got(
    session: tuple[Path, Chip], options: dict[str, Any]
) -> None:
    path, chip = session
    again = Program.load(path).launch(**options)
    assert again.run().reason == "until"
    assert again.loop.host.differences == {}
    for xy in TILES:
        assert again.tile[xy].read32(RESULT) == chip.tile[xy].read32(RESULT)


def test_a_read_that_differs_is_told(session: tuple[Path, Chip], tmp_path: Path) -> None:
    data = recorded.read(session[0])
    wrong = recorded.Recorder(tmp_path / "wrong", data.options)
    at = next(n for n, a in enumerate(data.acts) if a.data == word(9) and a.kind == recorded.READ)
    for n, act in enumerate(data.acts):
        given = act._replace(data=word(8)) if n == at else act
        wrong.act(given.kind, given.round, given.xy, given.address, given.data)
    for options in ({}, {"late": 3}):
        target = Launched(Program.load(tmp_path / "wrong"), **options)
        assert target.finish().error is None
        x, y = data.acts[at].xy
        (host,) = target.check()
        first, *told = str(host).splitlines()
        assert first.startswith("host reads  1 of ")
        assert told == [f"  ({x},{y}) {RESULT:#x}: recorded 08000000, got 09000000"]
    done = subprocess.run(
        [sys.executable, "-m", "bhemu", "run", str(tmp_path / "wrong")],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 1
    assert "recorded 08000000, got 09000000" in done.stdout


def test_a_host_that_waits_in_vain_waits_once_before_it_writes_again(
    session: tuple[Path, Chip], tmp_path: Path
) -> None:
    data = recorded.read(session[0])
    at = next(n for n, a in enumerate(data.acts) if a.data == word(9) and a.kind == recorded.READ)
    rounds = []
    for wrong in (1, 4):
        other = recorded.Recorder(tmp_path / f"{wrong}.session", data.options)
        for n, act in enumerate(data.acts):
            for k in range(wrong if n == at else 0):
                other.act(act.kind, act.round, act.xy, act.address + 4 + 4 * k, b"none")
            other.act(act.kind, act.round, act.xy, act.address, act.data)
        again = Program.load(tmp_path / f"{wrong}.session").launch(late=3)
        again.run()
        assert len(again.loop.host.differences) == wrong
        rounds.append(again.round)
    assert rounds[0] == rounds[1] > 4096


def test_commands_take_it(session: tuple[Path, Chip]) -> None:
    path = str(session[0])
    for command in ("run", "run --json", "why -q", "check", "trace", "profile", "dump"):
        done = subprocess.run(
            [sys.executable, "-m", "bhemu", *command.split(), path], capture_output=True, text=True
        )
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        if "--json" in command:
            (host,) = json.loads(done.stdout)["outputs"]
            assert host["reads"] >= 2 * TURNS * len(TILES)
            assert host["differences"] == []


def test_what_a_killed_process_has_not_written_is_missing_at_the_end(
    session: tuple[Path, Chip], tmp_path: Path
) -> None:
    whole = recorded.read(session[0]).acts
    data = session[0].read_bytes()
    for part in range(len(data) // 2, len(data), 7):
        (tmp_path / "cut").write_bytes(data[:part])
        acts = recorded.read(tmp_path / "cut").acts
        assert acts == whole[: len(acts)]


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (recorded.MAGIC + b'{"version": 3, "options": {}}\n', "a session of version 3"),
        (recorded.MAGIC + b'{"version": 2, "options": {}, "place": [0]}\n', "not a recorded"),
        (recorded.MAGIC + b'{"version": 0, "options": {}}\n', "not a recorded session"),
        (recorded.MAGIC + b"[", "not a recorded session"),
        (recorded.MAGIC + b'{"version": 1, "options": {}}\nno zlib', "damaged"),
        (recorded.MAGIC + b'{"version": 1, "options": {}}\n', "no core runs"),
    ],
)
def test_other_files_are_refused_by_name(data: bytes, told: str, tmp_path: Path) -> None:
    (tmp_path / "bad").write_bytes(data)
    with pytest.raises(InputError, match=told):
        Program.load(tmp_path / "bad")


def test_options_of_a_session_are_checked(tmp_path: Path) -> None:
    for options in ({"quantum": -1}, {"nothing": 1}, {"harvest": "all"}):
        some = recorded.Recorder(tmp_path / "odd", options)
        some.act(recorded.WRITE, 0, (1, 2), 0xFFB121B0, word(0x47000))
        some.act(recorded.END, 0, (0, 0), 0, b"")
        with pytest.raises(InputError):
            Program.load(tmp_path / "odd").launch()


def test_another_file_is_kept(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="is there and no session"):
        recorded.Recorder(tmp_path / "mine.txt", {})
    assert (tmp_path / "mine.txt").read_text() == "mine"


@pytest.mark.parametrize("scenario", ["running", "dma", "arc"])
def test_a_host_that_loads_the_library_is_recorded(scenario: str, tmp_path: Path) -> None:
    session = tmp_path / "of.session"
    simulator.write(tmp_path / "chip", ["--record", str(session)], root(), simulator.library())
    done = subprocess.run(
        [sys.executable, library_host.__file__, tmp_path / "chip" / simulator.LIBRARY, scenario],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    acts = recorded.read(session).acts
    assert acts[-1].kind == recorded.END
    if scenario == "dma":
        kinds = [act.kind for act in acts]
        assert recorded.FETCH in kinds
        assert recorded.STORE in kinds
    quantum: Any = {"quantum": 1000}  # the default, which questions name
    if any(act.kind == recorded.WRITE and act.address == 0xFFB121B0 for act in acts):
        again = Program.load(session).launch(**(quantum if scenario == "dma" else {}))
        assert again.run().reason == "until"
        assert again.loop.host.differences == {}
        assert np.array_equal(again.round, acts[-1].round)


@pytest.fixture(scope="module")
def linked(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The sessions of two chips, one of which sends the other a packet."""
    folder = tmp_path_factory.mktemp("linked")
    given, session = ["--chips", "2", "--record"], str(folder / "two.session")
    simulator.write(folder / "chips", [*given, session], root(), simulator.library(), chips=2)
    command = [
        sys.executable,
        library_host.__file__,
        str(folder / "chips" / simulator.LIBRARY),
        "two",
    ]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return [Path(f"{session}.chip{n}") for n in range(2)]


def test_each_of_two_chips_has_a_session_of_its_own(linked: list[Path]) -> None:
    """It runs alone, to the same bytes: what came over the link is among its acts."""
    packets = []
    for number, path in enumerate(linked):
        held = recorded.read(path)
        assert held.place == (number, 2)
        packets += [act for act in held.acts if act.kind in (recorded.SENT, recorded.ARRIVED)]
        again = Program.load(path).launch()
        assert again.run().reason == "until"
        assert again.loop.host.differences == {}
        assert again.round == held.acts[-1].round
        assert again.read(29, 25, 0x9000, 16) == (b"from one to othe" if number else bytes(16))
    assert [act.kind for act in packets] == [recorded.SENT, recorded.ARRIVED]
    assert [act.xy for act in packets] == [(22, 25), (29, 25)]


def test_sessions_of_two_chips_are_programs(linked: list[Path], tmp_path: Path) -> None:
    for path in linked:
        again = Program.load(path).launch()
        history = again.keep_history(tile=(1, 2))
        again.run()
        whole = bytes_of(again)
        history.goto((history.first + again.tile[1, 2].clock) // 2 + 1)
        again.snapshot().save(tmp_path / "state.npz")
        again.run()
        assert bytes_of(again) == whole
        with pytest.raises(InputError, match="one of several chips"):
            Program.load(path).launch(late=3)
        for command in ("run", "why -q", "check", "trace", "dump"):
            words = [sys.executable, "-m", "bhemu", *command.split(), str(path)]
            done = subprocess.run(words, capture_output=True, text=True)
            assert done.returncode == 0, (command, done.stdout, done.stderr)
        state = Program.load(tmp_path / "state.npz").launch()
        assert state.network.grid == again.network.grid
        other = Program.load(next(one for one in linked if one != path)).launch()
        with pytest.raises(InputError, match=f"DRAM, chip {state.network.grid.number} of 2"):
            other.restore(again.snapshot())


def test_a_packet_that_differs_is_told(linked: list[Path], tmp_path: Path) -> None:
    data = recorded.read(linked[0])
    wrong = recorded.Recorder(tmp_path / "wrong", data.options, data.place)
    for act in data.acts:
        sent = act.kind == recorded.SENT
        wrong.act(
            act.kind, act.round, act.xy, act.address, b"F" + act.data[1:] if sent else act.data
        )
    target = Launched(Program.load(tmp_path / "wrong"))
    assert target.finish().error is None
    (host,) = target.check()
    assert str(host).splitlines()[1] == "  (22,25) 0x9000: recorded 46726f6d, got 66726f6d"


@pytest.mark.parametrize("place", [(2, 2), (-1, 2), (0, 3), (0, 0)])
def test_a_chip_that_is_not_linked_so_is_refused(
    linked: list[Path], tmp_path: Path, place: tuple[int, int]
) -> None:
    data = recorded.read(linked[0])
    odd = recorded.Recorder(tmp_path / "odd", data.options, place)
    for act in data.acts:
        odd.act(act.kind, act.round, act.xy, act.address, act.data)
    with pytest.raises(InputError, match="linked ones"):
        Program.load(tmp_path / "odd")


def profiled(path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bhemu", "profile", *options, str(path)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip


def test_a_profile_tells_the_operations_of_the_host(
    session: tuple[Path, Chip], tmp_path: Path
) -> None:
    """A turn is one: the host asks both tiles, and waits for both."""
    events, page = tmp_path / "events.json", tmp_path / "page.html"
    given = ("--json", "--perfetto", str(events), "--html", str(page))
    found = json.loads(profiled(session[0], *given).stdout)
    operations = found["operations"]
    assert len(operations) == TURNS
    acts = [one["acts"] for one in operations]
    assert all(a[1] + 1 == b[0] for a, b in itertools.pairwise(acts)) and acts[0][0] == 0
    for one in operations:
        assert {tuple(agent["tile"]) for agent in one["agents"]} == set(TILES)
        assert one["cycles"] == one["end"] - one["begin"] > 0
        for agent in one["agents"]:
            assert agent["busy"] + sum(agent["waiting"].values()) <= one["cycles"] + 64
        brisc = [agent for agent in one["agents"] if agent["name"] == "brisc"]
        assert all(agent["busy"] >= 6 for agent in brisc)  # what stands between two polls
    assert sum(one["cycles"] for one in operations) <= found["cycles"]
    spans = json.loads(events.read_text())["traceEvents"]
    assert sum(e.get("cat") == "operation" for e in spans) == TURNS
    assert 'id="operations"' in page.read_text()
    text = profiled(session[0]).stdout
    assert sum(line.startswith("operation ") for line in text.splitlines()) == TURNS


def test_a_session_is_profiled_when_it_is_over(tmp_path: Path) -> None:
    """`bhemu simulator FOLDER --profile`: a process of its own writes a table and a page."""
    folder = tmp_path / "chip"
    subprocess.run(
        [sys.executable, "-m", "bhemu", "simulator", str(folder), "--profile"], check=True
    )
    done = subprocess.run(
        [sys.executable, library_host.__file__, folder / simulator.LIBRARY, "running"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stderr == ""
    table, page = (folder / f"last.session.profile.{kind}" for kind in ("txt", "html"))
    end = time.monotonic() + 120
    while (not page.exists() or "operation 1:" not in table.read_text()) and time.monotonic() < end:
        time.sleep(0.2)
    assert "cycles in modelled time" in table.read_text()
    assert 'id="operations"' in page.read_text()


def test_a_sweep_compares_what_the_host_reads(session: tuple[Path, Chip], tmp_path: Path) -> None:
    """The second session has another word in the data of its last read."""
    data = recorded.read(session[0])
    acts = list(data.acts)
    last = max(n for n, act in enumerate(acts) if act.kind == recorded.READ)
    acts[last] = acts[last]._replace(data=word(1234))
    (tmp_path / "right.session").write_bytes(session[0].read_bytes())
    wrong = recorded.Recorder(tmp_path / "wrong.session", data.options)
    for act in acts:
        wrong.act(act.kind, act.round, act.xy, act.address, act.data)
    (tmp_path / "SWEEP.toml").write_text(
        'sweep = 1\nname = "s"\nprogram = ["right.session", "wrong.session"]\n'
    )
    command = [sys.executable, "-m", "bhemu", "sweep", "-q", "--workers", "1", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    lines = (tmp_path / "SWEEP-results/runs.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    assert [row["outcome"] for row in rows] == ["ok", "differs"]
    (read,) = rows[0]["outputs"]
    assert read == {"name": "host reads", "total": read["total"], "differing": 0}
    assert rows[1]["outputs"] == [
        {**read, "differing": 1, "first": f"at ({TILES[1][0]},{TILES[1][1]}) {RESULT:#x}"}
    ]


def unordered(value: int, *more: int) -> bytes:
    """Writes a value to a GPR of T0, and gives it to Config before the scalar unit is done."""
    return code(
        *more, *li(T0, 0xFFE40000),
        *li(T1, assemble("SETDMAREG", payload_sig_sel=value, reg_index_16b=40)), sw(T1, T0, 0),
        *li(T1, assemble("WRCFG", gpr_address=20, cfg_reg=60)), sw(T1, T0, 0),
        *more, *li(T0, DONE), *li(T1, 1), sw(T1, T0, 0), beq(ZERO, ZERO, 0),
    )  # fmt: skip


# Kernels of the cache of ELFs, in the order in which the host loads them
HEADED = {"unordered": unordered(0x1234), "turns": KERNEL, "later": unordered(0x2345, *li(T1, 0))}


@pytest.fixture
def overwritten(tmp_path: Path) -> Path:
    """A session in which a kernel with a pair that nothing orders is overwritten by another one.

    A third kernel has the same words, elsewhere.
    """
    for name, text in HEADED.items():
        path = tmp_path / "tt-metal-cache1" / "kernels" / name / "7" / "brisc" / "brisc.elf"
        path.parent.mkdir(parents=True)
        symbols = [Sym(f"{name}_main", 0, len(text))]
        elf = Elf([Seg(0, text)], [Sec(".text", 0, len(text))], symbols, entry=0)
        path.write_bytes(bytes(elf))
    path = tmp_path / "two.session"
    chip = Chip(livelock=0)
    at = Device(chip)
    at.recorder = recorded.Recorder(path, {"livelock": 0})
    for text, turn in zip(HEADED.values(), (1, 2, 1), strict=True):
        at.write(TILES[0], ASKED, word(turn))
        at.write(TILES[0], 0, text)
        at.deassert_reset(TILES[0])
        while at.read(TILES[0], DONE, 4) != word(turn):
            pass
        at.assert_reset(TILES[0])
    at.recorder.act(recorded.END, chip.round, (0, 0), 0, b"")
    return path


def test_a_check_names_the_kernel_that_stood_there_then(overwritten: Path) -> None:
    """Not the one that stands there when the session is over; equal words are one finding."""
    command = [sys.executable, "-m", "bhemu", "check", "-q", "--tool", "order", "--json"]
    for cache, kernel in ((overwritten.parent, "unordered"), (overwritten.parent / "none", None)):
        done = subprocess.run(
            [*command, str(overwritten)], capture_output=True, text=True,
            env={**os.environ, "TT_METAL_CACHE": str(cache)},
        )  # fmt: skip
        (found,) = json.loads(done.stdout)["findings"]
        assert done.returncode == 1
        assert "WRCFG does not wait for the scalar unit" in found["text"]
        assert found["culprit"]["function"] == (f"{kernel}_main+0x1c" if kernel else "")
        runs = [line for line in found["evidence"] if " runs " in line]
        path = "tile (1,2) brisc runs kernels/{}/7/brisc/brisc.elf"
        assert runs == ([path.format(one) for one in (kernel, "later")] if kernel else [])
        assert "the same at 1 more place: pc 0x00000024" in found["evidence"]


def test_a_session_is_checked_when_it_is_over(tmp_path: Path) -> None:
    """`bhemu simulator FOLDER --check`: the host's program ends with what was found."""
    folder = tmp_path / "chip"
    subprocess.run([sys.executable, "-m", "bhemu", "simulator", str(folder), "--check"], check=True)
    command, report = [sys.executable, library_host.__file__], folder / "last.session.check.txt"

    def host(scenario: str) -> str:
        line = [*command, folder / simulator.LIBRARY, scenario]
        return subprocess.run(line, capture_output=True, text=True, check=True).stderr

    assert host("memory") == ""  # no core runs in it
    assert not report.exists()
    found = host("running")
    told = [f"bhemu looks at the session: {report}", *report.read_text().splitlines()]
    lines = found.splitlines()
    assert lines[: len(lines) // 2] == lines[len(lines) // 2 :] == told  # of two sessions
    assert "L1 0x200 of tile (1,2) decides the result, and nothing has written it" in told[1]


def test_tools_are_named_one_by_one_or_together(session: tuple[Path, Chip]) -> None:
    command = [sys.executable, "-m", "bhemu", "check", "-q", "--tool"]
    done = subprocess.run([*command, "order,race", str(session[0])], capture_output=True, text=True)
    assert done.returncode == 2
    assert "'race' is not one of races, init, bounds, order" in done.stderr
