"""Generated pages are up to date, and what the README shows exists."""

import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
import tutorial

from bhemu.cli import main

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


GENERATORS = ["make_models.py", "golden_coverage.py", "make_coverage.py"]
GENERATORS += ["make_checks.py", "make_options.py"]


@pytest.mark.parametrize("script", GENERATORS)
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
        if text.count("\n") > 600:
            assert "onger than 600 lines because" in text[:400], path


def blocks(language: str) -> list[str]:
    return [b.text for b in tutorial.blocks(ROOT / "README.md") if b.language == language]


def test_the_python_of_the_readme_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    (block,) = blocks("python")
    exec(block, {})
    shown = capsys.readouterr().out
    assert shown.startswith("until ") and shown.endswith("[3.5 3.5 3.5 3.5]\n")  # 2.5 + 1


def test_the_program_of_the_readme_is_the_one_it_names() -> None:
    shown = [b for b in tutorial.blocks(ROOT / "README.md") if "title=" in b.about]
    titles = [b.about.partition('"')[2].rstrip('"') for b in shown]
    assert titles == ["elfs/add1/PROGRAM.toml"]
    assert shown[0].text == (ROOT / titles[0]).read_text(encoding="utf-8")


def test_every_program_of_the_readme_exists() -> None:
    named = set(re.findall(r"\belfs/[\w./]+\w", README))
    assert {"elfs/add1", "elfs/hang_flag"} <= named
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_every_command_and_option_that_the_pages_name_exists() -> None:
    context = click.Context(main)
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    named: list[tuple[str, str, str]] = []  # page, command, option
    for page in pages:
        for text in re.findall(
            r"`bhemu ([^`\n]+)`|^\$ bhemu (.+)$", page.read_text(), re.MULTILINE
        ):
            name, *words = "".join(text).split()
            options = [word for word in words if re.fullmatch(r"--[a-z][a-z0-9-]+", word)]
            named += [(page.name, name, option) for option in options or [""]]
    assert len(named) > 80
    unknown = []
    for page, name, option in named:
        command = main.get_command(context, name)
        known = {o for p in command.params for o in p.opts} | {"--help"} if command else set()
        if not name.startswith("-") and (command is None or (option and option not in known)):
            unknown.append((page, name, option))
    assert unknown == []
