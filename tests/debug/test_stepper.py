"""The stepper: exact steps, breakpoints, calls, Tensix words, dumps."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import bhemu as package
from bhemu.debug.places import Sources
from bhemu.debug.stepper import COMMANDS, Stepper
from bhemu.errors import InputError, NoProgress
from bhemu.launch import launch
from bhemu.program.schema import CoreSpec, Program, RunSpec, load_program
from bhemu.riscv.assembly import (
    A0,
    A1,
    PARK,
    PUSH,
    RA,
    SP,
    ZERO,
    addi,
    bne,
    code,
    jal,
    jalr,
    li,
    lw,
    sw,
    tt,
)
from bhemu.tensix.insn import assemble

START = 0x10000
ADD1 = Path(package.__file__).parent.parent / "elfs" / "add1"
SYNC = 0xFFE80004  # TTSync: a load waits until the thread has nothing left to do


class Bench:
    """A stepper over an image and the lines it printed."""

    def __init__(self, program: Program, **options: int) -> None:
        self.tile = launch(program, **options)
        self.lines: list[str] = []
        self.stepper = Stepper(self.tile, program, Sources(program), self.lines.append)

    def __call__(self, script: str) -> list[str]:
        """The lines of the commands in `script`."""
        self.lines.clear()
        for line in script.split(";"):
            self.stepper.execute(line)
        return list(self.lines)

    @property
    def pc(self) -> int:
        return self.stepper.core.pc


@pytest.fixture
def image(tmp_path: Path) -> Callable[..., Program]:
    def make(*words: int | list[int], cores: tuple[str, ...] = ("trisc0",)) -> Program:
        path = tmp_path / "l1.bin"
        path.write_bytes(bytes(START) + code(*words))
        specs = {name: CoreSpec(name, pc=START) for name in cores}
        return Program("p", "image", specs, image=path, run=RunSpec(limit=100_000))

    return make


def test_a_step_is_one_instruction_and_shows_what_the_push_became(image) -> None:
    push = [li(A0, PUSH), li(A1, assemble("SEMINIT", sem_sel=2, max_value=2)), sw(A1, A0)]
    bench = Bench(image(tt("SEMINIT", sem_sel=1, max_value=1), *push, PARK))
    assert bench("step") == [
        "  -> T0 SEMINIT sem_sel=0x1 max_value=0x1",
        "trisc0  pc 0x00010004",
        "  00010004:  ffe40537  lui a0,0xffe40",
    ]
    lines = bench("step 5")
    pushed = [line for line in lines if "->" in line]
    assert len(pushed) == 1
    assert pushed[0].startswith("  -> T0 SEMINIT")
    assert "sem_sel=0x2" in pushed[0]
    assert bench.tile.core["trisc0"].retired == 6
    assert bench.pc == START + 24


def test_brisc_pushes_are_shown_with_the_thread_they_go_to(image) -> None:
    push = [li(A0, PUSH + 0x20000), li(A1, assemble("SEMINIT", sem_sel=2)), sw(A1, A0)]
    bench = Bench(image(*push, PARK, cores=("brisc",)))
    assert [line for line in bench("step 6") if "->" in line] == ["  -> T2 SEMINIT sem_sel=0x2"]


def test_breakpoints_stop_before_the_instruction_and_are_left_by_continue(image) -> None:
    loop = [addi(A0, A0, 1), addi(A1, ZERO, 3), bne(A0, A1, -8), PARK]
    bench = Bench(image(*loop))
    bench(f"break {START:#x}")
    for turn in range(3):
        lines = bench("continue")
        assert lines[0] == f"breakpoint 1 hit: trisc0 0x{START:08X} 0x10000"
        assert int(bench.tile.core["trisc0"].regs[A0]) == turn
    assert bench("continue")[0].startswith("stopped: idle")
    bench("delete 1")
    assert bench.tile.breakpoints == ()


def test_steps_and_breakpoints_change_nothing(image) -> None:
    words = [li(A0, 0), addi(A0, A0, 1), tt("ADDDMAREG", op_b_is_const=1, result_reg_index=1)]
    words += [li(A1, SYNC), lw(A1, A1), addi(A1, ZERO, 50), bne(A0, A1, -28), PARK]
    program = image(*words, cores=("trisc0", "trisc1"))
    plain = launch(program)
    plain.run()
    bench = Bench(program)
    bench(f"break {START + 8:#x} trisc1; step 7; continue; next 3; tstep 2; step 3 trisc1")
    bench("continue; delete; continue")
    s, want = bench.tile.state, plain.state
    for name in ("l1", "gpr", "retired", "executed", "clock", "round", "core_state", "pc"):
        assert np.array_equal(getattr(s, name), getattr(want, name)), name


def test_stepping_onto_a_breakpoint_does_not_stop_there_twice(image) -> None:
    bench = Bench(image(*[addi(A0, A0, 1)] * 6, PARK))
    bench(f"break {START + 4:#x}; step")
    assert bench("step")[0] == f"trisc0  pc 0x{START + 8:08X}"
    bench(f"break {START + 12:#x}; continue")
    assert bench.pc == START + 12


def test_next_steps_over_calls_and_recursion(image) -> None:
    """f(n) calls itself until n is 0; the return address goes on a stack."""
    f = START + 0x20
    main = [li(SP, 0x8000), addi(A0, ZERO, 3), jal(RA, 0x20 - 12), addi(A1, ZERO, 9), PARK]
    body = [
        addi(SP, SP, -4),
        sw(RA, SP),
        addi(A0, A0, -1),
        bne(A0, ZERO, 8),
        jal(ZERO, 8),
        jal(RA, -20),
        lw(RA, SP),
        addi(SP, SP, 4),
        jalr(ZERO, RA),
    ]
    program = image(*main, *[0x13] * 2, *body)
    bench = Bench(program)
    bench("next 4")
    assert (bench.pc, int(bench.tile.core["trisc0"].regs[A0])) == (START + 16, 0)
    bench = Bench(program)
    bench(f"step 3; step; until {f + 0x14:#x}")
    assert bench.pc == f + 0x14
    bench("next")
    assert bench.pc == f + 0x18, "back in the same frame"
    assert int(bench.tile.core["trisc0"].regs[SP]) == 0x8000 - 4


def test_a_breakpoint_on_an_access_that_waits_is_passed_once(image) -> None:
    """T0's load from TTSync waits for the semaphore that trisc1 posts much later."""
    wait = tt("SEMWAIT", wait_sem_cond=1, sem_sel=2, stall_res=0x1FF)
    program = image(wait, tt("SEMGET", sem_sel=0), li(A0, SYNC), lw(A1, A0), PARK)
    bench = Bench(program)
    bench(f"break {START + 16:#x}; continue")
    assert bench.pc == START + 16
    with pytest.raises(NoProgress):
        bench("continue")


