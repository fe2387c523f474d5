"""The stand-in for tt-exalens, driven by the calls that tt-llk's tests make (docs/llk.md)."""

import importlib
import json
import re
import struct
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from elf_builder import Elf, Sec, Seg
from llk_host import BRISC, SOFT_RESET, THREE, Suite, addition
from llk_runner import ELFS, PARAMS, UNPACK_A

from bhemu import llk as device
from bhemu.cli import main
from bhemu.errors import GuestFault, InputError, NoProgress, NotModelled, Undefined
from bhemu.memmap import SOFT_RESET_BITS
from bhemu.riscv.assembly import A0, A1, EBREAK, PARK, ZERO, code, li, sw


@pytest.fixture
def lib(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """ttexalens.tt_exalens_lib from the folder that `bhemu llk --path` prints."""
    folder = CliRunner().invoke(main, ["llk", "--path"]).stdout.strip()
    monkeypatch.syspath_prepend(folder)
    before = set(sys.modules)
    yield importlib.import_module("ttexalens.tt_exalens_lib")
    for name in [n for n in sys.modules if n.startswith("ttexalens") and n not in before]:
        del sys.modules[name]


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
    suite.command(device.RESET_TRISCS)
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
        suite.command(device.START_TRISCS)


def test_an_llk_assert_is_found_by_asking_for_it(lib: ModuleType) -> None:
    suite = Suite(lib)
    suite.run(addition())
    suite.command(device.RESET_TRISCS)
    lib.write_to_device("0,0", 0xB000, code(EBREAK))
    suite.command(device.START_TRISCS)
    lib.read_word_from_device("0,0", 0x1FFBC)
    coordinate = lib.convert_coordinate("0,0", 0)
    block = coordinate.device.get_block(coordinate)
    hit = {f"TRISC{i}": block.get_risc_debug(f"TRISC{i}").is_ebreak_hit() for i in range(3)}
    assert hit == {"TRISC0": False, "TRISC1": True, "TRISC2": False}
    (frame,) = lib.callstack("0,0", [str(ELFS / "trisc1.elf")], risc_name="TRISC1", device_id=0)
    assert (frame.pc, frame.function_name) == (0xB000, "_start")


def test_a_kernel_may_release_ncrisc_which_has_no_code(lib: ModuleType) -> None:
    """As the end of a dump does; ncrisc goes back into reset, the kernel goes on."""
    suite = Suite(lib)
    suite.run(addition())
    suite.command(device.RESET_TRISCS)
    lib.write_to_device("0,0", 0x12000, bytes(64))
    for start, mailbox in ((0x6000, 0x1FFB8), (0xB000, 0x1FFBC), (0x10000, 0x1FFC0)):
        words = [*li(A0, mailbox), *li(A1, 0xFF), sw(A1, A0)]
        if start == 0xB000:
            words = [*li(A0, 0xFFB121B0), sw(ZERO, A0), *words]
        lib.write_to_device("0,0", start, code(words, PARK))
    suite.command(device.START_TRISCS)
    assert lib.read_word_from_device("0,0", 0x1FFBC) == 0xFF
    held = suite.registers().read_register(SOFT_RESET)
    assert held == 1 << SOFT_RESET_BITS[4]


def test_reads_that_do_not_poll_let_no_time_pass(lib: ModuleType) -> None:
    suite = Suite(lib)
    suite.run(addition())
    emulated = lib.check_context().devices[0].get_block(lib.convert_coordinate("0,0"))
    before = emulated.tile.clock
    lib.read_from_device("0,0", 0, num_bytes=4096)
    assert emulated.tile.clock == before
    lib.read_words_from_device("0,0", 0, word_count=4)
    assert before < emulated.tile.clock < before + 2 * device.SLICE


def test_the_mailboxes_can_be_polled_together_as_bytes(lib: ModuleType) -> None:
    """As tt-metal's suite does (helpers/test_config.py): the tile runs inside such a read too."""
    suite = Suite(lib)
    suite.run(addition())
    suite.command(device.RESET_TRISCS)
    suite.command(device.START_TRISCS)
    lib.write_words_to_device("0,0", 0x1FFB8, [0xA3, 0xA3, 0xA3])
    for _ in range(4):
        data = lib.read_from_device("0,0", 0x1FFB8, 0, 12, None, noc_id=1)
        if data == struct.pack("<3I", 0xFF, 0xFF, 0xFF):
            return
    raise AssertionError(data)


def test_how_an_access_goes_means_nothing_but_the_noc_exists(lib: ModuleType) -> None:
    """tt-exalens 0.3.11 has use_4B_mode before safe_mode, 0.4.1 has it no more."""
    assert lib.write_words_to_device("0,0", 0x30000, [7, 8], 0, None, 0, True, None) == 8
    assert lib.write_to_device("0,0", 0x30008, b"\t\0\0\0", 0, None, 1, None) == 4
    read = {"device_id": 0, "context": None, "noc_id": None, "safe_mode": None}
    assert lib.read_words_from_device("0,0", 0x30000, word_count=3, **read) == [7, 8, 9]
    assert lib.read_from_device("0,0", 0x30000, 0, 4, None, 0, False, None) == b"\7\0\0\0"
    assert lib.read_word_from_device("0,0", 0x30004, **read) == 8
    with pytest.raises(InputError, match="noc_id 2"):
        lib.read_word_from_device("0,0", 0, noc_id=2)


def test_an_elf_file_is_looked_into(lib: ModuleType) -> None:
    """What tt-metal's helpers ask of tt-exalens' ElfFile and CallstackEntry."""
    elf = importlib.import_module("ttexalens.elf")
    assert lib.ElfFile is lib.ParsedElfFile is elf.ElfFile
    parsed = lib.parse_elf(str(ELFS / "trisc1.elf"), require_debug_symbols=False)
    assert isinstance(parsed, elf.ElfFile)
    assert parsed.find_symbol_by_name("_start").value == 0xB000
    assert parsed.find_symbol_by_name("no such symbol") is None
    section = parsed.get_section_by_name(".text")
    assert (section.address, len(section.data)) == (0xB000, section.size)
    assert parsed.get_section_by_name(".device_print_strings") is None
    assert parsed.get_pointer_size() == 4
    assert lib.load_elf(parsed, "0,0", "trisc1", return_start_address=True) == 0xB000
    (frame,) = lib.callstack("0,0", [parsed], risc_name="trisc1")
    assert frame.file_info is None or frame.file_info.line == frame.line
    line = elf.CallstackEntry(0, "main", "a.cpp", 7).file_info
    assert (line.file, line.line, line.column) == ("a.cpp", 7, None)
    with pytest.raises(NotModelled, match="another address"):
        elf.ElfFile(str(ELFS / "trisc1.elf"), 0x1000)


def test_every_worker_of_the_suite_finds_a_tile(lib: ModuleType) -> None:
    """tt-metal's suite takes its tiles from the list of those that the device has."""
    device = lib.check_context().devices[0]
    places = [at.to_str("logical") for at in device.get_block_locations("functional_workers")]
    assert len(set(places)) == 140
    assert lib.read_word_from_device(places[-1], 0) == 0
    with pytest.raises(NotModelled, match="dram"):
        device.get_block_locations("dram")
    with pytest.raises(NotModelled, match="noc0 coordinates"):
        lib.convert_coordinate("0,0").to_str("noc0")


def test_brisc_that_waits_for_a_command_is_no_livelock(
    lib: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One instruction a turn: the 5000 clock units of a read are more rounds than livelock has."""
    monkeypatch.setenv(device.OPTIONS, "quantum=1,livelock=200")
    suite = Suite(lib)
    assert suite.run(addition()) == THREE
    assert lib.read_word_from_device("0,0", 0x1FFCC) == 2
    emulated = lib.check_context().devices[0].get_block(lib.convert_coordinate("0,0"))
    assert emulated.tile.state.livelock[0] == 200


def test_what_only_the_host_reads_of_an_elf_is_not_loaded(lib: ModuleType, tmp_path: Path) -> None:
    """tt-llk's linker script gives such sections addresses that no tile has (sections.ld)."""
    path = tmp_path / "trisc1.elf"
    segments = [Seg(0xB000), Seg(0x6600000)]
    path.write_bytes(
        bytes(Elf(segments, [Sec(".text", 0xB000), Sec(".profiler_meta", 0x6600000)], entry=0xB000))
    )
    assert lib.load_elf(str(path), "0,0", "trisc1", return_start_address=True) == 0xB000
    path.write_bytes(
        bytes(Elf(segments, [Sec(".text", 0xB000), Sec(".data", 0x6600000)], entry=0xB000))
    )
    with pytest.raises(InputError, match="outside L1"):
        lib.load_elf(str(path), "0,0", "trisc1")


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


def test_the_suite_in_tt_metal_finds_a_tt_umd_that_does_nothing(lib: ModuleType) -> None:
    """It imports the package, and calls it only to start a simulator of its own."""
    umd = importlib.import_module("tt_umd")
    try:
        with pytest.raises(NotModelled, match=r"tt_umd\.SimulationConnector"):
            umd.SimulationConnector.discover()
        assert not hasattr(umd, "__wrapped__")
    finally:
        del sys.modules["tt_umd"]
