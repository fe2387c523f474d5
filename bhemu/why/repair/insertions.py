"""Edits that add what may be missing: a post, a bank given back, a word of another line."""

import functools
import operator
from collections.abc import Iterator

from bhemu.memmap import PC_BUF_BASE
from bhemu.riscv.assembly import addi, li, sw
from bhemu.tensix.insn import assemble, decode, disassemble
from bhemu.why.repair.edits import Code, Edit, Site, moves, pushes, pushing

_SEMAPHORES = PC_BUF_BASE + 0x20
_CLEARS, _WHERE = assemble("ZEROACC", clear_mode=3), 0x3FFF
_FIRST = 3  # lines of a thread
_MATRIX, _OTHERS = 2, 0.02  # its core; how much less likely others are to clear Dst
_ROUND = 24  # lines of its loop
_SET_UPS = ((2, 0), (1, 0), (2, 2), (1, 1))  # (most, value) of a semaphore
_SYNC_STALL = 0x02  # STALLWAIT holds back what posts and gets
_BANKS = tuple(assemble("SETRWC", bit_mask=0, clear_ab_vld=banks) for banks in (1, 2, 3)) + tuple(
    assemble("SETDVALID", setvalid=banks) for banks in (1, 2, 3)
)


def _semaphores(sites: list[Site]) -> list[int]:
    """Numbers of the semaphores that the program uses."""
    used: set[int] = set()
    for site in sites:
        for value in site.values:
            cls = decode(value) if pushes(site) else None
            if cls is not None and "sem_sel" in cls.operands(value):
                mask = cls.operands(value)["sem_sel"]
                used |= {k for k in range(8) if mask >> k & 1}
        if site.address is not None and _SEMAPHORES <= site.address < _SEMAPHORES + 32:
            used.add((site.address - _SEMAPHORES) // 4)
    return sorted(used)


def _waits_sync(site: Site) -> bool:
    """Whether it is a STALLWAIT that only a post or get would need."""
    if not pushes(site):
        return False
    cls = decode(site.values[0])
    if cls is None or cls.name != "STALLWAIT":
        return False
    return bool(cls.operands(site.values[0])["stall_res"] & _SYNC_STALL)


def _is_sync(site: Site) -> bool:
    cls = decode(site.values[0]) if pushes(site) else None
    return cls is not None and cls.unit == "sync"


def _after(group: list[Site], code: Code, *words: int) -> tuple[tuple[int, tuple[int, ...]], ...]:
    held = code.words[group[0].core]
    return tuple((one.pc, (held[one.pc], *words)) for one in group)


def edits(code: Code, groups: list[list[Site]], sites: list[Site]) -> Iterator[Edit]:
    """Words added behind every line that acts; what is likeliest there first."""
    semaphores = _semaphores(sites)
    hands = [(name, k) for k in semaphores for name in ("SEMPOST", "SEMGET")]
    order = {id(group): n for n, group in enumerate(groups)}
    for group in groups:
        core = group[0].core
        if not moves(code.words[core][group[0].pc]) or core > 3:
            continue
        following = next((g[0] for g in groups[order[id(group)] + 1 :] if g[0].core == core), None)
        stands = _waits_sync(group[0]) and not (following and _is_sync(following))
        late = -order[id(group)] / 10_000  # of equal ones the last is where it belongs
        for name, k in hands:
            word = assemble(name, sem_sel=1 << k)
            cost = 2 + late - (0.9 if stands else 0)
            yield Edit(core, _after(group, code, pushing(word)),
                       f"{disassemble(word)} added behind this", cost)  # fmt: skip
        for word in _BANKS:
            yield Edit(core, _after(group, code, pushing(word)),
                       f"{disassemble(word)} added behind this", 2.2 + late)  # fmt: skip
        free = code.free_registers(core)
        if group[0].address is not None and len(free) > 1:
            for k in semaphores:
                for value, name in ((0, "a post"), (1, "a get")):
                    store = [
                        *li(free[-1], _SEMAPHORES + 4 * k),
                        addi(free[-2], 0, value),
                        sw(free[-2], free[-1]),
                    ]
                    text = f"{name} of semaphore {k} added behind this"
                    yield Edit(core, _after(group, code, *store), text, 2.1 + late)


def _selected(words: list[tuple[str, dict[str, int]]], *names: str) -> int:
    """The semaphores that words of some names select, as bits."""
    return functools.reduce(
        operator.or_, (values["sem_sel"] for name, values in words if name in names), 0
    )


def set_up(code: Code, groups: list[list[Site]], sites: list[Site]) -> Iterator[Edit]:
    """SEMINIT of a semaphore that is used and that nobody sets up: next to another, or at first."""
    words = [word for site in sites if pushes(site) for word in site.values]
    known = [(cls.name, cls.operands(word)) for word in words if (cls := decode(word))]
    done = _selected(known, "SEMINIT")
    moved = _selected(known, "SEMPOST", "SEMGET")  # what is only waited for is another's
    for k in _semaphores(sites):
        if done >> k & 1 or not moved >> k & 1:
            continue
        begun: dict[int, int] = {}
        for group in groups:
            core = group[0].core
            begun[core] = begun.get(core, 0) + 1
            near = any((cls := decode(v)) and cls.name == "SEMINIT" for v in group[0].values)
            if not pushes(group[0]) or not (near or begun[core] <= _FIRST):
                continue
            for most, value in _SET_UPS:
                word = assemble("SEMINIT", sem_sel=1 << k, max_value=most, init_value=value)
                cost = (1.1 if near else 1.4) + (value > 0) / 10 + (most == 1) / 100
                yield Edit(core, _after(group, code, pushing(word)),
                           f"{disassemble(word)} added here", cost)  # fmt: skip


def cleared(code: Code, groups: list[list[Site]], sites: list[Site]) -> Iterator[Edit]:
    """Dst cleared behind the first words of a thread, or behind words of each round of its loop,
    where nobody clears all of it.
    """
    if any(_CLEARS in (value & ~_WHERE for value in site.values) for site in sites if pushes(site)):
        return
    for core in (_MATRIX, 1, 3):
        own = [group for group in groups if group[0].core == core and pushes(group[0])]
        rounds = [group for group in own[_FIRST:] if sum(one.count for one in group) > 1]
        for n, group in enumerate([*own[:_FIRST], *rounds[:_ROUND]]):
            cost = 1.3 + n / 1000 + _OTHERS * (core != _MATRIX)
            if moves(code.words[core][group[0].pc]):
                yield Edit(core, _after(group, code, pushing(_CLEARS)),
                           f"{disassemble(_CLEARS)} added here", cost)  # fmt: skip


def repeats(code: Code, groups: list[list[Site]]) -> Iterator[Edit]:
    """Each word of a core once more behind each of its other lines."""
    for n, group in enumerate(groups):
        core = group[0].core
        if not moves(code.words[core][group[0].pc]):
            continue
        words = {
            other[0].values[0]
            for other in groups
            if other[0].core == core and pushes(other[0]) and len(other[0].values) == 1
        }
        for word in sorted(words):
            yield Edit(core, _after(group, code, pushing(word)),
                       f"{disassemble(word)} added behind this", 2.5 - n / 10_000)  # fmt: skip