def test_tstep_counts_words_and_tnext_goes_over_a_mop(image) -> None:
    mop_cfg = 0xFFB80000
    sempost, nop = assemble("SEMINIT", sem_sel=1), assemble("NOP")
    words = [li(A0, mop_cfg)]
    for i, value in enumerate((1, 3, nop, nop, nop, sempost, nop, sempost, sempost)):
        words += [li(A1, value), sw(A1, A0, 4 * i)]
    words += [tt("SEMINIT", sem_sel=4), tt("MOP", mop_type=1), tt("SEMINIT", sem_sel=8), PARK]
    bench = Bench(image(*words))
    lines = bench("tstep")
    assert lines[0].startswith("  T0 SEMINIT sem_sel=0x4")
    assert bench.tile.state.executed[0] == 1
    lines = bench("tnext")
    assert int(bench.tile.state.executed[0]) == len([x for x in lines if x.startswith("  T0 ")]) + 1
    assert all("(MOP)" in line for line in lines if line.startswith("  T0 "))
    assert bench("tnext")[0].startswith("  T0 SEMINIT sem_sel=0x8")


def test_a_core_that_parks_ends_its_steps(image) -> None:
    bench = Bench(image(addi(A0, A0, 1), PARK))
    lines = bench("step 100")
    assert lines[0] == "trisc0 is parked"
    assert bench.tile.core["trisc0"].retired == 1
    with pytest.raises(InputError, match="trisc0 is parked: it executes nothing more"):
        bench("step")


