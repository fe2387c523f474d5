"""The order of findings: by class, and within a class by how surely the named line is wrong.

A class says how much is known. A cure, by which only another program would be right, is the last.
"""

CLASSES = {
    "error": ("error",),  # refused by a rule
    "waiting": ("hang",),  # a cycle of waits, or one that nobody can end
    "order": ("races", "barriers", "transfers", "stale"),  # two accesses that nothing orders
    "unwritten": ("uninit", "leaks", "powerup", "slots", "banks"),  # a value that nobody has given
    "contract": ("buffers", "formats", "stack", "jumps", "program"),  # what PROGRAM.toml declares
    "origin": ("output", "place"),  # who made the first wrong element
    "cure": ("repair",),  # a change with which the run ends correctly
}
CLASS_OF = {name: kind for kind, names in CLASSES.items() for name in names}
_RANKS = {kind: rank for rank, kind in enumerate(CLASSES)}

LIKELY = {
    "stack": 100,
    "buffer": 100,
    "jump": 100,
    "code written": 100,  # explains a jump out of the code as well
    "limit": 99,  # the program is right and needs more time
    "overwritten": 99,  # an argument, or memory of a tile that is still needed
    "race": 98,
    "order of tiles": 97,  # a transfer that is announced before it has arrived, or too early
    "too early": 96,  # one that is used or written over too early
    "too early, run wrong": 94,  # a value that is wrong explains it as well
    "slot": 96,
    "no instruction": 95,  # an error at a word that is none, with its line
    "unwritten behind stores": 96,  # a loop that ends early, and its bound is a round one
    "format of other pages": 94,  # and not of these; what the same access does wrong comes behind
    "header": 97,  # an address that is off by the header of 16 bytes
    "one word more": 86,  # than is recorded
    "not ordered transfer": 92,
    "late transfer": 90,
    "stale": 88,
    "assert": 88,  # the program itself says that something is wrong
    "unwritten beside stores": 87,  # a loop that ends early, or leaves words out
    "format, nobody set": 86,  # and an output is wrong
    "layout": 85,
    "unwritten, output wrong": 85,
    "leak, output wrong": 80,
    "format": 80,
    "unit at work": 80,
    "unwritten, added to": 79,  # a packer that adds to L1 where it is to write
    "unwritten": 75,
    "page again": 78,  # a page that is moved twice while another one never is
    "unanswered": 72,  # a kernel that ends with requests under way
    "leak": 70,
    "bank": 65,
    "race of two that wait": 60,
    "message that is no address": 59,
    "field of a refused word": 58,
    "speed": 55,  # no pair of accesses is known
    "other": 50,
    "source of an output": 40,  # what a core has stored goes into a wrong element
}


def likely(kind: str, rank: int = 0) -> int:
    """Of a finding of this kind, the `rank`-th from 0 of its check."""
    return LIKELY[kind] - rank


def place_of(check: str, likelihood: int) -> tuple[int, int]:
    """The place of a finding among others, to sort by."""
    return _RANKS[CLASS_OF[check]], -likelihood
