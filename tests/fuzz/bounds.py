"""Runs random words with bounds checks and prints how many programs ran (see test_words.py)."""

import sys

import test_words
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

count = 0


@given(test_words.programs, st.sampled_from(["error", "warn", "silicon"]), st.integers(0, 3))
@settings(test_words.campaign(2000, 2000), phases=[Phase.generate])
def run(program: tuple[list[int], ...], ub: str, seed: int) -> None:
    global count
    test_words.execute(program, ub, seed)
    count += 1


def unraisable(problem: "sys.UnraisableHookArgs") -> None:
    """An exception inside compiled code that C called: an index out of bounds."""
    sys.stderr.write(f"{problem.exc_type.__name__}: {problem.exc_value}\n")


sys.unraisablehook = unraisable
run()
print(count)
