"""A pytest plugin: writes each test of tt-llk that runs on the emulated tile as a program.

    export PYTHONPATH=$(bhemu llk --path):tools:scripts
    pytest -p llk_programs --programs FOLDER test_matmul.py

FOLDER gets a folder per test, its first launch, with PROGRAM.toml, the ELFs, what the test wrote to
L1 and what it read from there afterwards, which is what the program expects.
scripts/check_alarms.py takes them.
"""

import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bhemu import llk as device
from bhemu.llk import COMMANDS, START_TRISCS, Device
from bhemu.memmap import L1_SIZE
from llk_sweep.recording import DATA

_PARAMETERS = 0x20000  # of L1; what lies below is code
_ELFS: dict[str, str] = {}  # the file that each core has loaded last


class Launch:
    """What a test writes, and reads once its kernels have been started."""

    def __init__(self) -> None:
        self.l1, self.written = np.zeros(L1_SIZE, np.uint8), np.zeros(L1_SIZE, bool)
        self.reads: dict[int, bytes] = {}
        self.starts = 0
        self.elfs: dict[str, str] = {}  # of the first start, by core

    def started(self) -> None:
        """The host starts the kernels that it has loaded."""
        self.elfs = self.elfs or dict(_ELFS)
        self.starts += 1

    def write(self, address: int, data: bytes) -> None:
        """The host writes."""
        if address >= _PARAMETERS and not self.starts:
            self.l1[address : address + len(data)] = np.frombuffer(data, np.uint8)
            self.written[address : address + len(data)] = True

    def read(self, address: int, data: bytes) -> None:
        """The host reads a result."""
        if self.starts == 1 and address not in device.WORDS:
            self.reads[address] = data

    def save(self, folder: Path, test: str) -> None:
        """PROGRAM.toml and its files."""
        folder.mkdir(parents=True, exist_ok=True)
        lines = [f"# {test}", "bhemu = 1", 'kind = "llk"', "[cores]"]
        for core, path in self.elfs.items():
            shutil.copy(path, folder / f"{core}.elf")
            lines.append(f'{core} = {{ elf = "{core}.elf" }}')
        edges = np.flatnonzero(np.diff(self.written.astype(np.int8), prepend=0, append=0))
        for first, end in edges.reshape(-1, 2).tolist():
            self.l1[first:end].tofile(folder / f"in_{first:x}.bin")
            lines += ["[[input]]", f'file = "in_{first:x}.bin"', *_tensor(first)]
        for address, data in self.reads.items():
            (folder / f"out_{address:x}.bin").write_bytes(data)
            lines += ["[[output]]", f'name = "at_{address:x}"', *_tensor(address)]
            lines += [f'expect = "out_{address:x}.bin"']
        text = "\n".join([*lines, "[run]", 'reference = "llk"'])
        (folder / "PROGRAM.toml").write_text(text + "\n")


def _tensor(address: int) -> list[str]:
    return [f"at = {address:#x}", 'dtype = "raw"', 'layout = "raw"']


_launch = [Launch()]


def pytest_addoption(parser: Any) -> None:
    """The folder to write to."""
    parser.addoption("--programs", type=Path, required=True, help="folder of the programs")


def pytest_configure() -> None:
    """Note what passes between the host and the tile."""
    write, words, read, load = Device.write, Device.write_words, Device.read, Device.load_elf

    def fresh(device: Device) -> None:
        if not _launch[0].written.any():  # a test reads more than its kernel writes
            write(device, DATA.start, bytes(len(DATA)))

    def written(device: Device, address: int, data: bytes) -> None:
        fresh(device)
        _launch[0].write(address, data)
        write(device, address, data)

    def words_written(device: Device, address: int, values: Any) -> None:
        fresh(device)
        if address in COMMANDS and START_TRISCS in values:
            _launch[0].started()
        _launch[0].write(address, b"".join(int(one).to_bytes(4, "little") for one in values))
        words(device, address, values)

    def was_read(device: Device, address: int, size: int) -> bytes:
        data = read(device, address, size)
        _launch[0].read(address, data)
        return data

    def loaded(device: Device, path: str | Path, core: str) -> int:
        _ELFS[core] = str(path)
        return load(device, path, core)

    for name, one in (("write", written), ("write_words", words_written)):
        setattr(Device, name, one)
    for name, other in (("read", was_read), ("load_elf", loaded)):
        setattr(Device, name, other)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: Any, call: Any) -> Any:
    """The test as a program, when it has passed."""
    report = (yield).get_result()
    if report.when == "setup":
        _launch[0] = Launch()
    if report.when == "call" and report.passed and _launch[0].reads:
        name = re.sub(r"\W+", "_", item.nodeid)[:150]
        _launch[0].save(item.config.getoption("--programs") / name, item.nodeid)
