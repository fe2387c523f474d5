"""Names of the C library of kernels, as its headers declare and comment them."""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import bhemu.kernel

_FOLDER = Path(bhemu.kernel.__file__).parent
_LIBRARY = _FOLDER / "c"
_HEADERS = ("lib/*.h", "kernel/kernel.h")
_NEW = (_FOLDER / "template" / "args.h", "args.h of a new kernel")
_DEFINE = re.compile(r"#define (?P<name>\w+)(?P<rest>.*)")
_FUNCTION = re.compile(r"static inline [\w ]+?[ *](?P<name>\w+)\(.*")
_STRUCT = re.compile(r"struct (?P<name>\w+) \{.*")
_COMMENT = re.compile(r"/\*\s*(.*?)\s*\*/", re.DOTALL)


class KernelName(NamedTuple):
    """A macro, function or struct of a header: where it stands, how it is declared, its comment."""

    name: str
    header: str
    line: int
    declared: str
    about: str


@cache
def kernel_names() -> Mapping[str, tuple[KernelName, ...]]:
    """All of them by name: several where two headers, or two kinds of cores, have one."""
    found: dict[str, tuple[KernelName, ...]] = {}
    headers = [path for pattern in _HEADERS for path in sorted(_LIBRARY.glob(pattern))]
    named = [*((path, str(path.relative_to(_LIBRARY))) for path in headers), _NEW]
    for path, header in named:
        for one in _declared(path.read_text().splitlines(), header):
            found[one.name] = (*found.get(one.name, ()), one)
    return found


def _declared(lines: list[str], header: str) -> list[KernelName]:
    """What a header declares, with the comment in its line, or above it or its group."""
    found, above, comment, conditions = list[KernelName](), "", list[str](), list[str]()
    first = ""  # of all comments: what the header holds
    for number, line in enumerate(lines, 1):
        if comment or line.startswith("/*"):
            comment.append(line.strip().removeprefix("*" if line[:1] == " " else ""))
            if line.rstrip().endswith("*/"):
                above, comment = _text(" ".join(comment)), []
                first = first or above
            continue
        conditions = _conditions(line, conditions)
        match = _DEFINE.match(line) or _FUNCTION.match(line) or _STRUCT.match(line)
        if match is None:
            above = above if line.strip() else ""
            continue
        declared = [line]
        while not _is_whole(declared) and number + len(declared) <= len(lines):
            declared.append(lines[number + len(declared) - 1])
        text = " ".join(part.strip().removesuffix("\\").strip() for part in declared)
        beside = _COMMENT.search(line)
        about = _text(beside[0]) if beside else above or first
        shown = _COMMENT.sub("", text).removesuffix("{").strip()
        cores = " and ".join(one for one in conditions if "CORE_" in one)
        where = f" (for {cores})" if cores else ""
        found.append(KernelName(match["name"], header, number, shown + where, about))
        if not line.startswith("#define"):
            above = ""
    return found


def _conditions(line: str, before: list[str]) -> list[str]:
    """The conditions of the preprocessor after a line, given those before it."""
    word, _, text = line.partition(" ")
    if word.startswith("#if"):
        return [*before, re.sub(r"defined\((\w+)\)", r"\1", text).replace("||", "or")]
    if word == "#else":
        return [*before[:-1], f"all but {before[-1]}"]
    return before[:-1] if word == "#endif" else before


def _text(comment: str) -> str:
    match = _COMMENT.search(comment)
    return " ".join((match[1] if match else comment).split())


def _is_whole(lines: list[str]) -> bool:
    """Whether the lines hold a macro, or what stands before the body of a function or struct."""
    if lines[0].startswith("#define"):
        return not lines[-1].endswith("\\")
    return any("{" in line for line in lines)
