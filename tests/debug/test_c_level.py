"""C in the stepper: variables, frames, source, memory, breakpoints on functions and lines."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bhemu.debug.places import Sources
from bhemu.debug.stepper import Stepper
from bhemu.errors import InputError
from bhemu.launch import launch
from bhemu.program.schema import CoreSpec, Program

SOURCE = """\
typedef unsigned int word;
enum colour { RED, GREEN = 7 };
struct point { short x; short y; unsigned low : 5, high : 11; const char *name; };
struct point points[3] = {{1, -2, 3, 4, "one"}, {5, 6, 7, 1025, "two"}, {0, 0, 0, 0, 0}};
volatile word out;
volatile int sink;
float ratio = 1.5f;
static enum colour paint = GREEN;

static inline void store(word value) {
  out = value;

  sink = (int)value;
}

__attribute__((noinline)) word total(word count, struct point *first) {
  word sum = 0;
  word squares[4];
  for (word i = 0; i < count; i++) {
    squares[i & 3] = i * i;
    sum += first[i].x + squares[i & 3];
  }
  store(sum);
  return sum;
}

__attribute__((section(".init"), naked)) void _start(void) {
  __asm__("lui sp, 0x20\\n j main");
}

__attribute__((used)) int main(void) {
  word result = total(2, points);
  store(result + (word)paint);
  sink = *(volatile int *)&ratio;
  for (;;)
    ;
}
"""
COMPILE = "cc -target riscv32-freestanding-none -mcpu=generic_rv32+m+relax -c k.c -o k.o"


def line(text: str) -> int:
    return next(n for n, one in enumerate(SOURCE.splitlines(), start=1) if text in one)


@pytest.fixture(
    scope="module", params=[(0, 4), (0, 5), (1, 4), (1, 5)], ids=lambda p: f"O{p[0]}v{p[1]}"
)
def folder(request, tmp_path_factory) -> Path:
    level, version = request.param
    folder = tmp_path_factory.mktemp("c")
    (folder / "k.c").write_text(SOURCE)
    cache = {f"ZIG_{kind}_CACHE_DIR": str(folder / kind) for kind in ("GLOBAL", "LOCAL")}
    for arguments in (
        f"{COMPILE} -O{level} -gdwarf-{version} -fno-sanitize=all",
        "ld.lld -e _start --image-base=0x10000 k.o -o k.elf",
    ):
        command = [sys.executable, "-m", "ziglang", *arguments.split()]
        subprocess.run(command, cwd=folder, env=cache, check=True, capture_output=True)
    return folder


@pytest.fixture
def run(folder: Path) -> Callable[[str], list[str]]:
    """run(script): the lines of its commands; one session per test."""
    program = Program("p", "elf", {"trisc0": CoreSpec("trisc0", elf=folder / "k.elf")})
    lines: list[str] = []
    stepper = Stepper(launch(program), program, Sources(program, (folder,)), lines.append)

    def call(script: str) -> list[str]:
        lines.clear()
        for command in script.split(";"):
            stepper.execute(command)
        return list(lines)

    return call


def test_globals_of_every_type_are_printed_as_c_has_them(run) -> None:
    run("break main; continue")
    assert run("print ratio") == ["ratio = 1.5"]
    assert run("p paint") == ["paint = GREEN"]
    assert run("p points[0].x") == ["points[0].x = 1"]
    assert run("p points[0].y") == ["points[0].y = -2"]
    assert run("p points[1].high") == ["points[1].high = 1025 (0x401)"]
    assert run("p points[1].low") == ["points[1].low = 7"]
    assert run("p/x points[0].y") == ["points[0].y = 0xfffe"]
    assert run("p points[1].name")[0].endswith('"two"')
    whole = run("p points")[0]
    assert whole.startswith("points = {{x = 1, y = -2, low = 3, high = 4, name = 0x")
    assert run("p &points[1]")[0] != run("p &points[0]")[0]
    assert run("p *points[0].name") == ["*points[0].name = 111 'o'"]


def test_parameters_and_locals_of_a_function(run) -> None:
    run(f"break k.c:{line('for (word i')}; continue")
    assert run("p count")[0] == "count = 2"
    assert run("p first->y") == ["first->y = -2"]
    assert run("p first[1].x") == ["first[1].x = 5"]
    assert run("p (*first).x") == ["(*first).x = 1"]
    assert run("p $sp")[0].startswith("$sp = 1310")


def test_locals_change_as_the_function_goes_on(run, folder) -> None:
    """At the end of the loop the sum is 1 + 0 + 5 + 1."""
    run(f"break k.c:{line('store(sum)')}; continue")
    shown = run("info locals")
    names = [text.split(" = ")[0] for text in shown]
    assert {"sum", "squares", "count", "first"} <= set(names)
    assert next(text for text in shown if text.startswith("sum = ")) in (
        "sum = 7",
        "sum = <optimized out here>",
    )
    squares = next(text for text in shown if text.startswith("squares = "))
    assert squares.startswith("squares = {0, 1, ") or "optimized out" in squares


def test_a_name_that_is_not_there_is_an_error_with_the_nearest(run) -> None:
    run("break main; continue")
    with pytest.raises(InputError, match="pionts is not in scope here, in main") as caught:
        run("p pionts")
    assert "points" in caught.value.hint
    with pytest.raises(InputError, match="no member z") as caught:
        run("p points[0].z")
    assert "members: x, y" in caught.value.hint
    for wrong in ("p points[0", "p 3 +", "p ->x", "p", "p ratio.x"):
        with pytest.raises(InputError):
            run(wrong)


def test_a_breakpoint_on_an_inlined_function_stops_in_every_copy(run, folder) -> None:
    points = run("break store")
    stops = [run("continue")[-3] for _ in points if run("info breakpoints")]
    assert all(" set: trisc0 " in text for text in points)
    assert len(stops) == len(points)
    assert len(points) in (1, 2)  # -O0 has the function itself, -O1 two copies


def test_a_line_without_code_stands_for_the_next_one(run) -> None:
    empty = line("out = value") + 1
    shown = run(f"break k.c:{empty}")
    assert shown[0] == (
        f"note: k.c:{empty} has no code, the next line that has some is k.c:{empty + 1}"
    )
    assert f"k.c:{empty + 1}" in " ".join(run("continue"))
    with pytest.raises(InputError, match="has no code"):
        run("break k.c:9999")
    with pytest.raises(InputError, match=r"no code from other\.c"):
        run("break other.c:1")


def test_tbreak_stops_once(run) -> None:
    assert run("tbreak total")[0].startswith("temporary breakpoint 1 set: trisc0")
    assert run("continue")[0].startswith("temporary breakpoint 1 hit: trisc0")
    assert run("info breakpoints") == ["no breakpoints or watchpoints"]


def test_set_and_hit_are_told_apart(run) -> None:
    assert run("break main")[0].startswith("breakpoint 1 set: trisc0 0x")
    assert run("continue")[0].startswith("breakpoint 1 hit: trisc0 0x")
    assert run("info b")[0].startswith("breakpoint 1: trisc0 0x")


def test_list_shows_source_around_the_place_and_goes_on(run) -> None:
    run("break total; continue")
    first, then = run("list"), run("list")
    assert sum(text.startswith("=>") for text in first) == 1
    numbers = [int(text[2:].split()[0]) for text in first + then]
    assert numbers == list(range(numbers[0], numbers[0] + 20))
    assert "enum colour" in run("list 2")[1]
    assert any("inline void store" in text for text in run("list k.c:11"))
    assert any("int main" in text for text in run("list main"))


def test_up_and_down_select_the_caller_of_an_inlined_function(run) -> None:
    run("break store; continue")
    frames = run("bt")
    if "inlined" in frames[0]:
        assert "value = 7" in run("info locals")
    if "inlined" not in frames[0]:
        with pytest.raises(InputError, match="calls that were inlined end here"):
            run("up")
        return
    assert run("up")[0].startswith("#1  total (k.c:")
    assert "sum" in " ".join(run("info locals"))
    assert run("down")[0].startswith("#0  store (k.c:")
    with pytest.raises(InputError, match="innermost"):
        run("down")


def test_examine_in_gdbs_words(run) -> None:
    run("break main; continue")
    at = run("p &points")[0].split()[2]
    assert run(f"x/2h {at}") == [f"  {int(at):08x}:  0001  fffe"]
    assert run(f"x/2dh {at}") == [f"  {int(at):08x}:  1  -2"]
    assert run(f"x/4xb {at}") == [f"  {int(at):08x}:  01  00  fe  ff"]
    assert run(f"x/4x {at}")[0].startswith(f"  {int(at):08x}:  fffe0001  ")
    assert len(run("x/3i main")) == 3
    assert run("disas main 2")[0] == "main:"
    for wrong in ("x/99999x main", "x/4q main", "x/2x main main"):
        with pytest.raises(InputError):
            run(wrong)


def test_info_source_names_the_files(run) -> None:
    run("break main; continue")
    assert run("info source")[1] == "  code from k.c"