def test_the_other_core_is_selected_when_its_breakpoint_is_hit(image) -> None:
    bench = Bench(image(*[addi(A0, A0, 1)] * 4, PARK, cores=("trisc0", "trisc2")))
    assert bench.stepper.prompt == "(trisc0) "
    bench(f"break {START + 8:#x} trisc2; continue")
    assert (bench.stepper.prompt, bench.pc) == ("(trisc2) ", START + 8)
    assert bench("core brisc") == ["brisc  [reset]"]
    bench("core trisc0")
    assert bench.stepper.prompt == "(trisc0) "


def test_at_most_sixteen_breakpoints_per_core(image) -> None:
    bench = Bench(image(*[addi(A0, A0, 1)] * 20, PARK))
    for i in range(16):
        bench(f"break {START + 4 * i:#x}")
    with pytest.raises(InputError, match="room for 16"):
        bench(f"break {START + 64:#x}")
    with pytest.raises(InputError, match="is set there already"):
        bench(f"break {START:#x}")
    with pytest.raises(InputError, match="no breakpoint 99"):
        bench("delete 99")
    bench("continue")
    assert bench.pc == START


def test_registers_changed_since_the_last_dump_are_marked(image) -> None:
    bench = Bench(image(addi(A0, A0, 5), addi(A1, A1, 6), PARK))
    assert "a0 00000005*" in "".join(bench("step; regs"))
    text = "".join(bench("step; regs"))
    assert "a0 00000005 " in text
    assert "a1 00000006*" in text


def test_dumps_show_the_state(image) -> None:
    bench = Bench(image(PARK))
    s = bench.tile.state
    s.cfg[1, 1] = 5 << 17
    s.thread_cfg[2, 1] = 0x40
    s.sem[3], s.sem_max[3], s.mutex[2] = 4, 7, 2
    s.gpr[1, 9] = 0xDEADBEEF
    s.lreg[2, 31] = 0x40490FDB
    s.src[1, 0, 5, 3] = 0x40000000
    s.src_valid[1, 0] = 1
    s.dst[6, 2] = 0x407F  # 1.5 as stored: sign, mantissa, exponent
    text = "\n".join(bench("cfg ALU_FORMAT_SPEC_REG0_SrcA; cfg dest_target_reg_cfg_math_offset"))
    assert "ALU_FORMAT_SPEC_REG0_SrcA  bank 0 0x0  bank 1 0x5  (word 1, shift 17)" in text
    assert "T0 0x0  T1 0x0  T2 0x40  (word 1, shift 0)" in text
    words = bench("cfg 1")
    assert "  ALU_FORMAT_SPEC_REG0_SrcA  bank 0 0x0  bank 1 0x5  (word 1, shift 17)" in words
    assert words[-1] == "  word 1  bank 0 0x0  bank 1 0xa0000"
    assert bench("cfg")[1] == "  ALU_FORMAT_SPEC_REG0_SrcA  bank 0 0x0  bank 1 0x5"
    assert "sem3 4/7" in bench("sem")[0]
    assert bench("sem")[-1] == "mutexes: mutex 2: T1"
    assert "deadbeef" in bench("gpr 1")[2] and len(bench("gpr 1")) == 9
    assert "3.1416" in bench("lreg 2")[-1] and "40490fdb" in bench("lreg 2")[4]
    assert "SrcB bank 0  belongs to the matrix unit" in bench("src b 5")[3]
    assert bench("src b 5")[7].split()[:8] == ["bank", "0", "row", "5", "0", "0", "0", "2"]
    assert bench("src")[-2:] == ["srca: all rows are 0", "srcb bank 0: rows that are not 0: 5"]
    assert bench("dst")[-1] == "dst bf16: rows that are not 0: 6"
    assert bench("dst 6 bf16")[1].split()[5] == "1.5"
    assert len(bench("rwc")) == 4
    assert len(bench("adc")) == 19


