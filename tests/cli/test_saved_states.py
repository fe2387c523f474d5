"""A saved state as a program: run, step and why begin there."""

import json
from pathlib import Path

import numpy as np
import pytest

import bhemu as package
from bhemu import InputError, Program, Snapshot
from bhemu.launch import Launched
from bhemu.why import question
from bhemu.why.order.observe import data_end

ELFS = Path(package.__file__).parent.parent / "elfs"
EXPECTED = f"{ELFS}/add1/expected.npy@0xC0000:bf16"


def test_a_run_goes_on_from_where_it_was_saved(bhemu, tmp_path) -> None:
    state = tmp_path / "half.npz"
    assert bhemu("run", ELFS / "add1", "--limit", "1500", "--save", state).exit_code == 7
    result = bhemu("run", state, "--expect", EXPECTED)
    assert result.exit_code == 0
    assert "equal (1024 of 1024)" in result.stdout
    assert "end condition met, clock 2688" in result.stdout
    assert bhemu("run", state, "--limit", "100").exit_code == 7
    result = bhemu("step", state, "-x", "continue; reverse-continue; where")
    assert "stopped: until, clock 2688" in result.stdout
    assert "the history begins here\nclock 1500\n" in result.stdout
    assert repr(Program.load(state)).startswith("<Program half: state on ; 0 inputs")


def test_a_saved_hang_is_told_again_and_why_finds_it(bhemu, tmp_path) -> None:
    state = tmp_path / "hang.npz"
    assert bhemu("run", ELFS / "hang_cycle", "--save", state).exit_code == 3
    result = bhemu("run", state)
    assert result.exit_code == 3
    assert "cycle: thread T1 needs semaphore 2" in result.stderr
    result = bhemu("why", state)
    assert result.exit_code == 1
    assert (
        "[waiting] deadlock: a cycle of waits" in result.stdout
        and "cycle_math.c:11" in result.stdout
    )
    assert "checking" not in result.stderr
    result = bhemu("run", state, "--check", "all")
    assert result.exit_code == 2 and "a saved state has none" in result.stderr


def test_a_saved_hang_tells_what_stands_in_it_and_what_it_cannot(bhemu, tmp_path) -> None:
    state = tmp_path / "hang.npz"
    assert bhemu("run", ELFS / "hang_cycle", "--save", state).exit_code == 3
    text = bhemu("why", state).stdout
    assert "[state] tile (1,2)" in text
    assert "semaphore 2 (UNPACK_TO_DEST) = 0 of 2; never posted, never taken" in text
    assert "not known of a saved state: who wrote what, races" in text
    shown = json.loads(bhemu("why", state, "--json").stdout)
    assert shown["findings"][0]["check"] == "waiting"
    assert shown["state"][0]["tile"] == [1, 2] and len(shown["state"][0]["lines"]) == 2
    assert shown["not_known"].startswith("not known of a saved state")


def test_what_a_state_held_at_first_is_not_said_to_be_of_power_up(bhemu, tmp_path) -> None:
    state = tmp_path / "half.npz"
    assert bhemu("run", ELFS / "add1", "--limit", "1500", "--save", state).exit_code == 7
    result = bhemu("why", state, "0x40004:4")
    assert "nothing has changed it since clock 1500, where the history begins" in result.stdout
    result = bhemu("step", state, "-x", "goto 5")
    assert "a saved state has no past: begin with the program" in result.output


def saved(folder: Path, name: str) -> Launched:
    """A program of elfs/ where it ended, saved and launched again."""
    state = folder / f"{name}.npz"
    target = Launched(Program.load(ELFS / name))
    target.finish()
    target.machine.snapshot().save(state)
    return Launched(Program.load(state))


@pytest.mark.parametrize("name", ["add1", "matmul", "add1_chip", "hang_flag"])
def test_stacks_of_right_programs_are_not_suspected(tmp_path, name) -> None:
    assert question.state_stacks(saved(tmp_path, name)) == []


def test_a_stack_that_stands_in_data_is_found(tmp_path) -> None:
    target = saved(tmp_path, "add1")
    core = target.tile.core["trisc1"]
    target.tile.state.regs[core.index, 2] = data_end(core) - 4
    (found,) = question.state_stacks(target)
    assert found.found_by == "stack" and found.culprit["core"] == "trisc1"
    assert "within its data, which end at 0xffb00004" in found.text


