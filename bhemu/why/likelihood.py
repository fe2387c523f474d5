"""How likely a finding is what the user looks for, in percent: one table orders all findings.

What is certain and has one culprit comes first; what may be meant so, or is a consequence, later.
"""

LIKELY = {
    "argument as others": 101,  # PROGRAM.toml gives it to all other cores, and then all is right
    "stack": 100,
    "buffer": 100,
    "jump": 100,
    "code written": 100,  # explains a jump out of the code as well
    "limit": 99,  # the program is right and needs more time
    "overwritten": 99,  # what a hang waits for was there
    "cure of a conflict": 99,  # one value, with which no conflict is left in any schedule
    "race": 98,
    "header": 97,  # an address that is off by the header of 16 bytes
    "order of tiles": 97,  # a transfer that is announced before it has arrived, or too early
    "too early": 96,  # one that is used or written over too early
    "too early, run wrong": 94,  # a value that is wrong explains it as well
    "slot": 96,
    "not waited for": 96,  # a semaphore that is taken at 0
    "no instruction": 95,  # an error at a word that is none, with its line
    "unwritten behind stores": 96,  # a loop that ends early, and its bound is a round one
    "cure": 95,  # a change that makes the run right, of few
    "format of other pages": 94,  # and not of these; what the same access does wrong comes behind
    "race, no schedule ends otherwise": 94,  # a cure explains it as well
    "one word more": 86,  # than is recorded: a cure says which of both is wrong
    "not ordered transfer": 92,
    "late transfer": 90,
    "stale": 88,
    "unread": 88,  # a hang waits for an answer of a core that has ended
    "assert": 88,  # the program itself says that something is wrong
    "cure of many": 87,
    "unwritten beside stores": 87,  # a loop that ends early, or leaves words out
    "far cure": 86,
    "order of an input": 93,  # in which it is read and with which the run is right
    "format, nobody set": 86,  # and an output is wrong
    "layout": 85,
    "unwritten, output wrong": 85,
    "leak, output wrong": 80,
    "count": 84,  # a hang waits for a number that it does not reach
    "format": 80,
    "unit at work": 80,
    "unwritten, added to": 79,  # a packer that adds to L1 where it is to write
    "nothing unwritten": 77,  # a value with which a run is right whatever nobody has written
    "unwritten": 75,
    "page again": 78,  # a page that is moved twice while another one never is
    "far cure of many": 75,
    "ended with pages left": 76,  # that a hang waits for, with outputs that are not right
    "unanswered": 72,  # a kernel that ends with requests under way
    "unreleased": 73,  # a hang waits for a semaphore that its other side never releases
    "unsent": 71,  # a hang waits for a word that nobody sends
    "leak": 70,
    "bank": 65,
    "race of two that wait": 60,
    "cure that no output confirms": 60,
    "message that is no address": 59,
    "field of a refused word": 58,
    "speed": 55,  # no pair of accesses is known
    "ended early": 52,  # a hang waits for a core that has ended, with outputs that are not right
    "other": 50,
    "source of an output": 40,  # what a core has stored goes into a wrong element
}


def likely(kind: str, rank: int = 0) -> int:
    """Of a finding of this kind, the `rank`-th from 0 of its check."""
    return LIKELY[kind] - rank
