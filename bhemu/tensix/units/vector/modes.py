"""What the modes of vector instructions with many of them stand for (operand.py)."""

from bhemu.operand import choice, flags, parts

_INVERT = 13  # of SFPPUSHC and SFPPOPC

SET = choice(
    {
        0: "flags where LReg[lreg_c] is negative",
        2: "flags where it is not 0",
        4: "flags where it is not negative",
        6: "flags where it is 0",
        **dict.fromkeys((1, 3, 5, 7), "flags = imm12_math"),
        **dict.fromkeys(range(8, 16), "flags = 0"),
    },
    about="while flags are not in use: flags = 0",
)
"""instr_mod1 of SFPSETCC."""

ENABLED = parts(
    (
        *(1, 0),
        choice(
            {
                0: "the use of flags stays as it is",
                1: "the use of flags is toggled",
                **dict.fromkeys((2, 3), "the use of flags = bit 0 of imm12_math"),
            }
        ),
    ),
    (3, 3, choice({0: "flags = 1", 1: "flags = bit 1 of imm12_math"})),
)
"""instr_mod1 of SFPENCC."""

# What modes 1 to 15 of SFPPUSHC and SFPPOPC make of two flags a, b
_RESULTS = (
    *("b", "not b", "a and b", "a or b", "a and not b", "a or not b", "b and not a"),
    *("b or not a", "neither a nor b", "not both", "either a or b", "a same as b", "not b"),
    *("1, in use", "0, in use"),
)
PUSHED = choice(
    {
        0: "pushes the flags",
        **{i: f"top of the stack = {text}" for i, text in enumerate(_RESULTS, start=1)},
        _INVERT: "top of the stack and flags = not b",
    },
    about="a: the top of the stack, b: the flags",
)
"""instr_mod1 of SFPPUSHC."""

POPPED = choice(
    {
        0: "pops the flags",
        **{i: f"flags = {text}" for i, text in enumerate(_RESULTS, start=1)},
        _INVERT: "flags = not a",
    },
    about="a: the flags, b: the top of the stack, which stays",
)
"""instr_mod1 of SFPPOPC."""

COMPARED = flags(
    "sets the flags",
    "changes the top of the stack in all lanes: and",
    "with bit 1: or in place of and",
    "LReg[lreg_dest] = all ones or 0",
)
"""instr_mod1 of SFPLE and SFPGT."""

# Lanes (bit mask) in which LReg[lreg_dest] receives the greater value, by mode.
GREATER = (
    *(0, 0, 0xFFFF0000, 0xFF00FF00, 0x00FFFF00),
    *(0xFFFFFF00, 0xFFFF00FF, 0xFF00FFFF, 0x00FFFFFF, 0xFFFFFFFF),
)


def _greater_in(mode: int) -> str:
    """The lanes of `GREATER`, in words: they come in groups of eight."""
    groups = [f"{8 * i}-{8 * i + 7}" for i in range(4) if GREATER[mode] >> 8 * i & 1]
    return "in lanes " + ", ".join(groups) if groups else "in none"


SWAPPED = choice(
    {
        0: "exchanges",
        **{i: f"the greater {_greater_in(i)}" for i in range(1, len(GREATER))},
    },
    about="the greater goes to LReg[lreg_dest] in these lanes, else to LReg[lreg_src_c]",
)
"""instr_mod1 of SFPSWAP."""

MOVED = choice(
    {
        0: "LReg[0..2] = LReg[1..3], LReg[3] = 0",
        1: "LReg[0..2] = LReg[1..3], LReg[3] = LReg[0] of the lane eight further on",
        2: "LReg[0..2] = LReg[1..3], LReg[3] = LReg[lreg_src_c] as in mode 3",
        3: "one lane up, around within eight",
        4: "one lane up within eight, 0 into the first",
        5: "LReg[imm12_math] shifted by LReg[lreg_src_c]",
        6: "LReg[imm12_math & 15] shifted by imm12_math",
    }
)
"""instr_mod1 of SFPSHFT2."""

_BOTH_WAYS = {
    0: "the format of the configuration",
    1: "FP16",
    2: "BF16",
    3: "FP32",
    4: "INT32: 32 bits",
}
LOADED = choice(
    {
        **_BOTH_WAYS,
        5: "INT8: sign-magnitude, 8 bits",
        6: "UINT16: 16 bits, zeros above",
        7: "HI16: 16 bits to the high half, zeros below",
        8: "INT16: sign-magnitude, 15 bits",
        9: "LO16: as UINT16",
        11: "ZERO",
        12: "INT32_SM: 32 bits",
        13: "INT8_COMP: sign-magnitude, 10 bits",
        14: "LO16_ONLY: 16 bits to the low half, the high one stays",
        15: "HI16_ONLY: 16 bits to the high half, the low one stays",
    },
    about="format of the datums in Dst",
)
STORED = choice(
    {
        **_BOTH_WAYS,
        5: "INT8: sign-magnitude, 10 bits",
        6: "UINT16: the low half",
        7: "HI16: 32 bits",
        8: "INT16: sign-magnitude, 15 bits",
        9: "LO16: 32 bits, the halves exchanged",
        11: "ZERO",
        12: "INT32_SM: 32 bits",
        13: "INT8_COMP: sign-magnitude, 10 bits",
        14: "LO16_ONLY: the low half",
        15: "HI16_ONLY: the high half",
    },
    about="format of the datums in Dst",
)
"""instr_mod0 of loads and of stores; 10 (INT32_ALL) is refused."""
