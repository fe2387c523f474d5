"""Every way a run can end: its own exit code, its own rule, one line that says so, and a place."""

import pytest

from bhemu.riscv.assembly import A0, A1, EBREAK, PARK, ZERO, addi, beq, jal, lui, lw, sw, tt

START = 0x10000
POLL = [lui(A0, 0x8000), lw(A1, A0), beq(A1, ZERO, -4)]
WORK = [lui(A0, 0x8000), addi(A1, A1, 1), sw(A1, A0), jal(ZERO, -8)]  # its count is in L1
SEMWAIT = tt("SEMWAIT", wait_sem_cond=1, sem_sel=1, stall_res=0x1FF)

# name: words, flags, exit code, class of the error, rule, text it begins with, pc of the place
OUTCOMES = {
    "deadlock": ([SEMWAIT, tt("NOP"), PARK], (), 3, "NoProgress", "DEADLOCK", "deadlock: ", None),
    "livelock": (POLL, (), 3, "NoProgress", "LIVELOCK", "livelock: trisc0 can never", None),
    "parked": (
        [addi(A0, ZERO, 1), PARK],
        ("--until", "0x100=1"),
        *(3, "NoProgress", "IDLE", "everything is idle or parked before word 0x100", START + 4),
    ),
    "assert": ([addi(A0, ZERO, 1), EBREAK], (), 6, "Assert", "EBREAK", "trisc0 reached", START + 4),
    "limit": (WORK, ("--limit", 5002), 7, "Limit", "LIMIT", "the clock limit of 5002", START + 4),
    "time-out": (WORK, ("--timeout", 0.2), 7, "Limit", "TIMEOUT", "the time-out of 0.2 s", None),
}


@pytest.mark.parametrize("name", OUTCOMES)
def test_an_outcome_has_its_code_rule_line_and_place(name, write, bhemu, report) -> None:
    words, flags, exit_code, kind, rule, text, pc = OUTCOMES[name]
    path = write(*words)
    result = bhemu("run", path, *flags)
    assert result.exit_code == exit_code
    first, *more = result.stderr.splitlines()
    assert first.startswith(f"error: [{rule}] {text}")
    assert any("trisc0 " in line and "pc 0x" in line for line in more)
    code, error = report("run", path, *flags)
    assert (code, error["exit_code"]) == (exit_code, exit_code)
    assert (error["error"], error["rule"]) == (kind, rule)
    if pc is not None:
        assert (error["where"]["core"], error["where"]["pc"]) == ("trisc0", pc)
    if rule in ("DEADLOCK", "LIVELOCK"):
        assert error["graph"]["waiters"][0]["where"]["core"] == "trisc0"


def test_no_two_outcomes_look_alike() -> None:
    assert len({o[4] for o in OUTCOMES.values()}) == len(OUTCOMES)
    assert len({o[5] for o in OUTCOMES.values()}) == len(OUTCOMES)


def test_a_run_that_parks_without_an_end_condition_is_done(write, bhemu) -> None:
    result = bhemu("run", write(addi(A0, ZERO, 1), PARK))
    assert result.exit_code == 0
    assert "small: everything is idle or parked, clock 1" in result.stdout


def test_livelock_is_looked_for_after_as_many_rounds_as_asked(write, bhemu, report) -> None:
    path = write(*POLL, run="livelock = 30")
    code, error = report("run", path)
    assert (code, error["rule"], error["clock"]) == (3, "LIVELOCK", 30 * 1000)
    code, error = report("run", path, "--livelock", 50, "--quantum", 100)
    assert (code, error["rule"], error["clock"]) == (3, "LIVELOCK", 50 * 100)
    result = bhemu("run", path, "--livelock", 0, "--limit", 10_000_000)
    assert (result.exit_code, "[LIMIT]" in result.stderr) == (7, True)


@pytest.mark.parametrize(("name", "code"), [("deadlock", 3), ("livelock", 3), ("assert", 6)])
def test_a_script_of_steps_ends_with_the_same_code(name, code, write, bhemu) -> None:
    result = bhemu("step", write(*OUTCOMES[name][0]), "-x", "continue")
    assert result.exit_code == code
    assert f"[{OUTCOMES[name][4]}]" in result.stderr
