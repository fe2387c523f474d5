"""bhemu report: one HTML file with findings, source, waits, timeline, tiles and outputs."""

import base64
import itertools
import json
import re
import shutil
import struct
import zlib
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
from browser import needs_browser, title_after
from click.testing import CliRunner

import bhemu as package
from bhemu.cli import main
from bhemu.launch import Launched
from bhemu.pictures import page as pictures
from bhemu.pictures.page import _named_first
from bhemu.pictures.recording import MOST, Recorder
from bhemu.program.schema import load_program
from bhemu.why.chain import links_behind
from bhemu.why.findings import Finding

ROOT = Path(package.__file__).parent.parent
EVIL = "</pre><img src=x onerror='document.title=1'><script>document.title=2</script>"


def report(tmp_path: Path, *args: str) -> tuple[int, str]:
    path = tmp_path / "report.html"
    result = CliRunner().invoke(main, ["report", "-q", *args, "-o", str(path)])
    assert result.exit_code in (0, 1), result.output
    return result.exit_code, path.read_text()


class Page(HTMLParser):
    """Text and elements of a page; it must be well formed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def count(self, tag: str, **wanted: str) -> int:
        return sum(
            name == tag and all(attrs.get(k) == v for k, v in wanted.items())
            for name, attrs in self.elements
        )


def test_a_wrong_output_with_its_culprit_its_source_and_where_it_differs(tmp_path) -> None:
    code, text = report(tmp_path, str(ROOT / "elfs/add1"), "--set", "runtime_args+4=f32:0.5")
    page = Page(text)
    said = "".join(page.texts)
    assert code == 1
    assert "[origin]" in said
    assert "773 of 1024 differ" in said
    assert "pack_tile(runtime_args.dst + i * TILE_BYTES, half);" in said
    assert "tile (0, 0): 773 of 1024 differ" in said
    assert page.count("svg", **{"class": "time"}) == 1
    (image,) = (attrs["src"] for tag, attrs in page.elements if tag == "img")
    assert image is not None
    points = pixels(base64.b64decode(image.partition("base64,")[2]))
    spec = load_program(ROOT / "elfs/add1").outputs[0]
    launched = Launched(load_program(ROOT / "elfs/add1"))
    launched.tile.write32("runtime_args+4", 0x3F000000)
    launched.run()
    bad = spec.differing(launched.machine.output(spec)[1])
    assert bad is not None
    assert ((points == pictures._DIFFERS).all(axis=2) == bad).all()


def pixels(data: bytes) -> np.ndarray:
    """The colours of a PNG file; every checksum is looked at."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, bodies = 8, {}
    while at < len(data):
        (size,) = struct.unpack(">I", data[at : at + 4])
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        assert struct.unpack(">I", data[at + 8 + size : at + 12 + size])[0] == zlib.crc32(
            kind + body
        )
        bodies[kind] = body
        at += 12 + size
    width, height = struct.unpack(">II", bodies[b"IHDR"][:8])
    lines = np.frombuffer(zlib.decompress(bodies[b"IDAT"]), np.uint8).reshape(height, -1)
    assert (lines[:, 0] == 0).all()
    return lines[:, 1:].reshape(height, width, 3)


def test_a_hang_has_a_picture_of_who_waits_for_whom(tmp_path) -> None:
    code, text = report(tmp_path, str(ROOT / "elfs/hang_cycle"))
    page = Page(text)
    assert code == 1
    assert page.count("svg", id="waits") == 1
    assert page.count("g", **{"class": "box ring"}) == 2
    assert page.count("path", **{"class": "wait ring"}) == 2
    assert page.count("path", **{"class": "wait"}) == 2
    assert any("which thread T2 can give" in text for text in page.texts)


def test_a_chip_has_its_tiles_and_a_timeline_of_each_that_is_unlike_others(tmp_path) -> None:
    code, text = report(tmp_path, str(ROOT / "elfs/copy_dram"))
    page = Page(text)
    tiles = load_program(ROOT / "elfs/copy_dram").placed()
    assert code == 0
    heads = re.findall(r"<h3>tile (.*?)</h3>", text)
    assert page.count("svg", **{"class": "time"}) == len(heads) < sum(len(p.at) for p in tiles)
    more = [int(n) for head in heads for n in re.findall(r"and (\d+) more", head)]
    named = [xy for head in heads for xy in re.findall(r"\(\d+,\d+\)", head)]
    assert len(set(named)) == len(named)
    assert len(named) + sum(more) == sum(len(part.at) for part in tiles)
    assert page.count("svg", id="chip") == 1
    assert re.search(r"tile \(\d+,\d+\): \d+ instructions and words, [1-9]\d* NoC requests", text)
    assert "NoC works" in text