def test_memory_and_code_are_shown(image) -> None:
    bench = Bench(image(addi(A0, ZERO, 1), sw(A0, ZERO, 0x100), PARK))
    assert bench("mem 0x10000 2") == ["  00010000:  00100513  10a02023"]
    assert bench("mem $pc 1")[0].split()[0] == "00010000:"
    bench.tile.core["trisc0"].write32(0xFFB00010, 0x1234)
    assert bench("mem 0xFFB00010 1") == ["  ffb00010:  00001234"]
    assert bench("dis pc 2")[0].startswith("=> 00010000:  00100513  li a0,1")


@pytest.fixture(scope="module")
def add1() -> Bench:
    return Bench(load_program(ADD1))


def test_symbols_lines_and_source_of_real_firmware(add1) -> None:
    assert add1("break main")[0].endswith("0x0000403C main")
    lines = add1("continue")
    assert lines[1] == "brisc  pc 0x0000403C  main  brisc.c:12 check_args, inlined at brisc.c:42"
    assert "uint32_t bytes" in lines[2]
    assert add1("bt")[0] == "#0  0x0000403C check_args (brisc.c:12), inlined"
    assert add1("bt")[1] == "#1  0x0000403C main (brisc.c:42)"
    assert "_start" in add1("bt")[2]
    assert "brisc.c" in "".join(add1("dis main 4"))
    point = add1("break brisc.c:13")[0]
    assert point.endswith(" brisc.c:13")
    add1("continue")
    assert add1.stepper.core.locate(add1.pc)[1:] == ("brisc.c", 13)
    with pytest.raises(InputError, match=r"brisc\.c:9999 has no code on brisc"):
        add1("break brisc.c:9999")
    with pytest.raises(InputError, match=r"brisc has no code from nothing\.c"):
        add1("break nothing.c:1")
    assert add1("where")[1] == "trisc0  reset"
    assert any(line.startswith("ends when word 0x100 is 0xd0e0") for line in add1("info"))


def test_finish_needs_a_function(image) -> None:
    bench = Bench(image(PARK))
    with pytest.raises(InputError, match="lies in no known function"):
        bench("finish")


def test_a_breakpoint_on_a_word_with_a_condition_and_commands(image) -> None:
    bench = Bench(
        image(*(tt("SETDMAREG", reg_index_16b=2, payload_sig_sel=i) for i in range(5)), PARK)
    )
    shown = bench("break SETDMAREG reg_index_16b=2 on T0 if gpr:0:1 >= 2 && !(gpr:0:1 == 3)")
    assert shown == ["breakpoint 1 set: T0 SETDMAREG reg_index_16b=2"]
    bench("commands 1; print gpr:0:1; print -1 + 2 * 3; continue; end")
    assert bench("info breakpoints")[1:] == [
        "  only if gpr:0:1 >= 2 && !(gpr:0:1 == 3)",
        "  print gpr:0:1",
        "  print -1 + 2 * 3",
        "  continue",
    ]
    shown = bench("continue")
    assert shown[0] == "breakpoint 1 hit: T0 SETDMAREG reg_index_16b=2"
    assert next(line for line in shown if " = " in line and ":" in line) == "gpr:0:1 = 2 (0x2)"
    assert "-1+2*3 = 5 (0x5)" in shown
    assert any(line.startswith("stopped: idle") for line in shown)


def test_ignored_stops_and_read_watchpoints(image) -> None:
    words = [*li(A1, 0x20000), *(lw(A0, A1, 0) for _ in range(3)), PARK]
    bench = Bench(image(*words))
    assert bench("rwatch 0x20000") == ["watchpoint 1 set: 0x20000 (reads)"]
    bench("ignore 1 1")
    shown = bench("continue")
    assert shown[:2] == ["watchpoint 1 hit: 0x20000 (reads)", shown[1]]
    assert shown[1].startswith("  0x20000: read, 0x0, clock")
    assert bench.pc == START + 4 * (words.index(lw(A0, A1, 0)) + 2)
    assert "  hit 2 times" in bench("info breakpoints")
    bench("condition 1 $a0 == 5; continue")
    assert bench.tile.core["trisc0"].state == "parked"
    for line, sentence in (
        ("ignore 9 1", "no breakpoint 9"),
        ("break main if", "missing after if"),
        ("break PACR last", "FIELD=VALUE"),
        ("watch r", "usage: watch"),
        ("print 1 / 0", "division by 0"),
    ):
        with pytest.raises(InputError, match=sentence):
            bench(line)


