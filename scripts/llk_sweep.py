"""Run a sample of tt-llk's tests on all processors: see --help, docs/llk.md."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))

from llk_sweep.command import command

if __name__ == "__main__":
    command()