def test_tiles_that_a_finding_names_come_first() -> None:
    launched = Launched(load_program(ROOT / "elfs/copy_dram"))
    culprit = {"tile": [4, 5], "core": "brisc"}
    found = [Finding("races", "error", "", culprit, {"tile": [2, 3]}, (), "")]
    shown = _named_first(launched, None, found)
    assert shown[:2] == [(4, 5), (2, 3)]
    assert sorted(shown) == sorted(tile.xy for tile in launched.tiles)


def evil_program(tmp_path: Path) -> Path:
    """add1 with a wrong scalar; its name, its output and its source have markup in them."""
    folder = tmp_path / "evil"
    shutil.copytree(ROOT / "elfs/add1", folder)
    path = folder / "PROGRAM.toml"
    text = path.read_text().replace('name = "add1"', f"name = {json.dumps(EVIL)}")
    text = text.replace('name = "y"', f"name = {json.dumps(EVIL)}").replace("f32:1.0", "f32:0.5")
    path.write_text(text)
    source = next((ROOT / "firmware").rglob("add1/pack.c"))
    (folder / "pack.c").write_text(source.read_text().replace("half ^= 1;", EVIL))
    return folder


def test_nothing_from_a_file_is_markup(tmp_path) -> None:
    _, text = report(tmp_path, str(evil_program(tmp_path)))
    page = Page(text)
    assert page.count("script") == 0
    assert [
        a for tag, a in page.elements if tag == "img" and not a["src"].startswith("data:")
    ] == []
    assert "".join(page.texts).count(EVIL) >= 3
    assert "http" not in text.replace("http-equiv", "")


_ACTS = """
addEventListener("load", () => {
  const box = e => e.getBoundingClientRect();
  const said = {
    titles: document.title,
    image: document.querySelector(".heat img").naturalWidth,
    lanes: [...document.querySelectorAll("svg.time > text")].map(t => t.textContent)
      .filter(t => isNaN(t)),
    outside: [...document.querySelectorAll("svg.time rect")].filter(r =>
      box(r).right > box(r.ownerSVGElement).right + 1).length,
    wide: document.documentElement.scrollWidth <= innerWidth,
    images: document.images.length,
  };
  document.title = "result " + JSON.stringify(said);
});
"""


@needs_browser
def test_the_page_is_drawn_in_a_browser(tmp_path) -> None:
    _, text = report(tmp_path, str(evil_program(tmp_path)))
    said = json.loads(title_after(text, _ACTS, tmp_path).removeprefix("result "))
    assert said["titles"] == f"bhemu report: {EVIL}"
    assert (said["image"], said["images"]) == (32, 1)
    assert said["lanes"] == ["brisc", "trisc0", "trisc1", "trisc2", "T0", "T1", "T2"]
    assert said["outside"] == 0
    assert said["wide"]


_FITS = """
const boxes = [...document.querySelectorAll(".box")].map(box => {
  const [rect, ...lines] = [box.querySelector("rect"), ...box.querySelectorAll("text")]
    .map(one => one.getBoundingClientRect());
  return lines.every(line => line.left >= rect.left && line.right <= rect.right
    && line.top >= rect.top && line.bottom <= rect.bottom);
});
const wait = [...document.querySelectorAll(".box")].map(box => box.textContent);
const time = document.querySelector(".time").getBoundingClientRect();
const root = document.documentElement;
document.title = JSON.stringify({boxes, wait, page: root.scrollWidth <= root.clientWidth,
  time: time.right <= root.clientWidth,
  order: [...document.querySelectorAll("h2")].map(head => head.textContent)});
"""


@needs_browser
def test_the_page_of_a_hang_fits_and_begins_with_who_waits_for_whom(tmp_path) -> None:
    _, text = report(tmp_path, str(ROOT / "elfs/hang_cycle"))
    said = json.loads(title_after(text, _FITS, tmp_path))
    assert said["boxes"] == [True] * 4
    assert sum("cycle_math.c:11" in box for box in said["wait"]) == 1
    assert said["page"] and said["time"]
    assert said["order"][:2] == ["Wait-for graph", "Over time"]
    assert not any("…" in box for box in said["wait"])  # labels are whole


