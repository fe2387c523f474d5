"""A hang at a semaphore that hands over Dst: what else is told of that hand-over belongs to it."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from bhemu.errors import NoProgress
from bhemu.machine.hang.waits import BELOW_MAXIMUM
from bhemu.why.findings import Finding, of_one_hang


def with_hand_over(hang: Finding, error: NoProgress, found: Iterable[Finding]) -> Finding:
    """The hang with what the findings say of the hand-over that its root waits for.

    Where nothing was found that could take from the semaphore, who has waited for it and does not
    take from it is the culprit.
    """
    of_it = [one for one in found if _is_of_hang(error, one)]
    told = of_one_hang(hang, of_it)
    if keeper := next((one for one in of_it if _keeps(error, one)), None):
        text = f"{hang.text}: {keeper.culprit['core']} has waited for it and takes nothing"
        told = replace(told, text=text, advice=keeper.advice)
        return replace(told, culprit=keeper.culprit, victim=hang.culprit)
    return told


def apart(error: NoProgress, found: Iterable[Finding]) -> list[Finding]:
    """The findings that say something else."""
    return [one for one in found if not _is_of_hang(error, one)]


def _is_of_hang(error: NoProgress, one: Finding) -> bool:
    """Whether a finding is about the hand-over that the root of a hang waits for."""
    waiters = getattr(error.graph, "waiters", ())
    if one.hand_over is None or not waiters or waiters[0].kind != "semaphore":
        return False
    where, semaphores = waiters[0].where, one.hand_over.semaphores
    if where.get("tile") != one.culprit.get("tile"):
        return False
    is_same = not semaphores or waiters[0].resource["index"] in semaphores
    return is_same and where.get("thread") in one.hand_over.threads


def _keeps(error: NoProgress, one: Finding) -> bool:
    """Whether the culprit leaves out to take what the root of a hang waits for."""
    graph: Any = error.graph
    root, told = graph.waiters[0], one.hand_over
    is_same = told is not None and told.kept == root.resource["index"]
    is_lost = not any(releaser.able for releaser in root.releasers)
    return is_same and is_lost and root.reason.endswith(BELOW_MAXIMUM)
