"""`bhemu new --kernel` and `bhemu build`: a kernel from its sources to an equal answer."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from elftools.elf.elffile import ELFFile

from bhemu import kernel
from bhemu.cli import main

ROOT = Path(__file__).parents[2]
SOURCES = ("reader", "unpack", "math", "pack", "writer")
GCC = shutil.which("riscv64-unknown-elf-gcc")

needs_zig = pytest.mark.skipif(kernel.zig() is None, reason="ziglang is not installed")
Call = Callable[..., Result]


@pytest.fixture
def bhemu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """bhemu(arguments...) in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def call(*args: object) -> Result:
        result = CliRunner().invoke(main, [str(arg) for arg in args])
        assert "Traceback" not in result.output
        return result

    return call


@pytest.fixture
def relu(bhemu: Call) -> Path:
    """A new kernel, not yet built."""
    assert bhemu("new", "relu", "--kernel").exit_code == 0
    return Path("relu")


def states(result: Result) -> dict[str, str]:
    """What became of each ELF, by its name."""
    lines = [line.split() for line in result.stdout.splitlines()]
    return {Path(line[0]).stem: line[1] for line in lines if line[0].endswith(".elf")}


def edit(path: Path, before: str, after: str) -> None:
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))


@needs_zig
def test_a_new_kernel_builds_and_runs(bhemu: Call, relu: Path) -> None:
    missing = bhemu("run", relu)
    assert missing.exit_code == 2
    assert "hint: bhemu build relu" in missing.stderr
    built = bhemu("build", relu)
    assert (built.exit_code, built.stderr) == (0, "")
    assert states(built) == dict.fromkeys(SOURCES, "built")
    assert bhemu("check", relu).exit_code == 0
    done = bhemu("run", relu)
    assert done.exit_code == 0
    assert "equal (4096 of 4096)" in done.stdout
    x, y = np.load(relu / "in.npy"), np.load(relu / "expected.npy")
    assert np.array_equal(y, np.maximum(x, 0)) and (x < 0).any() and (x > 0).any()


@needs_zig
def test_the_lines_of_a_kernel_are_covered(bhemu: Call, relu: Path) -> None:
    """Four tiles of 1024 datums, 32 at a time: `bhemu coverage` counts what math.c says."""
    bhemu("build", relu)
    found = json.loads(bhemu("coverage", relu, "--json").stdout)
    assert found["programs"] == [{"program": "relu", "stop": "idle"}]
    own = {Path(name).name: one for name, one in found["sources"].items() if "relu" in name}
    assert own.keys() == {"math.c", "pack.c", "reader.c", "unpack.c", "writer.c"}
    assert all(one["not_executed"] == [] for one in own.values())
    assert bhemu("coverage", relu, "-q", "-o", "relu.info").exit_code == 0
    text = Path("relu.info").read_text()
    math = next(one for one in text.split("end_of_record") if "/math.c" in one)
    assert {"FNDA:128,operation", "FNDA:4,math_tile", "FNDA:1,main"} <= set(math.splitlines())
    ways = re.findall(r"^BRDA:(\d+),0,0,124\nBRDA:\1,0,1,4$", math, re.MULTILINE)
    assert len(ways) == 1  # the loop over the datums of a tile


@needs_zig
def test_nothing_is_wrong_with_the_new_kernel(bhemu: Call, relu: Path) -> None:
    edit(relu / "PROGRAM.toml", 'at = "1,2" ', 'at = "1-2,2-3" ')
    assert bhemu("build", relu).exit_code == 0
    found = bhemu("why", relu)
    assert found.exit_code == 0, found.output


