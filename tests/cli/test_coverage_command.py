"""`bhemu coverage`: lines, branches and functions of kernels; instructions by mode."""

import json
import re
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from bhemu import Program
from bhemu.debug.line_coverage import watching
from bhemu.memmap import CORE_NAMES
from bhemu.riscv import core_loop

ROOT = Path(__file__).parents[2]
ELFS = ROOT / "elfs"
Record = dict[str, list[str]]


def records(path: Path) -> dict[str, Record]:
    """By source the values of each key of an LCOV tracefile."""
    found: dict[str, Record] = {}
    own: Record = defaultdict(list)
    for line in path.read_text().splitlines():
        key, _, value = line.partition(":")
        if key == "end_of_record":
            found[own["SF"][0]] = own
            own = defaultdict(list)
        else:
            own[key].append(value)
    assert not own
    return found


def lines(record: Record) -> dict[int, int]:
    return {int(line): int(count) for line, count in (one.split(",") for one in record["DA"])}


def of_file(found: dict[str, Record], name: str) -> Record:
    (record,) = [own for source, own in found.items() if source.endswith(name)]
    return record


def test_counts_are_those_of_the_commit_log(tmp_path: Path) -> None:
    """Instruction by instruction, as another way of running it writes them."""
    log = tmp_path / "log"
    command = [sys.executable, "-m", "bhemu", "run", str(ELFS / "add1"), "--log-commits", str(log)]
    subprocess.run([*command, "-q"], check=True, cwd=ROOT)
    logged: Counter[tuple[int, int]] = Counter()
    for core, pc in re.findall(r"^core +(\d+): 3 0x([0-9a-f]+)", log.read_text(), re.MULTILINE):
        logged[int(core), int(pc, 16)] += 1
    with watching() as tiles:
        tile = Program.load(ELFS / "add1").launch()
        tile.run()
    core_loop.settle(tiles[0].record, tile.state)
    count = tiles[0].record.count[:, :, 0]
    counted = {(c, 4 * int(i)): int(count[c, i]) for c in range(5) for i in count[c].nonzero()[0]}
    assert counted == logged and sum(counted.values()) == int(tile.state.retired.sum())


def test_a_tracefile_of_lines_branches_and_functions(bhemu, tmp_path: Path) -> None:
    path = tmp_path / "add1.info"
    done = bhemu("coverage", ELFS / "add1", "-o", path)
    assert done.exit_code == 0 and done.stdout.splitlines()[-1].endswith(
        "  all but bhemu's C library"
    )
    rows = [line.split()[:3:2] for line in done.stdout.splitlines() if line.endswith(".c")]
    mine = [sum(int(row[n]) for row in rows) for n in range(2)]
    assert done.stdout.splitlines()[-1].split()[:3:2] == [str(n) for n in mine]
    shown = json.loads(bhemu("coverage", ELFS / "add1", "--json").stdout)
    assert [shown["own"]["lines_hit"], shown["own"]["lines"]] == mine
    assert shown["own"]["lines"] + shown["library"]["lines"] == shown["lines"]
    found = records(path)
    for own in found.values():
        counts = lines(own)
        assert own["TN"] == [""] and len(counts) == len(own["DA"])
        assert own["LF"] == [str(len(counts))]
        assert own["LH"] == [str(sum(n > 0 for n in counts.values()))]
        ways = [one.split(",") for one in own["BRDA"]]
        assert own["BRF"] == [str(len(ways))]
        assert own["BRH"] == [str(sum(way[3] not in ("0", "-") for way in ways))]
        names = {one.split(",")[1]: int(one.split(",")[0]) for one in own["FN"]}
        assert own["FNF"] == [str(len(names))] == [str(len(own["FNDA"]))]
        assert set(names.values()) <= counts.keys()  # genhtml wants a line of each function
    math = of_file(found, "firmware/add1/math.c")
    text = (ROOT / "firmware" / "add1" / "math.c").read_text().splitlines()
    counts = lines(math)
    (main,) = [number for number, line in enumerate(text, 1) if line.startswith("int main")]
    assert counts[main] == 1 and "1,main" in math["FNDA"]
    datums = next(n for n, line in enumerate(text, 1) if "TTI_SFPLOAD(" in line)
    assert counts[datums] == 32  # a tile of 1024 datums, 32 at a time


def test_both_ways_of_a_branch_are_counted(bhemu, tmp_path: Path) -> None:
    """The loop over the faces of a tile of add1 goes back three times and ends once."""
    path = tmp_path / "add1.info"
    bhemu("coverage", ELFS / "add1", "-o", path)
    ways = [one.split(",") for one in of_file(records(path), "add1/math.c")["BRDA"]]
    pairs = defaultdict(list)
    for line, block, _, times in ways:
        pairs[line, block].append(times)
    assert ["3", "1"] in pairs.values()


