"""A real browser without a screen, for the pages that bhemu writes."""

import html
import re
import shutil
import subprocess
from pathlib import Path

import pytest

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), ""
)
needs_browser = pytest.mark.skipif(not BROWSER, reason="no chromium or chrome on this machine")


def title_after(page: str, script: str, folder: Path) -> str:
    """The title that a page has when `script` has run at its end; files go to `folder`."""
    path = folder / "page.html"
    path.write_text(page.replace("</body>", f"<script>{script}</script></body>"))
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    command += [f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=5000"]
    command += ["--window-size=1400,1000", path.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    title = re.search(r"<title>(.*?)</title>", done.stdout, re.DOTALL)
    assert title is not None, done.stdout[:500]
    return html.unescape(title[1])
