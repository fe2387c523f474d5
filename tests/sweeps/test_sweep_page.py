"""The page of a sweep, in a real browser: tables, heat map, sorting, filtering."""

import json
from pathlib import Path

import pytest
from browser import needs_browser, title_after

import bhemu
from bhemu.errors import InputError
from bhemu.sweeps.api import page, view
from bhemu.sweeps.spec import Plan, load_sweep

ACTS = """
const act = (id, name, value) => {
  if (value !== undefined) document.getElementById(id).value = value;
  document.getElementById(id).dispatchEvent(new Event(name));
};
const texts = (id, tag) => [...document.querySelectorAll(`#${id} ${tag}`)].map(e => e.textContent);
const found = { heat: texts("heat", "td"), note: document.getElementById("heat-note").textContent };
act("heat-value", "change", "t1");
found.words = texts("heat", "td");
act("filter", "input", "differs");
found.filtered = document.getElementById("runs-note").textContent;
act("filter", "input", "");
document.querySelectorAll("#runs th")[3].click();
document.querySelectorAll("#runs th")[3].click();
found.sorted = [...document.querySelectorAll("#runs tbody tr")].map(r => r.cells[3].textContent);
found.titles = document.querySelectorAll("img").length;
document.title = "result " + JSON.stringify(found);
"""


@needs_browser
def test_the_page_works_in_a_browser(add1: Path, tmp_path: Path) -> None:
    add1.write_text(add1.read_text().replace('"scalars"', '"<img src=x onerror=alert(1)>"'))
    found = bhemu.sweep(add1, workers=1)
    made = page(found, view(found.plan, "scalar,quantum", None)).decode()
    assert "http" not in made.replace("http-equiv", "")
    title = title_after(made, ACTS, tmp_path)
    assert title.startswith("result "), title
    said = json.loads(title.removeprefix("result "))
    assert said["heat"] == ["1", "0", "1"] * 4  # scalar 1.0 is what the file expects
    assert said["note"] == "mean of failed: 0 to 1"
    assert said["words"] == ["165"] * 12
    assert said["filtered"] == "8 of 12 runs"
    quanta = [str(row["quantum"]) for row in found.rows]
    assert said["sorted"] == sorted(quanta, key=int, reverse=True)
    assert said["titles"] == 0


def test_the_failures_stand_in_the_page_without_its_script(add1: Path) -> None:
    made = page(bhemu.sweep(add1, workers=1), None).decode()
    assert "12 runs of add1: 8 differs, 4 ok" in made
    assert "y: tile (0,0) face 0 row 0 column 0" in made
    assert "bhemu run add1 --set runtime_args+4=f32:0.5 --quantum 100 --engine compiled" in made


@pytest.mark.parametrize(
    ("heat", "value", "said"),
    [
        ("scalar", None, "want two parameters"),
        ("scalar,quantun", None, "no parameter quantun\nhint: did you mean quantum?"),
        ("scalar,engine", None, "no parameter engine"),
        (None, "clocks", "no column clocks\nhint: did you mean clock?"),
    ],
)
def test_a_view_that_the_sweep_has_not_is_named(
    add1: Path, heat: str | None, value: str | None, said: str
) -> None:
    with pytest.raises(InputError) as caught:
        view(Plan(load_sweep(add1)), heat, value)
    assert said in str(caught.value)
