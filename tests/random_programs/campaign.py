"""Runs many generated programs on both models and counts what came of them."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from bhemu.oracle.libttsim import DIFFERENT, EQUAL, Difference, Judge, Pair
from random_programs import divergences
from random_programs.plan import Plan
from random_programs.reduction import study
from random_programs.units import generate


@dataclass
class Tally:
    """Counts of a campaign: programs by verdict, results compared, steps, what was found."""

    unit: str
    seed: int
    programs: int = 0
    results: int = 0
    steps: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)
    known: Counter[str] = field(default_factory=Counter)
    differences: list[Difference] = field(default_factory=list)

    def as_dict(self) -> dict[str, object]:
        """JSON-ready values."""
        return {
            "unit": self.unit,
            "seed": self.seed,
            "programs": self.programs,
            "results": self.results,
            "instructions": self.steps,
            "verdicts": dict(self.verdicts),
            "known": dict(self.known),
            "differences": [one.as_dict() for one in self.differences],
        }

    def add(self, other: "Tally") -> None:
        """Count what another part of the same campaign found."""
        self.programs += other.programs
        self.results += other.results
        self.steps += other.steps
        self.verdicts += other.verdicts
        self.known += other.known
        self.differences += other.differences

    def __str__(self) -> str:
        verdicts = ", ".join(f"{n} {what}" for what, n in sorted(self.verdicts.items()))
        known = "".join(f"; {n} known: {what}" for what, n in sorted(self.known.items()))
        return (
            f"{self.unit} --seed {self.seed}: {self.programs} programs,"
            f" {self.steps} instructions, {self.results} results: {verdicts}{known}"
        )

    def lines(self) -> Iterator[str]:
        """The counts and the differences in words."""
        yield str(self)
        for one in self.differences:
            yield f"difference in {one.name}"
            yield f"  first instruction: {one.step}"
            for text in one.lines:
                yield f"  {text}"
            if one.program:
                yield "  shortest program that shows it:"
                for text in one.program:
                    yield f"    {text}"


def run(
    judge: Judge,
    unit: str,
    seed: int,
    indices: range,
    *,
    stop_after: int = 10,
    minimise: bool = True,
    progress: Callable[[int], None] = lambda done: None,
) -> Tally:
    """Compare the programs (unit, seed, i) for i of `indices`; at most `stop_after` differences."""
    tally = Tally(unit, seed)
    for index in indices:
        plan = generate(unit, seed, index)
        pair = judge.pair(plan.case())
        tally.programs += 1
        tally.steps += plan.length
        verdict = pair.verdict
        if verdict == EQUAL:
            tally.results += plan.results
        elif verdict == DIFFERENT:
            verdict = _difference(tally, judge, plan, pair, minimise)
        tally.verdicts[verdict] += 1
        progress(index)
        if len(tally.differences) >= stop_after:
            break
    return tally


def _difference(tally: Tally, judge: Judge, plan: Plan, pair: Pair, minimise: bool) -> str:
    """Enter a difference as known or as found; its verdict."""
    found = study(judge, plan, pair, minimise=minimise)
    known = divergences.match(pair, found.mnemonic, judge.reference)
    if known is None:
        tally.differences.append(found)
        return DIFFERENT
    tally.known[known.id] += 1
    return "known divergence"
