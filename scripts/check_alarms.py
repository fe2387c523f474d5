"""Runs every check on programs that are right, and lists what it finds.

    scripts/check_alarms.py FOLDER... [--json FILE]

Each FOLDER is searched for PROGRAM.toml. A line per program: its seconds, its exit code, the
findings. What FILE has already is not run again. docs/why.md says what was found and why.
"""

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
_COMMAND = [sys.executable, "-m", "bhemu", "run", "-q", "--json", "--check"]
_MOST = 900  # seconds of a program


def checked(program: Path, checks: str = "all") -> dict[str, Any]:
    """What `bhemu run --check` says of a program."""
    began = time.monotonic()
    command = [*_COMMAND, checks, str(program)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=_MOST
    )
    try:
        said = json.loads(done.stdout)
    except ValueError:
        said = {"broken": done.stderr[-2000:]}
    return {
        "program": str(program.parent),
        "exit_code": done.returncode,
        "seconds": round(time.monotonic() - began, 1),
        "error": said.get("rule") or said.get("error"),
        "findings": said.get("findings", []),
        **({"broken": said["broken"]} if "broken" in said else {}),
    }


def line(result: dict[str, Any]) -> str:
    """A program in one line, its findings below."""
    ended = result["error"] or f"exit code {result['exit_code']}"
    texts = [f"{result['seconds']:6.1f} s  {ended}  {result['program']}"]
    texts += [f"    [{one['check']}] {one['text']}" for one in result["findings"]]
    return "\n".join(texts + ([f"    {result['broken']}"] if "broken" in result else []))


def _done(path: Path | None) -> set[str]:
    """The programs that a file of results has."""
    if path is None or not path.exists():
        return set()
    return {json.loads(each)["program"] for each in path.read_text().splitlines()}


def main() -> None:
    """All programs of the folders, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--checks", default="all", help="NAME,... (default: all)")
    parser.add_argument("--json", type=Path, help="also write what is found there, a line each")
    chosen = parser.parse_args()
    programs = sorted(one for folder in chosen.folders for one in folder.rglob("PROGRAM.toml"))
    found: Counter[str] = Counter()
    done = _done(chosen.json)
    for program in programs:
        if str(program.resolve().parent) in done:
            continue
        result = checked(program.resolve(), chosen.checks)
        found.update({one["check"] for one in result["findings"]})
        print(line(result), flush=True)
        if chosen.json:
            with chosen.json.open("a") as lines:
                lines.write(json.dumps(result) + "\n")
    print(f"{len(programs)} programs; findings of:", dict(found) or "none")


if __name__ == "__main__":
    main()
