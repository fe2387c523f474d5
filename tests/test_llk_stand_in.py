"""The stand-in for tt-exalens, driven by the calls that tt-llk's tests make (docs/llk.md)."""

import importlib
import json
import re
import struct
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, astuple
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from llk_runner import ADD, ELFS, PARAMS, UNPACK_A, UNPACK_AB, A, B, C, Params, params

from bhemu.cli import main
from bhemu.errors import GuestFault, InputError, NoProgress, NotModelled, Undefined
from bhemu.llk import device, harness
from bhemu.riscv.asm import EBREAK, code

SOFT_RESET = "RISCV_DEBUG_REG_SOFT_RESET_0"
BRISC, TRISCS = 0x800, 0x7000
ONE, TWO, THREE = (struct.pack("<H", bits) * 1024 for bits in (0x3F80, 0x4000, 0x4040))


@pytest.fixture
def lib(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """ttexalens.tt_exalens_lib from the folder that `bhemu llk --path` prints."""
    folder = CliRunner().invoke(main, ["llk", "--path"]).stdout.strip()
    monkeypatch.syspath_prepend(folder)
    before = set(sys.modules)
    yield importlib.import_module("ttexalens.tt_exalens_lib")
    for name in [n for n in sys.modules if n.startswith("ttexalens") and n not in before]:
        del sys.modules[name]


class Suite:
    """The host side as in tt-llk's test_config.py and device.py, on the stand-in's functions."""

    def __init__(self, lib: Any) -> None:
        self.lib, self.commands = lib, 0
        self.booted = False

    def registers(self) -> Any:
        coordinate = self.lib.convert_coordinate("0,0", 0)
        return coordinate.device.get_block(coordinate).get_register_store()

    def command(self, number: int) -> None:
        address = 0x1FFC8 if self.commands & 1 else 0x1FFC4
        self.lib.write_words_to_device("0,0", address, [number])
        self.commands += 1
        for _ in range(20):
            if self.lib.read_word_from_device("0,0", 0x1FFCC, 0) == self.commands:
                return
        raise TimeoutError(f"command {number}")

    def run(self, chosen: Params) -> bytes:
        store = self.registers()
        words = struct.pack(f"<{len(astuple(chosen))}I", *astuple(chosen))
        self.lib.write_to_device("0,0", PARAMS, words)
        self.lib.write_to_device("0,0", A, ONE)
        self.lib.write_to_device("0,0", B, list(TWO))
        if not self.booted:
            store.write_register(SOFT_RESET, store.read_register(SOFT_RESET) | BRISC | TRISCS)
            self.lib.load_elf(str(ELFS / "brisc.elf"), "0,0", "brisc", verify_write=True)
            store.write_register(SOFT_RESET, store.read_register(SOFT_RESET) & ~BRISC)
            self.booted = True
        self.command(harness.RESET_TRISCS)
        for i in range(3):
            path = str(ELFS / f"trisc{i}.elf")
            self.lib.load_elf(elf_file=path, location="0,0", risc_name=f"trisc{i}", neo_id=None)
        self.command(harness.START_TRISCS)
        waiting = {0x1FFB8, 0x1FFBC, 0x1FFC0}
        for _ in range(4):
            waiting -= {at for at in waiting if self.lib.read_word_from_device("0,0", at) == 0xFF}
        if waiting:
            raise TimeoutError(f"{waiting}")
        data: bytes = self.lib.read_from_device("0,0", C, num_bytes=2048)
        return data


def addition(**more: int) -> Params:
    return params({"unpack": UNPACK_AB, "math": ADD}, "bf16", "bf16", "bf16", "bf16", **more)


def test_a_test_runs_and_the_next_one_too(lib: ModuleType) -> None:
    suite = Suite(lib)
    assert suite.run(addition()) == THREE
    assert suite.run(addition()) == THREE


def test_an_error_is_raised_and_the_next_test_is_not_touched_by_it(lib: ModuleType) -> None:
    """The failing word is named in the read that lets it run; BRISC's count goes on."""
    suite = Suite(lib)
    suite.run(addition())
    wrong = addition()
    wrong.src = 1  # SrcA as fp16 from bf16 in L1
    with pytest.raises(Undefined, match="UNPACR-FORMATS"):
        suite.run(wrong)
    assert suite.run(addition()) == THREE


def test_a_kernel_that_never_ends_is_said_and_leaves_nothing_behind(lib: ModuleType) -> None:
    suite = Suite(lib)
    suite.run(addition())
    four_banks = addition()
    four_banks.unpack = UNPACK_A  # hands over four banks of which math takes one
    with pytest.raises(NoProgress, match="LIVELOCK") as caught:
        suite.run(four_banks)
    assert "trisc0" in json.dumps(caught.value.as_dict())
    assert suite.run(addition()) == THREE


def failed_once(lib: Any) -> Suite:
    """A suite whose second test failed, before anything else is asked of the tile."""
    suite = Suite(lib)
    suite.run(addition())
    wrong = addition()
    wrong.src = 1
    with pytest.raises(Undefined):
        suite.run(wrong)
    return suite


def test_a_power_up_keeps_the_start_addresses(lib: ModuleType) -> None:
    """tt-llk loads ELFs, which sets where kernels start, only when they are not in place already;
    on Blackhole its BRISC sets nothing (tests/helpers/include/boot.h)."""
    suite = failed_once(lib)
    suite.command(harness.RESET_TRISCS)
    store = suite.registers()
    names = [f"RISCV_DEBUG_REG_TRISC{i}_RESET_PC" for i in range(3)]
    assert [store.read_register(name) for name in names] == [0x6000, 0xB000, 0x10000]
    assert store.read_register("RISCV_DEBUG_REG_TRISC_RESET_PC_OVERRIDE") == 7


@pytest.mark.parametrize("start", [0, 0xA000, 0xB004])
def test_a_kernel_that_starts_elsewhere_is_named(lib: ModuleType, start: int) -> None:
    """What lies there may run on, fail in any way or seem to end: no other error hides this."""
    suite = failed_once(lib)
    lib.write_words_to_device("0,0", 0x4004, start)  # BRISC's staged reset_pc[1]
    with pytest.raises(GuestFault, match=rf"trisc1 was released at {start:#x}") as caught:
        suite.run(addition())
    assert caught.value.rule == "LLK-START"
    assert "its ELF starts at 0xb000" in str(caught.value)


def test_a_kernel_without_an_elf_is_named(lib: ModuleType) -> None:
    """Nothing was loaded for the TRISCs: they would run what L1 holds at their fixed addresses."""
    suite = Suite(lib)
    store = suite.registers()
    lib.load_elf(str(ELFS / "brisc.elf"), "0,0", "brisc")
    store.write_register(SOFT_RESET, store.read_register(SOFT_RESET) & ~BRISC)
    with pytest.raises(GuestFault, match="no ELF was loaded"):
        suite.command(harness.START_TRISCS)


def test_an_llk_assert_is_found_by_asking_for_it(lib: ModuleType) -> None:
    suite = Suite(lib)
    suite.run(addition())
    suite.command(harness.RESET_TRISCS)
    lib.write_to_device("0,0", 0xB000, code(EBREAK))
    suite.command(harness.START_TRISCS)
    lib.read_word_from_device("0,0", 0x1FFBC)
    coordinate = lib.convert_coordinate("0,0", 0)
    block = coordinate.device.get_block(coordinate)
    hit = {f"TRISC{i}": block.get_risc_debug(f"TRISC{i}").is_ebreak_hit() for i in range(3)}
    assert hit == {"TRISC0": False, "TRISC1": True, "TRISC2": False}
    (frame,) = lib.callstack("0,0", [str(ELFS / "trisc1.elf")], risc_name="TRISC1", device_id=0)
    assert (frame.pc, frame.function_name) == (0xB000, "_start")


def test_reads_that_do_not_poll_let_no_time_pass(lib: ModuleType) -> None:
    suite = Suite(lib)
    suite.run(addition())
    emulated = lib.check_context().devices[0].emulated((0, 0))
    before = emulated.tile.clock
    lib.read_from_device("0,0", 0, num_bytes=4096)
    assert emulated.tile.clock == before
    lib.read_words_from_device("0,0", 0, word_count=4)
    assert before < emulated.tile.clock < before + 2 * device.SLICE


def test_locations_are_tiles_of_their_own(lib: ModuleType) -> None:
    lib.write_words_to_device("0,0", 0x30000, 7)
    assert lib.read_word_from_device("0,1", 0x30000) == 0
    with pytest.raises(InputError, match="only Tensix tiles"):
        lib.read_word_from_device("d0", 0)


def test_the_rest_of_what_the_tests_import(lib: ModuleType) -> None:
    package = importlib.import_module("ttexalens")
    package.Verbosity.set(package.Verbosity.ERROR)
    context = package.tt_exalens_init.init_ttexalens(use_4B_mode=False)
    assert package.check_context() is context
    assert str(context.devices[0]._arch) == "blackhole"
    context.devices[0].get_tensix_registers_description().general_purpose_registers = []
    assert lib.arc_msg(0, 0xAA52, True, [0, 0], None) == [0, 0]
    with pytest.raises(NotModelled, match="message 0x1"):
        lib.arc_msg(0, 1, True, [], None)
    elf = lib.parse_elf(str(ELFS / "brisc.elf"))
    assert elf.symbols["runtime_args"].value == PARAMS
    state = asdict(lib.get_tensix_state("0,0", device_id=0))
    assert np.shape(state["gpr"]) == (3, 64)
    coordinate = lib.convert_coordinate("0,0")
    debug = importlib.import_module("ttexalens.debug_tensix")
    with pytest.raises(NotModelled, match="injecting"):
        debug.TensixDebug(coordinate)
    assert importlib.import_module("ttexalens.context").Context
    assert importlib.import_module("ttexalens.coordinate").OnChipCoordinate.create(
        "3,4", context.devices[0]
    ).at == (3, 4)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("", {"reference": "llk"}),
        ("reference=ttsim,quantum=7", {"reference": "ttsim", "quantum": 7}),
        ("ub=warn,seed=3", {"reference": "llk", "ub": "warn", "seed": 3}),
    ],
)
def test_options(text: str, want: dict[str, object]) -> None:
    assert device.options(text) == want


@pytest.mark.parametrize("text", ["quantum", "speed=3", "quantum=fast"])
def test_wrong_options_are_named(text: str) -> None:
    with pytest.raises(InputError, match=re.escape("BHEMU_LLK")):
        device.options(text)


def test_one_variable_is_enough(tmp_path: Path) -> None:
    """A suite that knows nothing of bhemu imports the stand-in by PYTHONPATH alone."""
    folder = CliRunner().invoke(main, ["llk", "--path"]).stdout.strip()
    text = "import ttexalens; print(ttexalens.check_context().devices[0]._arch)"
    root = str(Path(__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", text],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"PYTHONPATH": f"{folder}:{root}"},
    )
    assert done.stdout == "blackhole\n", done.stderr
