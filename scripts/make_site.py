"""The reference pages of the documentation site, made from the code while mkdocs builds it."""

import inspect
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import bhemu  # noqa: E402
import bhemu.devices  # noqa: E402
from bhemu.bits import Bits  # noqa: E402
from bhemu.cli import main  # noqa: E402
from bhemu.cli.isa import row  # noqa: E402
from bhemu.cli.options import ALL  # noqa: E402
from bhemu.devices.bus.address_map import NAMED, fields_of  # noqa: E402
from bhemu.machine.sentences import RULES  # noqa: E402
from bhemu.tensix import config_fields, thread_fields, units  # noqa: E402
from bhemu.tensix import insn as declarations  # noqa: E402

assert units.MODULES


def commands() -> Iterator[str]:
    yield "# Commands\n\nWhat `--help-all`, or `--help`, prints.\n"
    group = click.Context(main, info_name="bhemu")
    group.meta[ALL] = True
    for name in main.list_commands(group):
        command = main.get_command(group, name)
        assert command is not None
        text = command.get_help(click.Context(command, info_name=name, parent=group))
        yield f"## bhemu {name}\n\n```text\n{text}\n```\n"


def _members(cls: type) -> Iterator[tuple[str, object]]:
    for name in sorted(n for n in dir(cls) if not n.startswith("_")):
        member = inspect.getattr_static(cls, name)
        if isinstance(member, property) or inspect.isfunction(getattr(cls, name)):
            yield name, member


def _entry(title: str, thing: object, level: int) -> str:
    text = inspect.getdoc(thing) or ""
    try:
        function = thing.__init__ if inspect.isclass(thing) else thing  # type: ignore[misc]
        signature = str(inspect.signature(function)).replace("(self, ", "(").replace("(self)", "()")
    except (TypeError, ValueError):
        signature = ""
    shown = f"```python\n{title}{signature}\n```\n\n" if signature else ""
    return f"{'#' * level} {title}\n\n{shown}{text}\n"


def python() -> Iterator[str]:
    yield "# Python\n\nThe public names of `bhemu`; [a session](../api.md) shows them at work.\n"
    for name in sorted(bhemu.__all__):
        thing = getattr(bhemu, name)
        if not callable(thing):
            continue
        yield _entry(name, thing, 2)
        own = isinstance(thing, type) and not issubclass(thing, BaseException)
        for member, value in _members(thing) if own else ():
            yield _entry(f"{name}.{member}", value, 3)


def instructions() -> Iterator[str]:
    yield "# Instructions\n\nEvery Tensix instruction, its fields, and what is modelled of it.\n"
    for insn in sorted(declarations.instructions().values(), key=lambda insn: insn.name):
        about = row(insn)
        yield f"## {insn.name}\n\n{inspect.getdoc(insn) or ''}\n"
        yield f"Unit {about['unit']}, opcode 0x{insn.opcode:02X}, {about['status']}.\n"
        if "reason" in about:
            yield f"Refused: {about['reason']}\n"
        if about["fields"]:
            yield "| field | bits | what its values stand for |\n|---|---|---|"
            yield from (f"| `{f.name}` | {f.hi}:{f.lo} | {_values(f)} |" for f in insn.fields)
        yield ""


def _values(field: Bits) -> str:
    if field.operand is None:
        return ""
    rows = (f"{value}: {text}" for value, text in field.operand.rows())
    return "<br>".join([*filter(None, [field.operand.about]), *rows]).replace("|", "\\|")


def rules() -> Iterator[str]:
    yield "# Rules\n\nWhat an error names in brackets; `bhemu explain RULE` says the same.\n"
    for rule in sorted(RULES.values(), key=lambda rule: rule.rule):
        yield f"## {rule.rule}\n\n{rule.category}: {rule.pattern('`{}`')}\n"
        if rule.hint:
            yield f"Hint: {rule.hint}\n"


def registers() -> Iterator[str]:
    yield "# Registers\n\nDevice registers by address, then the fields of the configuration.\n"
    yield "## Devices\n\n| address | register |\n|---|---|"
    for address, register in sorted(NAMED.items()):
        yield f"| 0x{address:08X} | `{register.name}` |"
    for title, module in (("Config", config_fields), ("ThreadConfig", thread_fields)):
        yield f"\n## {title}\n\n| word | bits | field |\n|---|---|---|"
        named = fields_of(module).items()
        for name, field in sorted(named, key=lambda item: (item[1].word, item[1].shift)):
            top = field.shift + field.mask.bit_length() - 1
            yield f"| {field.word} | {top}:{field.shift} | `{name}` |"


PAGES = {
    "reference/commands.md": commands,
    "reference/python.md": python,
    "reference/instructions.md": instructions,
    "reference/rules.md": rules,
    "reference/registers.md": registers,
}


COPIES = {"changelog.md": "CHANGELOG.md", "security.md": "SECURITY.md"}


PICTURES = {
    "index.md": ("report", ("report", "-q", "elfs/hang_cycle", "-o"), "bhemu report of a deadlock"),
    "tutorials/where-the-time-goes.md": (
        *("profile", ("profile", "-q", "elfs/matmul", "--html"), "bhemu profile of a matmul"),
    ),
}
"""By page: the name of the picture at its end, the command whose page it shows, what it is."""
_taken: dict[str, bytes] = {}


def _take() -> None:
    """Take the pictures with a browser; without one the site has none, and says so."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        print("no playwright: the site has no pictures", file=sys.stderr)
        return
    names = ("chromium", "chromium-browser", "google-chrome")
    browser = next(filter(None, map(shutil.which, names)), None)
    if browser is None:
        print("no browser: the site has no pictures", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        shown = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        for page, (name, command, _) in PICTURES.items():
            path = Path(folder) / f"{name}.html"
            subprocess.run(
                [sys.executable, "-m", "bhemu", *command, str(path)], cwd=ROOT, capture_output=True
            )
            tab = shown.new_page(viewport={"width": 1200, "height": 800})
            tab.goto(path.as_uri())
            _taken[page] = tab.screenshot()
        shown.close()


def on_files(files: Any, config: Any) -> Any:
    """mkdocs' hook: pages and pictures that no file under docs/ holds."""
    from mkdocs.structure.files import File

    _take()
    for page, picture in _taken.items():
        name = f"assets/{PICTURES[page][0]}.png"
        files.append(File.generated(config, name, content=picture))

    texts = {name: "\n".join(page()) for name, page in PAGES.items()}
    for name, source in COPIES.items():
        texts[name] = (ROOT / source).read_text(encoding="utf-8").replace("](docs/", "](")
    for name, text in texts.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """mkdocs' hook: the page's picture, and links to pages beside docs/ in the checkout."""
    name = page.file.src_uri
    if name in _taken:
        picture, _command, about = PICTURES[name]
        up = "../" * name.count("/")
        markdown += f"\n\n![{about}]({up}assets/{picture}.png)\n"
    return markdown.replace("](../SECURITY.md", "](security.md")