@needs_zig
def test_its_own_test_passes_and_fails_with_the_kernel(bhemu: Call, relu: Path) -> None:
    assert bhemu("build", relu).exit_code == 0
    command = [sys.executable, "-m", "pytest", "--bhemu", "-p", "no:cacheprovider", "relu"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and "2 passed" in done.stdout, done.stdout
    edit(relu / "math.c", "TTI_SFPSETCC(0, X, 0, 0)", "TTI_SFPSETCC(0, X, 0, 4)")
    assert states(bhemu("build", relu))["math"] == "built"
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 1 and "2 failed" in done.stdout, done.stdout


@needs_zig
def test_only_what_has_changed_is_built(bhemu: Call, relu: Path) -> None:
    bhemu("build", relu)
    unchanged = dict.fromkeys(SOURCES, "unchanged")
    assert states(bhemu("build", relu)) == unchanged
    os.utime(relu / "math.c")
    assert states(bhemu("build", relu)) == unchanged, "the time alone"
    assert "newer" not in bhemu("dump", relu, "dst").stderr
    edit(relu / "math.c", "0x0000)", "0x3F80)")
    assert states(bhemu("build", relu)) == {**unchanged, "math": "built"}
    edit(relu / "args.h", "#define OUT 16u", "#define OUT 17u")
    assert states(bhemu("build", relu)) == dict.fromkeys(SOURCES, "built")
    (relu / "build" / "pack.elf").unlink()
    assert states(bhemu("build", relu)) == {**unchanged, "pack": "built"}
    (relu / "build" / "pack.elf").write_bytes(b"other")
    assert states(bhemu("build", relu)) == {**unchanged, "pack": "built"}
    edit(relu / "PROGRAM.toml", "flags = []", 'flags = ["-O1"]')
    assert states(bhemu("build", relu)) == dict.fromkeys(SOURCES, "built")


@needs_zig
def test_a_run_says_when_a_source_is_newer(bhemu: Call, relu: Path) -> None:
    bhemu("build", relu)
    assert "newer" not in bhemu("run", relu).stderr
    os.utime(relu / "math.c", (2**32, 2**32))
    told = "warning: relu/math.c is newer than relu/build/math.elf: bhemu build relu"
    assert told in bhemu("run", relu).stderr.splitlines()
    assert bhemu("run", relu, "-q").stderr == f"{told}\n"
    assert json.loads(bhemu("run", relu, "--json").stdout)["warnings"] == [told.split(": ", 1)[1]]
    os.utime(relu / "math.c")
    assert "newer" in bhemu("run", relu).stderr
    bhemu("build", relu)
    assert "newer" not in bhemu("run", relu).stderr


def test_firmware_is_not_made_from_the_kernel_of_its_name(bhemu: Call, tmp_path: Path) -> None:
    gather = shutil.copytree(ROOT / "elfs" / "all_gather", tmp_path / "gather")
    (gather / "brisc.elf").rename(gather / "kernel.elf")
    text = (gather / "PROGRAM.toml").read_text()
    (gather / "PROGRAM.toml").write_text(text.replace('elf = "brisc.elf"', 'elf = "kernel.elf"'))
    (gather / "brisc.c").write_text("")
    os.utime(gather / "brisc.c", (2**32, 2**32))
    assert "newer" not in bhemu("run", gather).stderr


@needs_zig
@pytest.mark.parametrize(("edited", "older", "command"), [
    ("args.h", "relu/build/math.elf", "bhemu build relu"),
    ("relu_data.py", "relu/in.npy", "python relu/relu_data.py"),
    ("relu_data.py", "relu/expected.npy", "python relu/relu_data.py"),
])  # fmt: skip
def test_so_it_does_of_headers_and_of_scripts_that_make_data(
    bhemu: Call, relu: Path, edited: str, older: str, command: str
) -> None:
    bhemu("build", relu)
    os.utime(relu / edited, (2**32, 2**32))
    told = f"warning: relu/{edited} is newer than {older}: {command}"
    assert told in bhemu("run", relu).stderr.splitlines()


@needs_zig
def test_a_mistake_is_shown_with_its_line(bhemu: Call, relu: Path) -> None:
    edit(relu / "math.c", "TTI_SFPLOADI(X, 0, 0x0000)", "TTI_SFPLOADI(X, 0, 0x10000)")
    line = (relu / "math.c").read_text().split("TTI_SFPLOADI")[0].count("\n") + 1
    for _ in range(2):  # what failed is tried again
        result = bhemu("build", relu)
        assert result.exit_code == 2
        assert f"relu/math.c:{line}:" in result.stderr
        assert "SFPLOADI imm16 takes 0..65535" in result.stderr
        assert result.stderr.splitlines()[-2] == "error: not built: math.c"
    os.chdir(relu)
    assert f"\nmath.c:{line}:" in "\n" + bhemu("build").stderr


@pytest.mark.skipif(GCC is None, reason="no RISC-V GCC is installed")
def test_a_gcc_does_as_well(bhemu: Call, relu: Path) -> None:
    result = bhemu("build", relu, "--compiler", GCC)
    assert result.exit_code == 0, result.output
    assert bhemu("run", relu).exit_code == 0


@needs_zig
def test_a_program_of_a_tile_is_linked_to_its_places(bhemu: Call, tmp_path: Path) -> None:
    """The kernels of elfs/add1, from outside of the checkout."""
    folder = tmp_path / "add1"
    shutil.copytree(ROOT / "firmware" / "add1", folder)
    program = (ROOT / "elfs/add1/PROGRAM.toml").read_text()
    for core, name in (("trisc0", "unpack"), ("trisc1", "math"), ("trisc2", "pack")):
        program = program.replace(f'"{core}.elf"', f'"{name}.elf"')
    (folder / "PROGRAM.toml").write_text(program + '\n[build]\ninclude = [".."]\n')
    for name in ("in.npy", "expected.npy"):
        shutil.copy(ROOT / "elfs" / "add1" / name, folder)
    assert bhemu("build", folder).exit_code == 0
    assert bhemu("run", folder).exit_code == 0
    for core, name in (("brisc", "brisc"), ("trisc1", "math")):
        with (
            open(folder / f"{name}.elf", "rb") as own,
            open(f"{ROOT}/elfs/add1/{core}.elf", "rb") as shipped,
        ):
            texts = [ELFFile(f).get_section_by_name(".text").data() for f in (own, shipped)]
        assert texts[0] == texts[1]


ELF = 'bhemu = 1\n[cores]\ntrisc1 = { elf = "k.elf" }\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ELF, "[cores]: trisc1: k.elf has no source"),
        (ELF + 'trisc2 = { elf = "k.elf" }\n', "trisc1 and trisc2 load the same k.elf"),
        ('bhemu = 1\nkind = "llk"\n', 'kind = "llk" is not built here'),
        (ELF.replace("k.elf", "../k.elf"), "leaves the folder"),
        (ELF + '[build]\ninclude = ["$NOWHERE_SET/x"]\n', "$NOWHERE_SET is not set"),
        (ELF + '[build]\ninclude = ["none"]\n', "include: no such folder: none"),
        (ELF + "[build]\nflags = [1]\n", "[build]: flags must be an array of strings"),
        (ELF + '[build]\nflag = ["-O3"]\n', "unknown key flag"),
        ("bhemu = 1\n", "no core has an ELF that is built from a source"),
    ],
)
def test_what_cannot_be_built_is_named(bhemu: Call, text: str, message: str) -> None:
    Path("PROGRAM.toml").write_text(text)
    if "no source" not in message:
        Path("k.c").write_text("int main(void) { return 0; }\n")
    result = bhemu("build")
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_folder_without_a_program(bhemu: Call) -> None:
    assert "hint: bhemu new NAME --kernel" in bhemu("build", "none").stderr


