"""Words that are queued when `until` stops: executed before L1 is compared."""

from pathlib import Path

from bhemu.launch import launch
from bhemu.oracle.libttsim import outcome
from bhemu.program.schema import CoreSpec, Program, RunSpec, Until
from bhemu.riscv.assembly import A0, A1, PARK, ZERO, addi, code, li, sw, tt

START, DONE, WRITTEN = 0x10000, 0x100, 0x400
GPRS = 0xFFE00000
STORE = tt(
    "STOREIND", mem_hier_sel=1, size_sel=1, addr_reg_index=1, data_reg_index=2, offset_half_reg=8
)


def program(path: Path, *words: int | list[int]) -> Program:
    """GPR 1 addresses L1 0x400, GPR 2 is 0x77; then the words, then the done flag."""
    address = [*li(A0, GPRS), addi(A1, ZERO, WRITTEN // 16), sw(A1, A0, 4)]
    data = [addi(A1, ZERO, 0x77), sw(A1, A0, 8)]
    done = [addi(A1, ZERO, 1), sw(A1, ZERO, DONE), PARK]
    path.write_bytes(bytes(START) + code(address, data, *words, done))
    cores = {"trisc0": CoreSpec("trisc0", pc=START)}
    until = (Until(DONE, 1),)
    return Program("p", "image", cores, image=path, run=RunSpec(until=until, limit=100_000))


def test_a_word_that_the_done_flag_overtook_counts_as_executed(tmp_path: Path) -> None:
    spec = program(tmp_path / "l1.bin", STORE)
    tile = launch(spec)
    found = outcome(tile, tile.run, {"until": "done"})
    assert found.done
    assert found.l1 is not None
    assert found.l1[WRITTEN] == 0x77


def test_the_cores_stand_still_and_go_on_afterwards(tmp_path: Path) -> None:
    spec = program(tmp_path / "l1.bin", STORE)
    tile = launch(spec)
    outcome(tile, tile.run, {"until": "done"})
    assert tile.core["trisc0"].state == "running"
    assert tile.run("idle").reason == "idle"


def test_a_word_that_waits_for_a_core_is_left(tmp_path: Path) -> None:
    word = tt("SEMWAIT", wait_sem_cond=1, sem_sel=1, stall_res=0x1FF)
    spec = program(tmp_path / "l1.bin", word, STORE)
    tile = launch(spec)
    found = outcome(tile, tile.run, {"until": "done"})
    assert found.done
    assert found.l1 is not None
    assert found.l1[WRITTEN] == 0


def test_a_queued_word_that_is_refused_is_the_outcome(tmp_path: Path) -> None:
    spec = program(tmp_path / "l1.bin", tt("GMPOOL"))
    tile = launch(spec)
    found = outcome(tile, tile.run, {"until": "done"})
    assert (found.kind, "POOL-MODE" in found.text) == ("error", True)
