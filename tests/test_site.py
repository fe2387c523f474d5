"""The documentation site: built without a warning, links whole, searched in a real browser."""

import functools
import http.server
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import BROWSER, needs_browser

from bhemu.tensix import insn

ROOT = Path(__file__).parents[1]
pytest.importorskip("mkdocs", reason="the extra docs is not installed")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site; a warning of mkdocs (a broken link, a page in no menu) is a failure."""
    folder = tmp_path_factory.mktemp("site") / "out"
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """The site behind a server of its own."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    handler = functools.partial(Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_every_link_of_the_site_leads_somewhere(site: Path) -> None:
    broken, count = [], 0
    for page in site.rglob("*.html"):
        if page.name == "404.html":
            continue
        text = page.read_text(encoding="utf-8")
        for link in re.findall(r'(?:href|src)="([^"]+)"', text):
            name, _, anchor = link.partition("#")
            if re.match(r"[a-z]+:", link) or name.endswith("/."):
                continue
            target = (page.parent / name) if name else page
            count += 1
            if not target.exists():
                broken.append((page.name, link))
            elif anchor and target.suffix == ".html":
                held = target.read_text(encoding="utf-8")
                if f'id="{anchor}"' not in held and anchor != "__codelineno":
                    broken.append((page.name, link))
    assert count > 1000
    assert broken == []


@needs_browser
def test_the_build_takes_the_pictures(site: Path) -> None:
    for page, picture in (
        ("index.html", "report"),
        ("tutorials/where-the-time-goes.html", "profile"),
    ):
        data = (site / "assets" / f"{picture}.png").read_bytes()
        assert data.startswith(b"\x89PNG") and len(data) > 20_000
        assert f"assets/{picture}.png" in (site / page).read_text(encoding="utf-8")


def test_no_page_asks_another_server_for_anything(site: Path) -> None:
    for page in site.rglob("*.html"):
        loaded = re.findall(
            r'<(?:script|img|link)[^>]+(?:src|href)="(https?:[^"]+)"', page.read_text()
        )
        assert loaded == [], page


def test_reference_pages_hold_what_the_code_declares(site: Path) -> None:
    commands = (site / "reference/commands.html").read_text(encoding="utf-8")
    instructions = (site / "reference/instructions.html").read_text(encoding="utf-8")
    rules = (site / "reference/rules.html").read_text(encoding="utf-8")
    assert all(f'id="bhemu-{name}"' in commands for name in ("run", "why", "step"))
    assert instructions.count("<h2 ") == len(insn.instructions())
    assert 'id="pacr"' in instructions
    assert 'id="cfg-in-use"' in rules


@needs_browser
@pytest.mark.parametrize("served", [True, False], ids=["by a server", "from a folder"])
def test_the_search_finds_an_instruction(
    site: Path, address: str, tmp_path: Path, served: bool
) -> None:
    api = pytest.importorskip("playwright.sync_api", reason="the extra docs is not installed")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(f"{address}/index.html" if served else (site / "index.html").as_uri())
        page.locator(".md-search__input").click()
        page.locator(".md-search__input").press_sequentially("PACR")
        found = page.locator(".md-search-result__link")
        found.first.wait_for(timeout=20_000)
        links = found.evaluate_all("all => all.map(one => one.getAttribute('href'))")
        assert any(link.endswith("reference/instructions.html#pacr") for link in links)
        found.first.click()
        page.wait_for_url("**/reference/instructions.html**")
        assert "PACR" in page.content()
        page.screenshot(path=tmp_path / "search.png")
        assert (tmp_path / "search.png").stat().st_size > 10_000
        browser.close()
