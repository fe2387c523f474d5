"""What a vector word reads and writes, for the stalls behind a MAD instruction while macros run.

The table is the text of SFPMAD ("Instruction scheduling", cautions), Blackhole ISA; that it fits
the instructions is seen by executing them with one register changed at a time.
"""

import itertools
from typing import Any

import numpy as np
import pytest
from matrix_reference import rule
from sfpu_runner import fresh
from unit_runner import numbers, run, view

from bhemu.tensix.insn import assemble, instructions
from bhemu.tensix.state import State
from bhemu.tensix.units.vector import macro, schedule

D, C, B, A = 2, 5, 3, 6  # the registers of the words, all different
MAD = {"lreg_src_a": A, "lreg_src_b": B, "lreg_src_c": C, "lreg_dest": D}
D_C = {"lreg_dest": D, "lreg_c": C}
ALL = set(range(8))
Case = tuple[str, dict[str, int], set[int], set[int], set[int]]


def case(
    name: str, fields: dict[str, int], noticed: set[int], writes: set[int], hidden: Any = ()
) -> Case:
    return name, fields, noticed, writes, set(hidden)


# Fields; registers that the stall logic sees it read; that it writes; that it reads unnoticed.
CASES: list[Case] = [
    case("SFPNOP", {}, set(), set()),
    case("SFPLOADI", {"lreg_ind": D, "instr_mod0": 2}, set(), {D}),
    case("SFPLOAD", {"lreg_ind": D, "instr_mod0": 4}, set(), {D}),
    case("SFPSTORE", {"lreg_ind": D, "instr_mod0": 4}, {D}, set()),
    *(case("SFPMAD", MAD | {"instr_mod1": m}, {A, B, C}, {D}) for m in (0, 1, 2, 3)),
    case("SFPMAD", MAD | {"instr_mod1": 4}, ALL, {D}),
    case("SFPMAD", MAD | {"instr_mod1": 8}, {A, B, C, 7}, {D}),
    case("SFPADD", MAD | {"lreg_src_a": 10}, {B, C}, {D}),
    case("SFPMUL", MAD | {"lreg_src_c": 9}, {A, B}, {D}),
    case("SFPMUL24", MAD | {"lreg_src_c": 9}, {A, B}, {D}),
    *(case(n, {"lreg_dest": D, "imm16_math": 0x3FC0}, {D}, {D}) for n in ("SFPADDI", "SFPMULI")),
    case("SFPADDI", {"lreg_dest": D, "instr_mod1": 8}, {D, 7}, {D}),
    case("SFPLUT", {"lreg_ind": D, "instr_mod0": 4}, {0, 1, 2, 3}, {D}),
    case("SFPLUT", {"lreg_ind": D, "instr_mod0": 12}, {0, 1, 2, 3, 7}, {D}),
    *(case("SFPLUTFP32", {"lreg_dest": D, "instr_mod1": m}, ALL - {7}, {D}) for m in (0, 2, 4)),
    *(case(n, D_C | {"instr_mod1": 0}, {D, C}, {D}) for n in ("SFPAND", "SFPOR")),
    *(
        case(n, D_C | {"instr_mod1": 1, "imm12_math": B}, {D, C}, {D}, {B})
        for n in ("SFPAND", "SFPOR")
    ),
    case("SFPXOR", D_C, {D, C}, {D}),
    case("SFPNOT", D_C, {C}, {D}),
    *(
        case(n, D_C | {"instr_mod1": m}, {C}, {D})
        for n in ("SFPABS", "SFPLZ", "SFPEXEXP", "SFPEXMAN", "SFPMOV", "SFPDIVP2")
        for m in (0, 1)
        if not (n == "SFPLZ" and m)
    ),
    *(case("SFPARECIP", D_C | {"instr_mod1": m, "imm12_math": B}, {B, C}, {D}) for m in (1,)),
    case("SFPCAST", {"lreg_dest": D, "lreg_src_c": C}, {C}, {D}),
    case(
        "SFP_STOCH_RND",
        {"lreg_dest": D, "lreg_src_c": C, "lreg_src_b": B, "instr_mod1": 4},
        {B, C},
        {D},
    ),
    *(
        case(n, D_C | {"instr_mod1": m}, {D, C}, {D})
        for n in ("SFPSETEXP", "SFPSETMAN", "SFPSETSGN")
        for m in (0, 1)
    ),
    *(case(n, D_C | {"instr_mod1": 8}, {D, C}, {D}) for n in ("SFPGT", "SFPLE")),
    case("SFPSETCC", {"lreg_c": C}, {C}, set()),
    *(case(n, {}, set(), set()) for n in ("SFPENCC", "SFPCOMPC", "SFPPUSHC")),
    case("SFPIADD", D_C | {"instr_mod1": 4}, {C}, {D}, {D}),
    case("SFPIADD", D_C | {"instr_mod1": 5}, {C}, {D}),
    case("SFPSHFT", D_C, {C}, {D}, {D}),
    case("SFPSHFT", D_C | {"instr_mod1": 5, "imm12_math": 3}, {C}, {D}),
    case("SFPCONFIG", {"config_dest": 12}, set(), set(), {0}),
    case("SFPCONFIG", {"config_dest": 15, "instr_mod1": 1}, set(), set()),
    case("SFPSWAP", {"lreg_dest": D, "lreg_src_c": C}, {D, C}, {D, C}),
    *(
        case("SFPSWAP", {"lreg_dest": D, "lreg_src_c": C, "instr_mod1": m}, {D, C}, {D, C}, {D, C})
        for m in (1, 3, 9)
    ),
    case("SFPTRANSP", {}, ALL, ALL),
    case("SFPSHFT2", {"instr_mod1": 0}, {0, 1, 2, 3}, {0, 1, 2, 3}),
    case("SFPSHFT2", {"instr_mod1": 1}, {0, 1, 2, 3}, {0, 1, 2, 3}),
    case("SFPSHFT2", {"instr_mod1": 2, "lreg_src_c": C}, set(), {0, 1, 2, 3}, {1, 2, 3, C}),
    *(
        case("SFPSHFT2", {"instr_mod1": m, "lreg_src_c": C, "lreg_dest": D}, set(), {D}, {C})
        for m in (3, 4)
    ),
    case(
        "SFPSHFT2",
        {"instr_mod1": 5, "lreg_src_c": C, "lreg_dest": D, "imm12_math": B},
        {C, D},
        {D},
        {B},
    ),
    case(
        "SFPSHFT2",
        {"instr_mod1": 6, "lreg_src_c": C, "lreg_dest": D, "imm12_math": B},
        {C, D},
        {D},
        {B},
    ),
]