_FIRST_SCREEN = """
const bottom = name => document.querySelector(name).getBoundingClientRect().bottom;
const dark = getComputedStyle(document.documentElement).colorScheme;
const steps = [...document.querySelectorAll(".origin details")];
const closed = steps.filter(one => !one.open);
const seen = one => one.checkVisibility ? one.checkVisibility() : one.offsetParent !== null;
const hidden = closed[0].querySelector("p");
const before = seen(hidden);
closed[0].querySelector("summary").click();
document.title = JSON.stringify({finding: bottom(".finding pre b"), picture: bottom(".heat img"),
  height: innerHeight, dark, before, after: seen(hidden), steps: steps.length});
"""


@needs_browser
def test_the_first_screen_is_the_finding_its_line_and_what_differs(tmp_path) -> None:
    """A click leads from a wrong element to what it was made from."""
    _, text = report(tmp_path, str(ROOT / "elfs/add1"), "--set", "runtime_args+4=f32:0.5")
    said = json.loads(title_after(text, _FIRST_SCREEN, tmp_path))
    assert max(said["finding"], said["picture"]) < said["height"]
    assert said["dark"] == "light dark"
    assert said["steps"] > 8 and (said["before"], said["after"]) == (False, True)


def test_a_wrong_element_is_followed_back_step_by_step(tmp_path) -> None:
    _, text = report(tmp_path, str(ROOT / "elfs/add1"), "--set", "runtime_args+4=f32:0.5")
    program = load_program(ROOT / "elfs/add1")
    launched = Launched(program)
    launched.tile.write32("runtime_args+4", 0x3F000000)
    launched.keep_history()
    launched.run()
    for element in ("y[0,0]", "y[7,26]"):  # the first, the worst
        links = links_behind(launched.tile, program, "brisc", element)
        begin = text.index(f'<div class="origin" id="{element}">')
        tree = text[begin : text.index("</div>", begin)]
        assert tree.count("<details") == tree.count("</details>") == len(links) > 4
        shown = re.findall(r"<summary><code><b>(.*?)</b>", tree)
        assert shown == [link.place for link in links]


def test_looking_at_a_run_changes_nothing() -> None:
    program = load_program(ROOT / "elfs/matmul")
    plain, seen = Launched(program), Launched(program)
    end = plain.run()
    recording = Recorder(seen).run()
    assert recording.stop is not None
    assert (recording.stop.reason, seen.clock) == (end.reason, end.clock)
    assert (plain.tile.l1 == seen.tile.l1).all()
    assert plain.tile.state.op_count.tolist() == seen.tile.state.op_count.tolist()
    assert len(recording.clocks) <= MOST + 2
    for name in ("brisc", "trisc1", "T2"):
        lane = recording.lane(plain.tile.xy, name)
        assert (lane[0].begin, lane[-1].end) == (0, end.clock)
        assert all(a.end == b.begin for a, b in itertools.pairwise(lane))
    kinds = {one.kind for one in recording.lane(plain.tile.xy, "T1")}
    assert {"works", "waits"} <= kinds


def test_a_livelock_is_found_although_the_run_is_looked_at() -> None:
    recording = Recorder(Launched(load_program(ROOT / "elfs/hang_flag"))).run()
    assert type(recording.error).__name__ == "NoProgress"


def test_many_waiters_are_drawn_within_the_picture() -> None:
    names = [f"tile ({i},2) brisc" for i in range(9)]
    waiters = [
        {
            "who": name,
            "reason": "a semaphore",
            "releasers": [{"who": names[i - 1], "state": "waits"}],
        }
        for i, name in enumerate(names)
    ]
    drawn = pictures.waits_picture({"waiters": waiters, "cycle": names[::-1]})
    width, height = map(float, re.search(r'viewBox="0 0 (\S+) (\S+)"', drawn).groups())
    for x, y, w, h in re.findall(r'<rect x="(\S+)" y="(\S+)" width="(\S+)" height="(\S+)"', drawn):
        assert 0 <= float(x) <= width - float(w)
        assert 0 <= float(y) <= height - float(h)
    assert drawn.count('class="wait ring"') == 9
    assert pictures.waits_picture({}) == ""
