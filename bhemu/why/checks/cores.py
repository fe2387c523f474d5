"""Cores that leave their memory: a stack that grows into data, a pc outside of all ELFs."""

from collections.abc import Iterator, Sequence
from typing import Any

from bhemu.jit.subset import JIT
from bhemu.memmap import CORE_NAMES
from bhemu.why.check import Check, Context
from bhemu.why.findings import Finding, merged
from bhemu.why.order.conflicts import Observed, observed
from bhemu.why.order.observe import is_own
from bhemu.why.steps import Act, Instruction


def _overflows(seen: Observed) -> Iterator[Finding]:
    """The cores of a tile whose sp was within their data when they accessed memory."""
    for core, (start, end, pc, sp, time) in enumerate(seen.record.stack.tolist()):
        if pc:
            name = CORE_NAMES[core]
            who = Act(seen.tile, Instruction(time, core, pc, 0)).placed()
            text = f"the stack of {name} grows to {sp:#x}, {end - sp} bytes into its data, which"
            told = f"its sp was {start:#x} at most: {start - end} bytes are free below that,"
            yield of_stack(name, f"{text} end at {end:#x}", who, f"{told} {start - sp} used")


def of_stack(core: str, text: str, who: dict[str, Any], *told: str) -> Finding:
    """The finding of a stack that has come into the data of its core."""
    advice = "use less of it: smaller arrays, no deep recursion; or move data to L1"
    return Finding("stack", "error", text, who, {"core": core}, told, advice)


CHECK = Check(
    name="stack",
    proves="that sp of a core was below the end of the data that its ELFs have in local memory when"
    " it loaded or stored; the culprit is the function whose frame did it",
    misses="stacks in L1, frames that a function uses without moving sp; of a chip of more than 64"
    " tiles all but 32",
    cost="the observed run of `races`",
    applies=lambda seen: 9 if JIT else 0,
    run=lambda context: merged(_overflows(seen) for seen in observed(context)),
)


# A core that executes what is not its own code.


_KINDS = ("elf", "llk")  # of these every core has its own ELF


def _jumps(context: Context) -> Sequence[Finding]:
    astray = (  # cores whose pc is outside of all of their ELFs
        core.images and core.retired and not is_own(tile, core.index, core.pc)
        for tile in context.tiles(context.symptom.machine)
        for core in tile.core.values()
    )
    if context.program.kind not in _KINDS or not any(astray):
        return []
    found = []
    left = [(seen.tile, *one) for seen in observed(context) for one in seen.left]
    for tile, step, target in left:
        act, core = Act(tile, step), CORE_NAMES[step.core]
        text = f"{core} leaves its own code: it goes on at {target:#x}, which no ELF of it holds"
        advice = "look at the function pointer, or who overwrote the return address"
        victim, told = {"place": f"L1 {target:#x}"}, (f"the jump: {act.where}",)
        found.append(Finding("jumps", "error", text, act.placed(), victim, told, advice))
    return merged([found])


JUMPS = Check(
    "jumps",
    proves="that a core went on outside all of its ELFs: a wrong function pointer, a return address"
    " that was overwritten",
    misses="code that another core has written; kernels under firmware; of a chip of more than 64"
    " tiles all but 32",
    cost="the observed run of `races`, where a core stands outside its ELFs",
    applies=lambda seen: 0 if seen.fine or not JIT else 85,
    run=_jumps,
)