def stalls(word: int, register: int, counting: int) -> str:
    """What becomes of the word when the instruction before it writes the register."""
    s = fresh(1)
    s.macro_last[macro.MAD_WRITES] = 1 << register
    number = int(macro.stalls(view(s), np.int64(word), np.int64(counting)))
    if number < 0:
        assert numbers(s, number) == [word, register]
        return rule(number).removeprefix("VECTOR-MACRO-")
    return "STALL FOR SURE" if number else ""


@pytest.mark.parametrize(("name", "fields", "noticed", "writes", "hidden"), CASES)
def test_a_word_behind_a_mad_instruction(
    name: str, fields: dict[str, int], noticed: set[int], writes: set[int], hidden: set[int]
) -> None:
    word = assemble(name, **fields)
    for register, counting in itertools.product(range(8), (0, 1)):
        want = "HAZARD" if register in hidden else ""
        if not want and register in noticed:
            want = "STALL FOR SURE"
        if not want and register in writes:
            want = "STALL" if counting else "STALL FOR SURE"
        assert stalls(word, register, counting) == want, (register, counting)


def outcome(s: State) -> list[Any]:
    members = ("cc", "cc_en", "cc_stack", "cc_depth", "dst", "prng", "lane_config")
    return [getattr(s, name).tolist() for name in members]


