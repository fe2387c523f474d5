"""Finds the first instruction that makes a difference, and the shortest program that shows it."""

from collections.abc import Callable, Sequence

from bhemu.oracle.libttsim import BOTH_REFUSE, EQUAL, Difference, Judge, Pair, describe
from random_programs.plan import Blocks, Plan, Step


def _agree(judge: Judge, plan: Plan, blocks: Blocks) -> bool:
    return judge.pair(plan.emit(blocks)).verdict in (EQUAL, BOTH_REFUSE)


def first(judge: Judge, plan: Plan) -> int | None:
    """Position of the step after which the models differ, None when no prefix shows it.

    Bisection over prefixes: the program cut after a step dumps its state in the same way.
    """
    low, high = 0, plan.length  # `high` steps differ, `low` steps agree
    if _agree(judge, plan, plan.cut(high)) or not _agree(judge, plan, plan.cut(low)):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        if _agree(judge, plan, plan.cut(middle)):
            low = middle
        else:
            high = middle
    return high - 1


def minimal(judge: Judge, plan: Plan, position: int) -> list[Step]:
    """The steps up to `position` without those that the difference does not need."""
    number, _ = plan.step_at(position)
    prefix = list(plan.cut(position + 1)[number])
    before = [step for block in plan.blocks[:number] for step in block]

    def differs(steps: list[Step]) -> bool:
        blocks: list[Sequence[Step]] = [()] * len(plan.blocks)
        blocks[number] = tuple(steps)
        return not _agree(judge, plan, blocks)

    return _reduce(prefix, differs) if differs(prefix) else before + prefix


def _reduce(steps: list[Step], differs: Callable[[list[Step]], bool]) -> list[Step]:
    """Drop halves, then ever smaller pieces, as long as the rest still differs."""
    size = max(len(steps) // 2, 1)
    while True:
        at = 0
        while at < len(steps) and len(steps) > 1:
            fewer = steps[:at] + steps[at + size :]
            if fewer and differs(fewer):
                steps = fewer
            else:
                at += size
        if size == 1:
            return steps
        size //= 2


def study(judge: Judge, plan: Plan, pair: Pair, *, minimise: bool = True) -> Difference:
    """Bisect a plan whose pair differs, and reduce it to the steps that matter."""
    lines = describe(pair, plan.explain)
    position = first(judge, plan)
    if position is None:
        return Difference(plan.name, pair, lines, "no prefix of the program differs")
    number, step = plan.step_at(position)
    where = f"block {number}: {step}"
    program = minimal(judge, plan, position) if minimise else []
    shortest = tuple(str(one) for one in program)
    return Difference(plan.name, pair, lines, where, shortest, step.key[0])
