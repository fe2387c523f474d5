"""libbhemu.so: hosts that load it, in processes of their own, against the real chip."""

import contextlib
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hosts.conftest import soon

from bhemu.errors import InputError
from bhemu.hosts import simulator
from bhemu.hosts.shared import HEAD, LAYOUT, MAGIC, SIZE
from bhemu.jit.cache import root
from bhemu.launch import Program
from bhemu.memmap import DEBUG_BASE, L1_SIZE, RISCV_DEBUG_REG_SOFT_RESET_0, SOFT_RESET_ALL
from bhemu.noc.grid import TILES, links

HOST = Path(__file__).parent / "library_host.py"
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a library for Linux")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("library") / "chip"
    simulator.write(made, [], root(), simulator.library())
    return made


def host(folder: Path, scenario: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, HOST, folder / simulator.LIBRARY, scenario],
        capture_output=True,
        text=True,
        env={**os.environ, "NO_COLOR": "1", **environment},
        timeout=300,
        check=False,
    )


def lines(folder: Path, scenario: str, **environment: str) -> list[str]:
    done = host(folder, scenario, **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def gone(process: int) -> bool:
    """Whether a process ends within the seconds that it may take."""
    for _ in range(100):
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


def test_windows_lead_to_memory_and_registers(folder: Path) -> None:
    assert lines(folder, "memory") == [
        "0xb1401e52",
        "True",
        "b'ross'",
        "b'bank 0' b'\\x00\\x00\\x00\\x00\\x00\\x00'",
        "b'far'",
        "[b'all', b'all', b'\\x00\\x00\\x00', b'\\x00\\x00\\x00']",
        "b'\\x05\\x00\\x00\\x00' 0x2106110",
    ]


def test_two_chips_are_two_devices_in_one_clock(tmp_path: Path) -> None:
    simulator.write(tmp_path, ["--chips", "2"], root(), simulator.library(), chips=2)
    devices, own, linked, even, *again = lines(tmp_path, "two")
    assert devices == "0xb1401e52 0xb1401e52 0xffffffff 0x11"
    assert own == f"True b'chip 0' {bytes(16)}"
    assert linked == "True b'chip 1' b'from one to othe'"
    assert even == "True"  # as many turns on each
    assert again == [devices, own, linked, even]


def test_four_chips_are_a_ring(tmp_path: Path) -> None:
    """What each end of a link sends is at the other one, and each chip has two neighbours."""
    simulator.write(tmp_path, ["--chips", "4"], root(), simulator.library(), chips=4)
    ends = links(4)
    named = " ".join(f"{chip}.{channel}" for chip, channel in ends)
    for line in lines(tmp_path, "every_link", LINKS=named):
        at, came = (tuple(map(int, one.split("."))) for one in line.split())
        assert came == ends[at]
    neighbours = {
        chip: {other for (own, _), (other, _) in ends.items() if own == chip} for chip in range(4)
    }
    assert neighbours == {0: {1, 2}, 1: {0, 3}, 2: {0, 3}, 3: {1, 2}}


def test_chip_runs_in_clock_calls_only_and_sees_new_code(folder: Path) -> None:
    zero, first, *again = lines(folder, "running")
    assert zero == "b'\\x00\\x00\\x00\\x00'"
    before, still, after = (int(word) for word in first.split())
    assert before == still > 0
    assert after == 3 * before  # as many turns, by two
    assert again == [zero, first]  # the same calls, the same bytes


def test_soft_resets_wait_for_the_next_message(folder: Path, tmp_path: Path) -> None:
    """As where each access is a message, with fewer of them."""
    recorded = tmp_path / "recorded"
    for made, more in ((recorded, ["--record", str(tmp_path / "x.session")]), (tmp_path / "v", [])):
        simulator.write(made, ["-v", *more], root(), simulator.library())
    few, many = host(tmp_path / "v", "resets"), host(recorded, "resets")
    assert few.stdout == many.stdout
    held, first, counted, *again, last = few.stdout.splitlines()
    assert held == "{'00780400'}"
    assert first == "00700400 00780400"
    assert counted == "True 0"
    assert again == ["00700400", "00780400", "00700400"]
    assert int(last) > 0
    assert "READ 1, WRITE 2, CLOCK 3," in few.stderr


def test_kernels_the_read_channel_and_the_host_reach_host_memory(folder: Path) -> None:
    assert lines(folder, "dma") == [
        "True",
        "b\"to the host's memory\" [('read', 20736, 32), ('write', 20992, 20)]",
        "b'channel.' b'\\x00\\x00\\x00\\x00'",
        "b'by the host' b\"to the host's memory\"",
    ]


def test_arc_answers_messages(folder: Path) -> None:
    one, zero = "b'\\x01\\x00\\x00\\x00'", "b'\\x00\\x00\\x00\\x00'"
    clock = "b'\\x00\\x00\\x00\\x00\\xe8\\x03\\x00\\x00'"
    assert lines(folder, "arc") == [f"{one} {one}", f"{clock} {zero}"]


@pytest.mark.parametrize(
    ("scenario", "said"),
    [("second", "one process has one chip at a time"), ("early", "called before libttsim_init")],
)
def test_calls_out_of_order_end_the_host(folder: Path, scenario: str, said: str) -> None:
    done = host(folder, scenario)
    assert done.returncode == 2
    assert said in done.stderr


WILD = {
    "0x0 4": "in no BAR",
    f"{(1 << 32) + 0x1FFFFC:#x} 8": "leaves its window",
    f"{(1 << 32) + (512 << 20) - 4:#x} 8": "leave their BAR",
    f"{(1 << 32) + (1 << 21) + 0x1B1:#x} 4": "whole aligned words",
    f"{(1 << 32) + (2 << 21):#x} 4": "(5,0)",
    f"{(1 << 32) + (3 << 21):#x} 4": "(40,3)",
    f"{(1 << 32) + (4 << 21):#x} 4": "PCIE-TILE",
    f"{(1 << 32) + (5 << 21):#x} 4": "PCIE-TILE",
    f"{(1 << 32) + (512 << 20) + 0x2:#x} 4": "whole words",
    f"{(1 << 32) + (512 << 20) + 0x80:#x} 4": "BAR2",
    f"{(1 << 32) + 0x1FD04048:#x} 4": "PCIE-NIU",
    f"{(32 << 30) + (9 << 32):#x} 4": "in no BAR",
}


@pytest.mark.parametrize("access", WILD)
def test_wild_accesses_are_errors(folder: Path, access: str) -> None:
    done = host(folder, "wild", WILD=access)
    assert done.returncode in (2, 4)
    assert WILD[access] in done.stderr
    assert "Traceback" not in done.stderr


def test_refusal_reaches_the_host_with_its_place(folder: Path) -> None:
    done = host(folder, "refused")
    assert done.returncode in (4, 5)
    assert "went on" not in done.stdout
    assert "tile (3,4) brisc" in done.stderr
    assert "0x0000006b" in done.stderr.lower()


def test_the_chip_whose_error_ends_the_session_is_kept(tmp_path: Path) -> None:
    state = tmp_path / "state.npz"
    given = ["--chips", "2", "--keep", str(state)]
    simulator.write(tmp_path / "two", given, root(), simulator.library(), chips=2)
    assert host(tmp_path / "two", "refused", CHIP="1").returncode in (4, 5)
    kept = Program.load(state).launch()
    assert (kept.network.grid.number, kept.network.grid.chips) == (1, 2)
    assert kept.tile[3, 4].read32(0) == 0x6B
    assert kept.read(29, 25, 0x7CFC0, 4)[1:] == bytes((1, 9, 9))


def test_host_memory_needs_functions(folder: Path) -> None:
    done = host(folder, "without_memory")
    assert (done.returncode, done.stdout) == (2, "")
    assert "the host gave no DMA functions" in done.stderr


def test_host_that_waits_in_vain_hears_what_for(folder: Path) -> None:
    done = host(folder, "waiting")
    assert (done.returncode, done.stdout) == (3, "")
    assert "[LIVELOCK]" in done.stderr
    assert "brisc waits for L1 word" in done.stderr
    assert "0x200" in done.stderr


def test_two_hosts_have_two_chips(folder: Path) -> None:
    command = [sys.executable, HOST, folder / simulator.LIBRARY, "running"]
    hosts = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [one.communicate(timeout=300)[0] for one in hosts]
    assert said[0] == said[1]
    assert len(said[0].splitlines()) == 4


@pytest.fixture(params=[1, 2])
def some(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A folder of one chip, and one of two."""
    given = ["--chips", str(request.param)]
    simulator.write(tmp_path / "some", given, root(), simulator.library(), chips=request.param)
    return tmp_path / "some"


def test_forked_child_goes_on_with_a_copy_of_the_chip(some: Path) -> None:
    done = host(some, "child")
    in_child = ["True b'parent'", "True b'child!'", "True"]
    in_parent = ["0", "True b'parent'", "0 5", "True"]
    assert done.stdout.splitlines() == [*in_child, *in_parent], done.stderr
    assert "[RV-ILLEGAL]" in done.stderr  # of the child that ends with 5


@pytest.mark.parametrize("parent", ["goes on", "exits"])
def test_forked_child_whose_parent_goes_on_is_refused(folder: Path, parent: str) -> None:
    done = host(folder, "child_alone", PARENT=parent)
    assert (done.returncode, done.stdout) == (0, "2\n")
    assert "the parent has used its chip since" in done.stderr


def test_recorded_chip_is_not_copied(tmp_path: Path) -> None:
    given = ["--record", str(tmp_path / "session")]
    simulator.write(tmp_path / "chip", given, root(), simulator.library())
    done = host(tmp_path / "chip", "child")
    assert done.stdout.splitlines() == ["2", "True b'parent'", "0 2", "True"]
    assert "a chip that is recorded is not copied" in done.stderr


def servers(process: int) -> list[int]:
    """The emulators of a host that has marked its environment with its number."""
    found, mark = [], f"BHEMU_TEST={process}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            marked = mark in (folder / "environ").read_bytes().split(b"\0")
            if marked and b"serve" in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
    return found


@pytest.mark.parametrize("first", ["child", "parent"])
def test_killed_hosts_that_forked_leave_no_emulator(folder: Path, first: str) -> None:
    process = subprocess.Popen(
        [sys.executable, HOST, folder / simulator.LIBRARY, "killed_child"],
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        both = servers(process.pid)
        assert len(both) == 2
        for one in (child, process.pid) if first == "child" else (process.pid, child):
            os.kill(one, signal.SIGKILL)
            assert soon(lambda: len(servers(process.pid)) < len(both))
            both.pop()
        assert not both


def test_devices_are_counted_without_an_emulator(some: Path) -> None:
    counted = lines(some, "devices")
    script = some / simulator.RUN
    script.write_text(script.read_text().replace("exec ", "exec /nowhere"))
    assert lines(some, "devices") == counted
    chips = 2 if "--chips 2" in script.read_text() else 1
    assert counted == [" ".join(["0xb1401e52"] * chips + ["0xffffffff"] * (5 - chips))]


def test_script_of_another_is_asked_how_many_chips_there_are(some: Path) -> None:
    counted, ours = lines(some, "devices"), some / simulator.RUN
    ours.rename(some / "ours.sh")
    ours.write_text(f"#!/bin/sh\nexec {some}/ours.sh\n")
    ours.chmod(0o755)
    assert lines(some, "devices") == counted


def test_host_that_is_killed_leaves_no_emulator(some: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, HOST, some / simulator.LIBRARY, "killed"],
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        server = int(process.stdout.readline())
        assert server
        process.kill()
    assert gone(server)


def test_emulator_that_is_killed_ends_the_host(some: Path) -> None:
    done = host(some, "killed", KILL="server")
    assert done.returncode == 70
    assert "the emulator has ended" in done.stderr
    assert gone(int(done.stdout))


def test_library_without_its_script_says_what_to_do(folder: Path, tmp_path: Path) -> None:
    shutil.copy(folder / simulator.LIBRARY, tmp_path)
    done = host(tmp_path, "memory")
    assert done.returncode == 2
    assert "bhemu simulator FOLDER" in done.stderr
    script = tmp_path / simulator.RUN
    script.write_text("#!/bin/sh\nexec /nowhere/python\n")
    script.chmod(0o755)
    done = host(tmp_path, "memory")
    assert done.returncode == 2
    assert "the emulator did not start" in done.stderr
    assert str(script) in done.stderr


@pytest.mark.skipif(shutil.which("cc") is None, reason="the machine has no C compiler")
def test_machine_without_ziglang_makes_the_library_with_its_own_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulator, "_DATA", tmp_path)
    monkeypatch.setattr(simulator.cache, "root", lambda: tmp_path / "cache")
    monkeypatch.setattr(simulator.importlib.util, "find_spec", lambda name: None)
    (tmp_path / "cache").mkdir()
    made = simulator.library()
    assert made.parent == tmp_path / "cache"
    simulator.write(tmp_path / "chip", [], root(), made)
    monkeypatch.setattr(simulator.shutil, "which", lambda name: None)
    assert simulator.library() == made
    made.unlink()
    with pytest.raises(InputError, match="no compiler for it"):
        simulator.library()
    monkeypatch.undo()
    assert lines(tmp_path / "chip", "memory")[0] == "0xb1401e52"


def test_loaded_copy_finds_the_folder_of_the_simulator(folder: Path, tmp_path: Path) -> None:
    shutil.copy(folder / simulator.LIBRARY, tmp_path)
    where = str(folder / simulator.LIBRARY)
    assert lines(tmp_path, "arc", TT_METAL_SIMULATOR=where)


def test_no_room_is_an_error(folder: Path) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))

    done = subprocess.run(
        [sys.executable, HOST, folder / simulator.LIBRARY, "memory"],
        capture_output=True,
        text=True,
        preexec_fn=limit,
        timeout=300,
        check=False,
    )
    assert done.returncode == 2
    assert "ulimit -v" in done.stderr


def test_poison_is_refused(tmp_path: Path) -> None:
    simulator.write(tmp_path / "chip", ["--poison", "ff"], root(), simulator.library())
    done = host(tmp_path / "chip", "memory")
    assert done.returncode == 2
    assert "poison" in done.stderr


def test_layout_is_the_one_of_the_header() -> None:
    text = (Path(simulator.__file__).parent / "libbhemu" / "libbhemu.h").read_text()
    numbers = {name: int(n, 0) for name, n in re.findall(r"\b([A-Z0-9_]+) = (0x\w+|\d+)\b", text)}
    held = {"MAGIC": MAGIC, "LAYOUT": LAYOUT, "TILES": TILES, "L1_SIZE": L1_SIZE}
    held["SOFT_RESET"] = DEBUG_BASE + RISCV_DEBUG_REG_SOFT_RESET_0
    held["HELD"] = SOFT_RESET_ALL
    assert {name: numbers[name] for name in held} == held
    assert HEAD.fields is not None
    offsets = [field[1] for field in HEAD.fields.values()]
    words = [0, 4, 8, 12, *range(16, 89, 8)]
    assert offsets == [*words, *range(92, 653, 140), 1212]
    assert SIZE % 4096 == 0