def test_help_has_a_line_for_every_command(image) -> None:
    bench = Bench(image(PARK))
    lines = bench("help")
    assert len(lines) == len(COMMANDS)
    for name, line in zip(COMMANDS, lines, strict=True):
        assert line.startswith(f"  {name}")
        assert ": " in line


def test_going_back_at_the_prompt(image) -> None:
    place = 0x20000
    loop = [*li(A1, place), addi(A0, A0, 1), sw(A0, A1), jal(ZERO, -8)]
    bench = Bench(image(*loop))
    bench.tile.keep_history()
    assert bench(f"watch {place:#x}") == [f"watchpoint 1 set: {place:#x}"]
    bench("continue; continue")
    lines = bench("continue")
    assert lines[1] == "  0x20000: 0x2 -> 0x3, clock 10"
    assert lines[2].startswith(f"  by tile (1,2) trisc0 pc 0x{START + 12:08X}, word")
    assert "0x1 -> 0x2" in bench("reverse-continue")[2]
    assert bench("reverse-step 2")[0] == "clock 5"
    assert bench.pc == START + 8
    assert bench("goto 9")[0] == "clock 9"
    bench("delete 1")
    assert bench("reverse-continue")[0] == "the history begins here"
    with pytest.raises(InputError, match="lies before the history"):
        bench("reverse-step")


def test_tab_completes_commands_and_what_their_arguments_may_be(add1) -> None:
    complete = add1.stepper.completions
    assert complete("st", "st") == ["step"]
    assert "runtime_args" in complete("print runti", "runti")
    assert "check_args" in complete("break check", "check")
    assert "brisc.c:" in complete("break bris", "bris")
    assert complete("break main tri", "tri") == ["trisc0", "trisc1", "trisc2"]
    assert complete("core n", "n") == ["ncrisc"]
    assert complete("p $a", "$a") == [f"$a{i}" for i in range(8)]
    assert complete("x/4x runtime", "runtime") == ["runtime_args"]
    assert "ALU_FORMAT_SPEC_REG0_SrcA" in complete("cfg reg0_srca", "reg0_srca")
    assert "stream" in complete("dump str", "str")
    assert complete("nonsense x", "x") == []


def test_tab_completes_words_their_fields_and_saved_states(add1, tmp_path, monkeypatch) -> None:
    complete = add1.stepper.completions
    assert {"PACR", "PACR_SETREG"} <= {*complete("break PACR", "PACR")}
    assert complete("break PACR las", "las") == ["last="]
    assert "on" in complete("break PACR last=1 o", "o")
    assert complete("tbreak PACR on ", "") == ["T0", "T1", "T2"]
    assert "if" in complete("break main i", "i")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.npz").touch()
    (tmp_path / "one.txt").touch()
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "two.npz").touch()
    assert complete("load ", "") == ["more/", "one.npz"]
    assert complete("load more/", "more/") == ["more/two.npz"]
    assert complete("save more/t", "more/t") == ["more/two.npz"]


def test_behind_a_breakpoint_on_a_word_tstep_goes_on_with_its_thread() -> None:
    bench = Bench(load_program(Path(package.__file__).parent.parent / "elfs" / "add1"))
    bench("break PACR on T2; continue")
    assert bench.stepper.core.name == "trisc2"
    assert bench("tstep")[0].startswith("  T2 PACR")


@pytest.mark.parametrize(
    ("line", "usage"),
    [
        ("until", r"until ADDRESS\|SYMBOL\|FILE:LINE"),
        ("mem", r"mem ADDRESS \[N\] \[CORE\]"),
        ("dst 0 bf16 1", r"dst \[ROW\|ROW-ROW \[FORMAT\]\]"),
        ("ignore 1", "ignore N COUNT"),
        ("finish now", "finish"),
    ],
)
def test_a_wrong_number_of_arguments_shows_the_usage(image, line: str, usage: str) -> None:
    with pytest.raises(InputError, match=f"^usage: {usage}$"):
        Bench(image(PARK))(line)
