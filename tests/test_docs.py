"""Generated pages are up to date, and what the README shows exists."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("script", ["make_models.py", "golden_coverage.py", "make_coverage.py"])
def test_generated_files_are_up_to_date(script: str) -> None:
    command = [sys.executable, str(ROOT / "scripts" / script), "--check"]
    assert subprocess.run(command, check=False).returncode == 0, f"run scripts/{script}"


def test_every_link_of_the_readme_leads_somewhere() -> None:
    links = re.findall(r"\]\(([^)]+)\)", README)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_every_make_target_of_the_readme_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"`?make ([a-z-]+)", README))
    assert {"run", "test", "bench"} <= targets
    assert [t for t in targets if not re.search(rf"^{t}:", makefile, re.MULTILINE)] == []


def test_no_file_is_too_long_without_a_reason() -> None:
    for path in sorted((ROOT / "bhemu").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if text.count("\n") > 400:
            assert "onger than 400 lines because" in text[:400], path
