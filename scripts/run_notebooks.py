"""Executes the notebooks of examples/ in place; --check: without writing what they print."""

import argparse
import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parent.parent


def execute(path: Path) -> nbformat.NotebookNode:
    """The notebook with its outputs; CellExecutionError where a cell fails."""
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": path.parent}}).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # times
    return notebook


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    for path in sorted((ROOT / "examples").glob("*.ipynb")):
        began = time.perf_counter()
        notebook = execute(path)
        if not arguments.check:
            nbformat.write(notebook, path)
        print(f"{path.name}: {time.perf_counter() - began:.1f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