DIRECT = [c for c in CASES if 7 not in c[2] or c[0] == "SFPTRANSP" or c[1].get("instr_mod1") == 4]


@pytest.mark.parametrize(("name", "fields", "noticed", "writes", "hidden"), DIRECT)
def test_the_table_fits_the_instructions(
    name: str, fields: dict[str, int], noticed: set[int], writes: set[int], hidden: set[int]
) -> None:
    """Only registers that count as read change a result; only those that count change."""
    needed = set()
    for seed in range(2):
        states = []
        for changed in range(-1, 8):
            s = fresh(seed)
            s.lreg[0, :] = s.lreg[0, 0]
            if changed >= 0:
                s.lreg[changed] ^= 0xBFFFFFF1
            before = s.lreg.copy()
            assert run(s, name, **fields) == 0
            states.append((s, before))
        plain, before = states[0]
        wrote = {r for r in ALL if (plain.lreg[r] != before[r]).any()}
        assert wrote <= writes
        for register in ALL:
            s, before = states[1 + register]
            same = ALL - {register} if (s.lreg[register] == before[register]).all() else ALL
            lregs = all((s.lreg[r] == plain.lreg[r]).all() for r in {*same, 12})
            if not lregs or outcome(s) != outcome(plain):
                needed.add(register)
    assert needed <= noticed | hidden
    assert hidden <= needed


SUB_UNITS = {
    "MAD": "SFPADD SFPADDI SFPLUT SFPLUTFP32 SFPMAD SFPMUL SFPMULI SFPMUL24".split(),
    "two": ["SFPSWAP"],
}


@pytest.mark.parametrize("name", [c.name for c in instructions().values() if c.unit == "vector"])
def test_cycles_of_each_instruction(name: str) -> None:
    """Two: the MAD sub-unit, SFPSWAP, and SFPSHFT2 modes 2 to 4 (SFPSHFT2, SFPSWAP, SFPMAD)."""
    fields = {"instr_mod1"} & {
        f.name for c in instructions().values() if c.name == name for f in c.fields
    }
    for mode in range(16):
        word = assemble(name, **dict.fromkeys(fields, mode))
        busy = name == "SFPSWAP" or (name == "SFPSHFT2" and 2 <= mode <= 4 and bool(fields))
        assert bool(schedule.two_cycles(np.int64(word))) == busy
        two = busy or name in SUB_UNITS["MAD"]
        assert int(schedule.latency(np.int64(word))) == 1 + two


@pytest.mark.parametrize(
    ("name", "fields", "want"),
    [
        *(("SFPMOV", {"instr_mod1": m, "lreg_c": 9}, m == 8) for m in (0, 1, 2, 8)),
        *(("SFPMOV", {"instr_mod1": 8, "lreg_c": c}, c == 9) for c in (0, 8, 9, 10, 15)),
        *(("SFPCAST", {"instr_mod1": m, "lreg_src_c": 9}, m == 1) for m in (0, 1, 3)),
        *(("SFPNOT", {"lreg_c": c}, False) for c in (8, 9)),
        *(("SFPABS", {"instr_mod1": m, "lreg_c": 9}, False) for m in (0, 1)),
        *(("SFP_STOCH_RND", {"instr_mod1": 1, "rnd_mode": m}, True) for m in (0, 1, 2)),
    ],
)
def test_what_steps_the_random_state(name: str, fields: dict[str, int], want: bool) -> None:
    s = fresh(1)
    before = s.prng.copy()
    assert run(s, name, **fields) == 0
    assert (s.prng != before).any() == want
    assert bool(schedule.draws(np.int64(assemble(name, **fields)))) == want
