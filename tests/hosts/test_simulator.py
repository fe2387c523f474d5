"""`bhemu simulator`: the folder, and a session with the chip that its run.sh starts."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hosts.conftest import Host, soon

from bhemu.cli import main
from bhemu.hosts.simulator import library, soc_descriptor
from bhemu.hosts.umd import Command, Message
from bhemu.jit.cache import root
from bhemu.memmap import L1_SIZE
from bhemu.noc.grid import ETHERNET_COLUMNS, TILES, tile_at
from bhemu.riscv import assembly
from bhemu.riscv.assembly import code

WORKER = (1, 2)


def simulator(*arguments: object) -> Result:
    result = CliRunner().invoke(main, ["simulator", *map(str, arguments)])
    assert "Traceback" not in result.output
    return result


def places(key: str) -> list[tuple[int, int]]:
    """The coordinates under a key of the descriptor, up to the next key."""
    text = soc_descriptor().split(f"\n{key}:")[1]
    text = re.split(r"\n[a-z]", text)[0]
    return [(int(x), int(y)) for x, y in re.findall(r"(\d+)-(\d+)", text)]


def test_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    result = simulator(folder, "-v", "--ub", "warn", "--keep", tmp_path / "state.npz")
    assert result.exit_code == 0
    assert result.output.splitlines()[0] == (
        f"TT_METAL_SIMULATOR='{folder}/libbhemu.so' python program.py"
    )
    written = ["libbhemu.so", "run.sh", "soc_descriptor.yaml"]
    assert sorted(path.name for path in folder.iterdir()) == written
    assert os.access(folder / "run.sh", os.X_OK)
    script = (folder / "run.sh").read_text()
    assert f"serve --verbose --ub warn --keep {tmp_path}/state.npz" in script
    assert subprocess.run(["sh", "-n", folder / "run.sh"], check=False).returncode == 0
    assert simulator(folder).exit_code == 0, "it may be written again"
    assert "--verbose" not in (folder / "run.sh").read_text()


def test_the_library_alone(tmp_path: Path) -> None:
    kept = Path(simulator("--library").output.strip())
    assert kept == root() / "simulator" / "libbhemu.so"
    assert kept.read_bytes() == library().read_bytes()
    there = Path(simulator(tmp_path / "there", "--library", "--ub", "warn").output.strip())
    assert there == tmp_path / "there" / "libbhemu.so"
    assert "--ub warn" in (there.parent / "run.sh").read_text()
    assert simulator().exit_code == 2


def test_without_a_library_for_the_machine_the_folder_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    result = simulator(tmp_path / "there")
    assert result.exit_code == 0
    assert "there is no libbhemu.so for linux on riscv64" in result.output
    assert "SLOW_DISPATCH_MODE=1" in result.output
    assert not (tmp_path / "there" / "libbhemu.so").exists()
    assert simulator(tmp_path / "there", "--library").exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--ub", "wran"], "'wran' is not one of error, warn, silicon"),
        (["--engine", "qemu"], "'qemu' is not one of unicorn, compiled"),
        (["--chips", "3"], "'3' is not one of 1, 2, 4"),
        (["--chips", "2", "--profile"], "--profile: linked chips have no modelled time"),
        (["--keep", "/nowhere/state.npz"], "--keep: /nowhere/state.npz cannot be written"),
    ],
)
def test_a_wrong_option_is_refused_before_anything_is_written(
    tmp_path: Path, arguments: list[str], message: str
) -> None:
    result = simulator(tmp_path / "folder", *arguments)
    assert result.exit_code == 2
    assert message in result.output
    assert not (tmp_path / "folder").exists()


def test_a_folder_of_two_chips_has_ethernet_tiles(tmp_path: Path) -> None:
    state = tmp_path / "state.npz"
    assert simulator(tmp_path, "--chips", 2, "--keep", state).exit_code == 0
    assert f"serve --chips 2 --keep {state}\n" in (tmp_path / "run.sh").read_text()
    (line,) = (
        line
        for line in (tmp_path / "soc_descriptor.yaml").read_text().splitlines()
        if line.startswith("eth: ")
    )
    channels = [(int(x), int(y)) for x, y in re.findall(r"(\d+)-(\d+)", line)]
    assert channels == [(x, 1) for x in ETHERNET_COLUMNS]


def test_messages_know_one_chip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NNG_SOCKET_ADDR", "tcp://127.0.0.1:1")
    result = CliRunner().invoke(main, ["serve", "--chips", "2"])
    assert result.exit_code == 2
    assert "messages know one chip" in result.output


def test_what_others_wrote_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("#!/bin/sh\n")
    result = simulator(tmp_path)
    assert result.exit_code == 2
    assert "run.sh is not from bhemu" in result.output
    assert (tmp_path / "run.sh").read_text() == "#!/bin/sh\n"
    (tmp_path / "file").write_text("")
    assert simulator(tmp_path / "file").exit_code == 2


def test_the_descriptor_names_the_tiles_of_the_chip() -> None:
    assert places("functional_workers") == [tile_at(t) for t in range(TILES)]
    text = soc_descriptor()
    assert f"\nworker_l1_size: {L1_SIZE}\n" in text
    assert "\neth: []\n" in text


def test_the_descriptor_s_dram_is_where_the_chip_has_it() -> None:
    from bhemu.machine.machine import Chip

    chip = Chip()
    width, height = map(int, re.findall(r"_size: (\d+)", soc_descriptor())[:2])
    ports = places("dram")
    assert len(ports) == 24
    for number, (x, y) in enumerate(ports):
        chip.dram[number // 3].write(64 * number, bytes([number]))
        assert chip.read(x, y, 64 * number, 1) == bytes([number])
        mirrored = (width - 1 - x, height - 1 - y)
        assert chip.read(*mirrored, 64 * number, 1, noc=1) == bytes([number])


def test_dram_s_own_core_stays_in_reset() -> None:
    from bhemu.errors import InputError
    from bhemu.machine.machine import Chip

    chip = Chip()
    chip.write32(17, 12, 0xFFB121B0, 0x47800)
    assert chip.read32(17, 12, 0xFFB121B0) == 0x47800
    with pytest.raises(InputError, match="the RISC-V core of DRAM bank 0 is not modelled"):
        chip.write32(17, 12, 0xFFB121B0, 0x47000)


class Started(Host):
    """A host that starts run.sh as UMD does, from a folder and an environment of its own."""

    def run(self, folder: Path, work: Path) -> subprocess.Popen[bytes]:
        (work / "click.py").write_text("raise SystemExit('the host has a click of its own')")
        (work / "numpy.py").write_text("raise SystemExit('the host has a numpy of its own')")
        there = {name: value for name, value in os.environ.items() if name[:6] != "PYTHON"}
        there.update(NNG_SOCKET_ADDR=self.address, PYTHONPATH=str(work), PYTHONHOME=str(work))
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                [folder / "run.sh"], cwd=work, env=there, stdout=log, stderr=log
            )
        self.processes.append(process)
        return process


def test_a_session_with_the_chip(tmp_path: Path) -> None:
    folder, work = tmp_path / "simulator", tmp_path / "work"
    work.mkdir()
    assert simulator(folder).exit_code == 0
    if packages := os.environ.get("PYTHONPATH"):  # a checkout that is used in place
        script = folder / "run.sh"
        text = re.sub("export PYTHONPATH=.*", f"export PYTHONPATH={packages}", script.read_text())
        script.write_text(text)
    host = Started(tmp_path)
    host.listen()
    process = host.run(folder, work)
    host.greeted()
    for number, core in enumerate((WORKER, (16, 11), (17, 12), (18, 23))):
        host.write(0x10000, f"tile{number}".encode() + bytes(3), core)
        assert host.read(0x10000, 8, core) == f"tile{number}".encode() + bytes(3)
    host.tell(Message(Command.ALL_TENSIX_RESET_ASSERT, WORKER))
    host.write(0, store_word(0x20000, 0xD0E))
    host.tell(Message(Command.ALL_TENSIX_RESET_DEASSERT, WORKER))
    assert soon(lambda: host.read(0x20000) == (0xD0E).to_bytes(4, "little"))
    assert host.read(0x200000) == b"", "no such address"
    host.exit()
    assert process.wait(20) == 0
    assert host.said().startswith("error: ")
    host.close()


def store_word(address: int, value: int) -> bytes:
    """A program that stores a word and goes on for ever."""
    return code(
        assembly.li(assembly.T0, address),
        assembly.li(assembly.T1, value),
        assembly.sw(assembly.T1, assembly.T0),
        assembly.jal(0, 0),
    )


def test_without_the_packages_it_says_what_to_install(tmp_path: Path) -> None:
    program = (
        "import importlib.util as u; real = u.find_spec\n"
        "u.find_spec = lambda name, *more: None if name == 'pynng' else real(name, *more)\n"
        "from bhemu.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "simulator", tmp_path / "x"], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "the package pynng is not installed: the extra hosts brings" in done.stderr
    assert "pip install 'bhemu[hosts]'" in done.stderr
    assert not (tmp_path / "x").exists()
