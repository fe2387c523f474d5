"""Cores with other ELFs: two with each other's, and one with its own that no core has."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations

from bhemu.program.specs import CoreSpec

_NAMED = 0.3  # cost where the names of the files say so


@dataclass(frozen=True)
class OtherElfs:
    """The cores whose ELFs are others, what to do, its cost, and all cores then."""

    names: tuple[str, ...]
    text: str
    cost: float
    cores: Mapping[str, CoreSpec]


def other_elfs(cores: Mapping[str, CoreSpec], unlike: float) -> list[OtherElfs]:
    """Cheap ones first; `unlike`: cost where the names of the files do not say so."""
    return sorted((*_exchanges(cores, unlike), *_unused(cores)), key=lambda one: one.cost)


def _exchanges(cores: Mapping[str, CoreSpec], unlike: float) -> Iterator[OtherElfs]:
    for a, b in combinations(cores, 2):
        first, second = cores[a], cores[b]
        if first.elf is None or second.elf is None or first.elf == second.elf:
            continue
        cost = _NAMED if (first.elf.stem, second.elf.stem) == (b, a) else unlike
        changed = {a: replace(first, elf=second.elf), b: replace(second, elf=first.elf)}
        yield OtherElfs((a, b), f"exchange the ELFs of {a} and {b}", cost, {**cores, **changed})


def _unused(cores: Mapping[str, CoreSpec]) -> Iterator[OtherElfs]:
    """A core that has another one's ELF, while a file of its own name lies beside it."""
    for name, spec in cores.items():
        if spec.elf is None:
            continue
        own = spec.elf.with_name(f"{name}.elf")
        others = [other for other in cores if other != name and cores[other].elf == spec.elf]
        if others and own.is_file() and all(one.elf != own for one in cores.values()):
            text = f"{name} has the ELF of {others[0]}, {spec.elf.name}: {own.name} instead"
            yield OtherElfs((name,), text, _NAMED, {**cores, name: replace(spec, elf=own)})