@needs_zig
def test_an_elf_without_a_source_is_kept(bhemu: Call, relu: Path) -> None:
    bhemu("build", relu)
    (relu / "math.c").unlink()
    assert states(bhemu("build", relu)) == {**dict.fromkeys(SOURCES, "unchanged"), "math": "kept"}


@needs_zig
def test_any_name_of_a_folder_will_do(bhemu: Call) -> None:
    said = bhemu("new", "3 d.x", "--kernel").stdout
    assert said.endswith("bhemu build '3 d.x' && bhemu run '3 d.x'\n")
    assert Path("3 d.x/_3_d_x_data.py").is_file()
    assert set(states(bhemu("build", "3 d.x")).values()) == {"built"}
    assert set(states(bhemu("build", "3 d.x")).values()) == {"unchanged"}
    assert bhemu("run", "3 d.x").exit_code == 0


def test_a_kernel_is_never_written_over(bhemu: Call, relu: Path) -> None:
    edit(relu / "math.c", "operation", "mine")
    assert "relu exists" in bhemu("new", relu, "--kernel").stderr
    assert "mine" in (relu / "math.c").read_text()


def test_without_a_compiler_the_way_to_one_is_told(
    bhemu: Call, relu: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel, "zig", lambda: None)
    monkeypatch.setenv("PATH", "")
    result = bhemu("build", relu)
    assert result.exit_code == 2
    assert "pip install 'bhemu[build]'" in result.stderr
    assert "no such program" in bhemu("build", relu, "--compiler", "none-gcc").stderr