def test_buffers_banks_and_semaphores_of_a_state_are_told(tmp_path) -> None:
    target = saved(tmp_path, "add1")
    s = target.tile.state
    target.tile.write32(0xFFB40000 + 0x1000 * 16 + 4 * 10, 3)
    target.tile.write32(0xFFB40000 + 0x1000 * 16 + 4 * 8, 1)
    s.src_valid[1, 1], s.sem[4], s.sem_max[4] = 1, 2, 2
    ((_, lines),) = question.state_told(target).tiles.items()
    text = "\n".join(lines)
    assert (
        "circular buffer 16 (in older builds 8): 3 pages announced, 1 given back: 2 in it" in text
    )
    assert "SrcB: bank 1 belongs to the matrix unit" in text
    assert "semaphore 4 (PACK_DONE) = 2 of 2, nobody can take it any more" in text


def test_another_error_stays_what_stopped_the_state(bhemu, tmp_path, write) -> None:
    from bhemu.riscv.assembly import EBREAK

    state = tmp_path / "assert.npz"
    assert bhemu("run", write(EBREAK), "--save", state).exit_code == 6
    assert bhemu("run", state).exit_code == 6


def test_a_chip_goes_on_from_where_it_was_saved(bhemu, tmp_path) -> None:
    state = tmp_path / "chip.npz"
    script = f"break main trisc1; continue; save {state}; continue; check; load {state}; regs"
    result = bhemu("step", ELFS / "add1_chip", "--tile", "2,2", "-x", script)
    assert result.exit_code == 0, result.output
    assert f"saved: {state}, clock " in result.stdout and "equal" in result.stdout
    saved = result.stdout.split(f"saved: {state}, ")[1].splitlines()[0]
    assert result.stdout.count(f"\n{saved}\n") == 1, "load goes back to it"
    result = bhemu("step", state, "--tile", "2,2", "-x", "where; step; reverse-step")
    assert result.exit_code == 0
    assert "trisc1  running" in result.stdout and " main " in result.stdout
    program = Program.load(ELFS / "add1_chip")
    (spec,) = program.outputs
    chips = program.launch(), Program.load(state).launch()
    chips[0].run()
    assert chips[1].output(spec)[1] != chips[0].output(spec)[1]
    chips[1].run("polling")
    assert chips[1].output(spec)[1] == chips[0].output(spec)[1]


def test_what_is_no_saved_state_or_places_something_is_refused(bhemu, tmp_path) -> None:
    state = tmp_path / "state.npz"
    result = bhemu("run", state)
    assert result.exit_code == 2 and "no such file" in result.stderr
    state.write_text("text")
    result = bhemu("step", state)
    assert result.exit_code == 2 and "not a saved state" in result.stderr
    np.savez(state, other=np.zeros(3))
    result = bhemu("why", state)
    assert result.exit_code == 2 and "not a saved state: no array meta\n" in result.stderr
    assert bhemu("run", ELFS / "hang_cycle", "--save", state).exit_code == 3
    for flag, value in (("--set", "0x10=u32:1"), ("--core", f"brisc={ELFS}/add1/brisc.elf")):
        result = bhemu("run", state, flag, value)
        assert result.exit_code == 2
        assert f"{flag}: nothing is placed on a saved state" in result.stderr


def test_save_and_load_in_a_session(bhemu, tmp_path) -> None:
    state = tmp_path / "here.npz"
    script = f"break main trisc1; continue; save {state}; step 3; load {state}; step; continue"
    result = bhemu("step", ELFS / "add1", "-x", script)
    assert result.exit_code == 0
    assert f"saved: {state}, clock 1126" in result.stdout
    assert result.stdout.count("pc 0x00014040") == 2, "stepped there twice"
    assert "stopped: until, clock 2688" in result.stdout, "trisc1 is parked then"
    result = bhemu("step", ELFS / "add1", "-x", "save /nowhere/x.npz")
    assert result.exit_code == 2 and "cannot be written" in result.stderr


def test_a_state_that_cannot_be_written_loses_nothing_of_the_run(
    bhemu, tmp_path, monkeypatch
) -> None:
    def full(state: Snapshot, path: Path) -> None:
        raise InputError(f"{path} cannot be written: No space left on device")

    monkeypatch.setattr(Snapshot, "save", full)
    done = bhemu("run", ELFS / "add1", "--save", tmp_path / "state.npz")
    assert done.exit_code == 2
    assert done.stdout.startswith("y  32x32 bf16  equal (1024 of 1024)")
    assert "cannot be written" in done.stderr
    done = bhemu("run", ELFS / "add1", "--save", tmp_path / "state")
    assert done.exit_code == 2
    assert done.stderr == (
        f"error: --save {tmp_path}/state: no .npz, which commands read\n"
        f"  hint: --save {tmp_path}/state.npz\n"
    )
    done = bhemu("run", ELFS / "hang_cycle", "--save", tmp_path / "state.npz")
    assert done.exit_code == 3
    assert "No space left on device" in done.stderr
    assert "deadlock" in done.stderr.lower()
