"""The eight Tensix semaphores, as instructions and the RISC-V semaphore window change them.

A value counts from 0 to 15 and stays there at either end; the maximum matters to SEMWAIT only
(SEMPOST, SEMGET, SEMWAIT, SyncUnit, Blackhole ISA).  Posting a full semaphore and taking from an
empty one are rules of their own: the golden model stops there.
"""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.tensix.rules import DONE, NCB, UNIMPLEMENTED, error, follows_llk, note_rule, undefined

COUNT = 8
LIMIT = 15  # largest value a semaphore holds

POST_FULL = error("SEM-POST-FULL", NCB, "semaphore {semaphore} is posted although its value {value} is not below {limit}", "is it the right semaphore? SEMINIT sets its maximum, which is 0 at first; else wait with SEMWAIT wait_sem_cond=2 before the post")  # fmt: skip
GET_EMPTY = error("SEM-GET-EMPTY", NCB, "semaphore {semaphore} is taken although its value is 0", "take only from the semaphore that SEMWAIT wait_sem_cond=1, or a poll, has seen above 0")  # fmt: skip
STORE_VALUE = error("SEM-STORE-VALUE", UNIMPLEMENTED, "store of {value:#x} to the window of semaphore {semaphore}: only 0 (post) and 1 (get) are meant", "store 0 to post or 1 to get")  # fmt: skip


@njit
def note(s: Any, i: Any, taken: Any, agent: Any, core: Any, pc: Any) -> None:
    """Note the last agent that changed semaphore `i`: thread 0-2, or 3 for a store of `core`."""
    s.sem_by[i & 7, taken] = 1 + agent + 8 * core
    s.sem_pc[i & 7, taken] = np.uint32(pc)


@njit
def post(s: Any, i: Any) -> None:
    """Increment semaphore `i` (0-7); 15 stays 15."""
    if s.sem[i & 7] < LIMIT:
        s.sem[i & 7] += 1


@njit
def get(s: Any, i: Any) -> None:
    """Decrement semaphore `i` (0-7); 0 stays 0."""
    if s.sem[i & 7] > 0:
        s.sem[i & 7] -= 1


@njit
def posted_full(s: Any, i: Any, limit: Any) -> Any:
    """Status of posting semaphore `i`, whose value has reached `limit`.

    By the ISA text its maximum is for SEMWAIT alone, and production kernels post beyond it.
    """
    if follows_llk(s) and s.sem[i & 7] < LIMIT:
        note_rule(s, POST_FULL, semaphore=i, value=s.sem[i & 7], limit=limit)
        return np.int64(0)
    return undefined(s, POST_FULL, semaphore=i, value=s.sem[i & 7], limit=limit)


@njit
def first_zero(s: Any, selected: Any) -> Any:
    """Lowest semaphore of the mask `selected` whose value is 0, or -1."""
    for i in range(COUNT):
        if (selected >> i) & 1 and s.sem[i] == 0:
            return i
    return -1


@njit
def first_full(s: Any, selected: Any) -> Any:
    """Lowest semaphore of the mask `selected` whose value is not below its maximum, or -1."""
    for i in range(COUNT):
        if (selected >> i) & 1 and s.sem[i] >= s.sem_max[i]:
            return i
    return -1


@njit
def store(s: Any, i: Any, data: Any) -> Any:
    """A RISC-V store to the window of semaphore `i`: bit 0 clear posts, set gets (SyncUnit).

    Returns DONE, or the number of the violated rule with nothing changed.
    """
    status = DONE
    if data & ~1:
        status = undefined(s, STORE_VALUE, semaphore=i, value=data)
    elif data & 1 and s.sem[i & 7] == 0:
        status = undefined(s, GET_EMPTY, semaphore=i)
    elif data & 1 == 0 and s.sem[i & 7] >= LIMIT:
        status = posted_full(s, i, LIMIT)
    if status == DONE:
        if data & 1:
            get(s, i)
        else:
            post(s, i)
    return status
