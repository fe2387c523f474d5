"""`bhemu run`: exit codes, summaries and messages (interface chapter)."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import bhemu as package
from bhemu.jit.build import Code, Entry, load
from bhemu.riscv.assembly import (
    A0,
    A1,
    EBREAK,
    PARK,
    PUSH,
    SP,
    ZERO,
    addi,
    bne,
    code,
    li,
    sw,
    tt,
    ttinsn,
)
from bhemu.tensix import config_fields as cf
from bhemu.tensix.insn import assemble

ROOT = Path(package.__file__).parent.parent
ADD1 = ROOT / "elfs" / "add1"
FOREVER = [li(A0, 0x7FFFFFFF), addi(A0, A0, -1), bne(A0, ZERO, -4), PARK]  # as good as
SEMWAIT = {"wait_sem_cond": 1, "sem_sel": 1, "stall_res": 0x1FF}


def shell(*args: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "bhemu", *map(str, args)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )


def test_a_program_that_parks_is_ok(write, bhemu) -> None:
    result = bhemu("run", write(addi(A0, ZERO, 1), tt("SEMINIT", sem_sel=1, max_value=1), PARK))
    assert result.exit_code == 0
    first, *rest = result.stdout.splitlines()
    assert re.fullmatch(r"small: everything is idle or parked, clock \d+", first)
    assert rest == [
        "  trisc0             2 retired  parked   pc 0x00010008",
        "  Tensix  T0 1  T1 0  T2 0  words executed",
    ]


@pytest.mark.parametrize(
    ("words", "flags", "exit_code", "category", "rule"),
    [
        (FOREVER, ("--limit", 5000), 7, "Limit", "LIMIT"),
        (FOREVER, ("--timeout", 0.1), 7, "Timeout", "TIMEOUT"),
        ([addi(A0, ZERO, 1), EBREAK], (), 6, "Assert", "EBREAK"),
        ([li(A0, 0x00200000), sw(A0, A0)], (), 5, "Unmapped", "RV-UNMAPPED"),
        ([li(A0, 0xFFB50000), sw(A0, A0, 0, 0)], (), 5, "UndefinedBehavior", "MMIO-STORE-SIZE"),
        ([0x0000000B], (), 5, "GuestFault", "RV-ILLEGAL"),
        ([0x00C5F553], (), 4, "Unimplemented", "RV-EXTENSION"),
        ([ttinsn(0x3F000000), PARK], (), 5, "UndefinedBehavior", "ENC-OPCODE"),
        ([tt("SEMPOST") | 0x4, PARK], (), 5, "UndefinedBehavior", "ENC-RESERVED"),
        ([tt("TRNSPSRCA"), PARK], (), 4, "MissingSpecification", "ISA-REFUSED"),
        ([tt("SEMWAIT", **SEMWAIT), tt("NOP"), PARK], (), 3, "Deadlock", "DEADLOCK"),
        ([PARK], ("--until", "0x100=1"), 3, "NoProgress", "IDLE"),
    ],
)
def test_exit_codes_of_what_goes_wrong(
    write, bhemu, report, words, flags, exit_code, category, rule
) -> None:
    path = write(*words)
    result = bhemu("run", path, *flags)
    assert result.exit_code == exit_code
    assert f"error: [{rule}] " in result.stderr
    code, error = report("run", path, *flags)
    assert code == error["exit_code"] == exit_code
    assert (error["category"], error["rule"]) == (category, rule)
    assert error["message"] in result.stderr


def test_an_error_has_place_decoded_word_and_hint(write, bhemu) -> None:
    result = bhemu("run", write(addi(A0, ZERO, 1), EBREAK))
    assert result.stderr.splitlines()[:3] == [
        "error: [EBREAK] trisc0 reached ebreak, the device assert",
        "  at tile (1,2) trisc0 pc 0x00010004, word 0x00100073 ebreak",
        "  hint: look at the failed condition at that source line",
    ]


def test_a_deadlock_shows_who_waits_for_whom(write, bhemu, report) -> None:
    path = write(tt("SEMWAIT", **SEMWAIT), tt("SEMPOST", sem_sel=1), PARK)
    waiting = [line for line in bhemu("run", path).stderr.splitlines() if "waits for" in line]
    assert len(waiting) == 1
    assert "thread T0" in waiting[0]
    assert "semaphore 0 = 0" in waiting[0]
    _, error = report("run", path)
    assert [w["who"] for w in error["graph"]["waiters"]] == ["thread T0"]


def test_outputs_equal_and_different(write, bhemu, report, tmp_path) -> None:
    np.save(tmp_path / "want.npy", np.array([7, 0], np.int32))
    path = write(addi(A0, ZERO, 7), sw(A0, ZERO, 0x200), PARK)
    flags = ("--expect", f"{tmp_path / 'want.npy'}@0x200:int32:rows")
    result = bhemu("run", path, *flags)
    assert (result.exit_code, result.stdout.splitlines()[0]) == (0, "want  2 int32  equal (2 of 2)")
    np.save(tmp_path / "want.npy", np.array([7, 1], np.int32))
    result = bhemu("run", path, "-q", *flags)
    assert result.exit_code == 1
    assert result.stdout.splitlines()[0].startswith("want: 1 of 2 elements differ")
    assert "expected 1 (0x00000001), got 0 (0x00000000), 1 ULP" in result.stdout
    assert result.stderr == ""
    code, summary = report("run", path, *flags)
    assert (code, summary["exit_code"], summary["outputs"][0]["differing"]) == (1, 1, 1)
    assert summary["outputs"][0]["equal"] is False


def test_the_json_summary_counts_instructions_and_words(write, report) -> None:
    words = [
        addi(A0, ZERO, 1),
        tt("SEMINIT", sem_sel=1, max_value=2),
        tt("SEMPOST", sem_sel=1),
        PARK,
    ]
    code, summary = report("run", write(*words, core="trisc2"))
    assert (code, summary["stop"], summary["program"]) == (0, "idle", "small")
    assert summary["cores"]["trisc2"] == {"state": "parked", "retired": 3, "pc": 0x1000C}
    assert summary["tensix"] == {"T0": 0, "T1": 0, "T2": 2}


def test_inert_registers_are_listed(write, bhemu, report) -> None:
    path = write(li(A0, 0xFFB12240), sw(A0, A0), sw(A0, A0), PARK)
    line = next(text for text in bhemu("run", path).stdout.splitlines() if "inert" in text)
    assert line == (
        "  inert   RISCV_DEBUG_REG_DEST_CG_CTRL: 2 accesses (clock gating has no functional effect)"
    )
    assert report("run", path)[1]["inert"][0]["accesses"] == 2


def test_words_cut_off_by_the_end_condition_are_counted(write, bhemu, report) -> None:
    """A word of no instruction is found when it executes, which the end came before."""
    words = [ttinsn(0x3F000000), *li(A0, 1), sw(A0, ZERO, 0x100), PARK]
    path = write(words, run="until = [{ word = 0x100, equals = 1 }]")
    result = bhemu("run", path)
    assert result.exit_code == 0
    said = "  queued  T0: 1 word pushed and not executed when the run ended"
    assert said in result.stdout.splitlines()
    assert report("run", path)[1]["queued"] == {"T0": 1, "T1": 0, "T2": 0}
    assert "queued" not in bhemu("run", ADD1).stdout


@pytest.mark.parametrize("base", [SP, A0])
def test_a_stack_pointer_that_nobody_set_is_named(write, bhemu, base) -> None:
    result = bhemu("run", write(sw(ZERO, base, -4), PARK))
    assert "[RV-UNMAPPED] store to 0xfffffffc" in result.stderr
    assert ("hint: the base is sp" in result.stderr) == (base == SP)


def test_tolerated_rules_are_counted(write, bhemu) -> None:
    path = write(tt("ATRELM", mutex_index=0), PARK)
    assert bhemu("run", path).exit_code == 5
    result = bhemu("run", path, "--ub", "warn")
    assert result.exit_code == 0
    assert "tolerated  MUTEX-OWNER: 1 time" in result.stdout


@pytest.mark.parametrize("plain", [0, 1])
def test_what_silicon_does_otherwise_is_told(write, bhemu, plain: int) -> None:
    """Nothing is compressed, as in the golden model; the summary says so."""
    config: dict[int, int] = {}
    for field, value in (
        (cf.PCK_DEST_RD_CTRL_Read_32b_data, 1),
        (cf.ALU_FORMAT_SPEC_REG2_Dstacc, 8),
        (cf.THCON_SEC0_REG1_In_data_format, 8),
        (cf.THCON_SEC0_REG1_Out_data_format, 8),
        (cf.THCON_SEC0_REG1_L1_Dest_addr, 0x4000),
        (cf.THCON_SEC0_REG1_Disable_zero_compress, plain),
    ):
        config[field.word] = config.get(field.word, 0) | value << field.shift
    stores = [[*li(A0, 0xFFEF0000 + 4 * w), *li(A1, v), sw(A1, A0)] for w, v in config.items()]
    result = bhemu("run", write(*stores, tt("PACR", zero_write=1), PARK))
    told = "tolerated  PACR-COMPRESSION: 1 time (THCON_SEC0_REG1_Disable_zero_compress is 0"
    assert (result.exit_code, told in result.stdout) == (0, not plain), result.stdout


def test_the_state_is_saved_after_an_error_too(write, bhemu, tmp_path) -> None:
    state = tmp_path / "state.npz"
    words = [addi(A0, ZERO, 9), tt("SEMINIT", sem_sel=4, init_value=3, max_value=5), EBREAK]
    assert bhemu("run", write(*words), "--save", state, "-q").exit_code == 6
    with np.load(state, allow_pickle=False) as saved:
        assert saved["regs"][1, A0] == 9
        assert list(saved["l1"][0x10000:0x10004]) == list(code(addi(A0, ZERO, 9)))
        assert json.loads(str(saved["meta"]))["tile"] == [1, 2]
        assert "engine" not in saved


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("run",), "no program"),
        (("run", "missing.toml"), "missing.toml: no such file"),
        (("run", "--core", "trisc9=a.elf"), "no core trisc9"),
        (("run", "--core", "trisc0=missing.elf"), "no such file"),
        (("run", "--ub", "maybe"), "Invalid value for '--ub'"),
        (("run", "--limit", "0"), "Invalid value for '--limit'"),
        (("run", "--bogus"), "No such option"),
        (("rnu",), "did you mean run?"),
    ],
)
def test_bad_usage_is_one_line_and_exit_code_2(bhemu, tmp_path, monkeypatch, args, message) -> None:
    monkeypatch.chdir(tmp_path)
    result = bhemu(*args)
    assert result.exit_code == 2
    first = result.stderr.splitlines()[0]
    assert first.startswith("error: ")
    assert message in first
    assert result.stdout == ""
    error = json.loads(bhemu(*args, "--json").stdout)
    assert (error["error"], error["exit_code"]) == ("InputError", 2)


def test_a_file_that_cannot_be_written_is_found_before_running(write, bhemu) -> None:
    result = bhemu("run", write(*FOREVER), "--save", "/nonexistent/state.npz")
    assert result.exit_code == 2
    assert "--save: /nonexistent/state.npz cannot be written" in result.stderr


def test_an_unexpected_exception_is_one_line(write, bhemu, monkeypatch) -> None:
    def broken(*_: object) -> None:
        raise KeyError("surprise")

    monkeypatch.setattr("bhemu.launch.Launched.run", broken)
    result = bhemu("run", write(PARK))
    assert result.exit_code == 70
    assert result.stderr.splitlines() == [
        "error: KeyError: 'surprise'",
        "  hint: a defect of bhemu; BHEMU_TRACEBACK=1 shows the traceback",
    ]


def test_compiling_is_announced_and_quiet_silences_it(write, bhemu, monkeypatch) -> None:
    monkeypatch.setattr("bhemu.tensix.compiled.load", _slow_load)
    monkeypatch.setattr("bhemu.tensix.compiled._addresses", {})
    path = write(tt("SEMINIT", sem_sel=1), PARK)
    assert "compiled SEMINIT in 0.6 s (kept for next time)\n" in bhemu("run", path).stderr
    assert bhemu("run", path, "-q").stderr == ""


def _slow_load(wanted: Entry) -> Code:
    if wanted.name != "SEMINIT":
        return load(wanted)
    time.sleep(0.6)
    return Code(load(wanted).address, 0.6)


def test_the_time_out_does_not_count_compilation(write, bhemu, monkeypatch) -> None:
    """The first run of a program must not fail because its instructions are compiled."""
    monkeypatch.setattr("bhemu.tensix.compiled.load", _slow_load)
    monkeypatch.setattr("bhemu.tensix.compiled._addresses", {})
    path = write(tt("SEMINIT", sem_sel=1), PARK)
    assert bhemu("run", path, "--timeout", "0.5").exit_code == 0


def test_as_a_process_with_pipes_nothing_is_coloured(write) -> None:
    result = shell("run", write(EBREAK))
    assert result.returncode == 6
    assert "\x1b" not in result.stdout + result.stderr
    assert shell("run", write(PARK)).returncode == 0


def test_ctrl_c_ends_with_130_and_the_summary(write) -> None:
    program = (
        "import _thread, signal, threading\n"
        # A shell starts background jobs with SIGINT ignored, and the handler is inherited.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from bhemu.launch import Launched\n"
        "from bhemu.cli import main\n"
        "run = Launched.run\n"
        "def interrupted(launched):\n"
        "    threading.Timer(0.3, _thread.interrupt_main).start()\n"
        "    return run(launched)\n"
        "Launched.run = interrupted\n"
        f"main(['run', {str(write(*FOREVER))!r}])\n"
    )
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=120,
    )
    assert result.returncode == 130, result.stderr
    assert "small: interrupted, clock " in result.stdout


def test_a_reader_that_goes_away_is_no_error(write) -> None:
    command = f"{sys.executable} -m bhemu isa | head -1"
    result = subprocess.run(
        command,
        shell=True,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert result.stdout.startswith("mnemonic")
    assert "Traceback" not in result.stderr
    assert "Error" not in result.stderr


def test_flags_alone_run_an_elf(bhemu) -> None:
    """brisc of add1 alone waits for ever for the cores that nobody loaded."""
    result = bhemu("run", "--core", f"brisc={ADD1 / 'brisc.elf'}", "--limit", 1000)
    assert result.exit_code in (3, 4, 5, 6, 7)
    assert "brisc" in result.stdout


def test_help_imports_neither_numba_nor_the_engine() -> None:
    program = (
        "import sys\nfrom bhemu.cli import main\n"
        "try:\n    main(['run', '--help'])\nexcept SystemExit:\n    pass\n"
        "print(sorted({'numba', 'unicorn', 'elftools', 'rich'} & set(sys.modules)))\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert result.stdout.splitlines()[-1] == "[]"


def test_add1_runs_equal(bhemu) -> None:
    result = bhemu("run", ADD1)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.splitlines()[0] == "y  32x32 bf16  equal (1024 of 1024)"


def test_words_pushed_by_stores_count_too(write, report) -> None:
    words = [li(A0, PUSH), li(11, assemble("SEMINIT", sem_sel=1)), sw(11, A0), PARK]
    assert report("run", write(*words))[1]["tensix"]["T0"] == 1
