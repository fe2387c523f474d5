"""The host's g++ on preprocessed texts of kernels."""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from llk_sweep.preprocessed import Text, parsed

GCC = shutil.which("g++")


def preprocessed(folder: Path, options: Sequence[str], name: str) -> tuple[Text, str]:
    """What g++ -E makes of NAME.cpp in a folder, which it includes; its pieces and the text."""
    text = f"#include <{name}.cpp>\n"
    made = _run(["-E", "-x", "c++", "-", f"-I{folder}"], options, text)
    return parsed(made), made


def assembly(text: str | Text, options: Sequence[str]) -> str:
    """What g++ makes of a preprocessed text."""
    return _run(["-S", "-x", "c++", "-fpreprocessed", "-"], options, str(text))


def _run(words: Sequence[str], options: Sequence[str], text: str) -> str:
    assert GCC
    command = [GCC, *options, *words, "-o", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
