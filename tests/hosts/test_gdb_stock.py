"""Stock gdb attaches to `bhemu gdb`: breakpoints, steps, variables, going back."""

import shutil
import subprocess
from pathlib import Path

import pytest
from hosts.gdb_server import ROOT, server

GDB = shutil.which("gdb-multiarch")
needs_gdb = pytest.mark.skipif(GDB is None, reason="gdb-multiarch is not installed")


def gdb(folder: Path, program: str, *commands: str, options: tuple[str, ...] = ()) -> str:
    """What gdb prints in a session at `program`: no error."""
    with server(program, "-q", "--once", *options) as (process, port):
        script = folder / "commands.gdb"
        script.write_text(
            "\n".join(
                (
                    *("set pagination off", "set confirm off", "set width 0"),
                    f"target remote 127.0.0.1:{port}",
                    *commands,
                    "kill",
                )
            )
        )
        done = subprocess.run(
            [str(GDB), "-nx", "-batch", "-x", str(script)],
            cwd=ROOT, capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert process.wait(20) == 0
    shown = done.stdout + done.stderr
    assert "Error" not in shown
    return shown


@needs_gdb
def test_break_step_finish_and_names(tmp_path) -> None:
    shown = gdb(
        tmp_path, "elfs/matmul", "info threads", "tbreak pack_half.h:98", "continue", "bt",
        "finish", "break pack.c:43", "continue", "bt", "p s", "p/x $misa", "stepi", "next",
        "reverse-continue",
    )  # fmt: skip
    assert 'Thread 2 "trisc0" (reset, 0 retired)' in shown
    assert 'Thread 4 "trisc2" hit Breakpoint 2, main () at firmware/matmul/pack.c:' in shown
    assert "#1  0x00018038 in _start () at firmware/lib/crt0.S:31\n" in shown
    assert "s = {m = 2, k = <optimized out>, n = 2" in shown.replace("$1 =", "s =")
    assert "= 0x40201123" in shown
    assert "#1  pack_subblock (block=0, row=0, column=0" in shown
    assert "\npack_subblock (block=0, row=0, column=0" in shown  # finish left the inlined one


@needs_gdb
def test_a_watchpoint_on_l1_is_reached_forwards_and_backwards(tmp_path) -> None:
    shown = gdb(
        tmp_path, "elfs/matmul", "watch *(unsigned *)0xC0000", "continue", "continue",
        "reverse-continue", "reverse-stepi", "monitor sem", "info threads",
    )  # fmt: skip
    assert 'Thread 4 "trisc2" hit Hardware watchpoint 1' in shown
    assert "Old value = 0\nNew value = 49520" in shown
    assert "the run has ended: until" in shown
    assert "Old value = 49520\nNew value = 0" in shown
    assert "sem1 1/2" in shown


@needs_gdb
def test_read_and_access_watchpoints_conditions_and_counts(tmp_path) -> None:
    shown = gdb(
        tmp_path, "elfs/add1", "rwatch *(unsigned *)0x40000", "continue", "delete 1",
        "awatch *(unsigned *)0xC0000", "continue", "delete 2", "monitor break PACR if sem:1 > 0",
        "break main if $pc == 0", "reverse-continue",
    )  # fmt: skip
    assert 'Thread 2 "trisc0" hit Hardware read watchpoint 1' in shown
    assert "UNPACR" in shown
    assert 'Thread 4 "trisc2" hit Hardware access (read/write) watchpoint 2' in shown
    assert "breakpoint 3 set: PACR" in shown


@needs_gdb
def test_a_tile_of_a_chip(tmp_path) -> None:
    shown = gdb(
        tmp_path, "elfs/matmul_mcast", "monitor rwatch sem:1", "continue", "monitor delete",
        "break pack.c:18", "continue", "bt 1", "stepi", "delete", "continue", "reverse-stepi",
        "watch *(unsigned *)0x30880", "reverse-continue", "monitor goto 20000",
        options=("--tile", "2,2"),
    )  # fmt: skip
    assert 'Thread 4 "trisc2" hit Breakpoint 1' in shown
    assert "sem:1: read" in shown
    assert "tile (2,2)" in shown
    assert "the run has ended: until" in shown
    assert "by tile (1,2) ncrisc" in shown
    assert "clock 20000" in shown


@needs_gdb
def test_an_error_of_the_program_is_shown_and_gone_back_from(tmp_path) -> None:
    shown = gdb(tmp_path, "elfs/hang_flag", "continue", "info threads", "bt")
    assert "hint" in shown