def test_programs_and_tiles_add_up(bhemu, tmp_path: Path) -> None:
    one, two = tmp_path / "one.info", tmp_path / "two.info"
    bhemu("coverage", ELFS / "add1", "-o", one)
    bhemu("coverage", ELFS / "add1", ELFS / "add1", "-o", two)
    for source, own in records(one).items():
        twice = records(two)[source]
        assert lines(twice) == {line: 2 * n for line, n in lines(own).items()}
        assert twice["BRF"] == own["BRF"] and twice["BRH"] == own["BRH"]
    chip = tmp_path / "chip.info"
    bhemu("coverage", ELFS / "matmul_mcast", ELFS / "matmul", "-o", chip)
    found = records(chip)
    assert "4,main" in of_file(found, "matmul_mcast/math.c")["FNDA"]  # four tiles
    assert "1,main" in of_file(found, "firmware/matmul/math.c")["FNDA"]


def test_pages_of_sources(bhemu, tmp_path: Path) -> None:
    folder = tmp_path / "pages" / "html"
    assert bhemu("coverage", ELFS / "add1", "--html", folder, "-q").exit_code == 0
    index = (folder / "index.html").read_text()
    pages = re.findall(r'href="([^"]+)"', index)
    assert sorted([*pages, "index.html"]) == sorted(p.name for p in folder.iterdir())
    (math,) = [page for page in pages if page.startswith("math.c")]
    text = (folder / math).read_text()
    assert "int main(void) {" in text and "3 taken 1 not" in text and "&lt;" not in index


def test_json(bhemu) -> None:
    found = json.loads(bhemu("coverage", ELFS / "add1", "--json").stdout)
    assert found["programs"] == [{"program": "add1", "stop": "until"}] and found["exit_code"] == 0
    per = found["sources"].values()
    for what in ("lines", "lines_hit", "branches", "branches_hit", "functions", "functions_hit"):
        assert found[what] == sum(one[what] for one in per) > 0
    assert all(one["lines"] - one["lines_hit"] == len(one["not_executed"]) for one in per)


def test_what_ran_before_an_error_is_counted(bhemu, tmp_path: Path) -> None:
    path = tmp_path / "hang.info"
    done = bhemu("coverage", ELFS / "hang_cycle", ELFS / "add1", "-o", path)
    assert done.exit_code == 3 and "DEADLOCK" in done.stderr
    assert of_file(records(path), "add1/math.c") and "cycle_math.c" in path.read_text()


def without_lines(folder: Path, *cores: str) -> Path:
    """A copy of add1 in which the ELFs of these cores have no line table."""
    shutil.copytree(ELFS / "add1", folder)
    for core in cores:
        path = folder / f"{core}.elf"
        path.write_bytes(path.read_bytes().replace(b".debug_line\0", b".xebug_line\0"))
    return folder


def test_an_elf_without_lines_is_named(bhemu, tmp_path: Path) -> None:
    some = bhemu("coverage", without_lines(tmp_path / "some", "trisc1"))
    assert some.exit_code == 0 and "unpack.c" in some.stdout and "math.c" not in some.stdout
    (warning,) = [line for line in some.stderr.splitlines() if "trisc1.elf" in line]
    assert "compile with -g" in warning
    none = bhemu("coverage", without_lines(tmp_path / "none", *CORE_NAMES[:4]))
    assert none.exit_code == 2 and "no source lines" in none.stderr and "-g" in none.stderr


def test_sources_that_are_not_there_are_told(bhemu, tmp_path: Path) -> None:
    shutil.copytree(ELFS / "add1", tmp_path / "add1")
    path, pages = tmp_path / "x.info", tmp_path / "html"
    done = bhemu("coverage", tmp_path / "add1", "-o", path, "--html", pages)
    if Path.cwd() == ROOT:  # from where the compiler's names lead to the sources
        assert done.exit_code == 0
    assert "firmware/add1/math.c" in path.read_text()


def test_the_engine_that_counts_is_told_once(bhemu) -> None:
    done = bhemu("coverage", ELFS / "add1", ELFS / "add1", "--engine", "unicorn")
    assert done.stderr.count("the compiled engine") == 1


def test_opcodes_of_programs_add_up(bhemu) -> None:
    found = json.loads(
        bhemu("coverage", "--opcodes", ELFS / "add1", ELFS / "add1", "--json").stdout
    )
    counts = {(row["mnemonic"], row["formats"]): row["count"] for row in found["rows"]}
    assert counts["PACR", "bf16 -> bf16 Dst16"] == 32 and found["ended"] == "until, until"
    chip = bhemu("coverage", "--opcodes", ELFS / "matmul_mcast")
    assert re.search(r"^MVMUL +\d+ ", chip.stdout, re.MULTILINE)
    assert re.search(r"^\d+ instructions in \d+ modes; the run ended: until$", chip.stderr, re.M)


@pytest.mark.parametrize("more", [("-o", "x"), ("--html", "x"), ("--engine", "compiled")])
def test_opcodes_go_alone(bhemu, more: tuple[str, str]) -> None:
    assert bhemu("coverage", "--opcodes", ELFS / "add1", *more).exit_code == 2


def test_the_python_of_the_page_writes_a_tracefile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (ROOT / "docs" / "kernel-coverage.md").read_text()
    (block,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(block.replace('"elfs/add1"', repr(str(ELFS / "add1"))), {})
    assert "1,main" in of_file(records(tmp_path / "add1.info"), "add1/math.c")["FNDA"]
