"""Dataclasses of bhemu/system/records.py: whatever is observable is as the library makes it."""

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from bhemu.system.records import dataclass


def _classes(made: Callable[..., Any], frozen: bool, **more: bool) -> Any:
    @made(frozen=frozen, **more)
    class Plain:
        """One of each kind of field."""

        first: int
        second: str = "b"
        third: list[int] = dataclasses.field(default_factory=list, compare=False)
        fourth: int = dataclasses.field(default=4, repr=False)
        fifth: int = dataclasses.field(init=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "fifth", self.first + self.fourth)

    @made(frozen=frozen, **more)
    class Derived(Plain):
        """With a field more, and another default."""

        second: str = "c"
        sixth: tuple[int, ...] = ()

    @made(frozen=frozen, **more)
    class Single:
        """One field only."""

        value: Any

        def __repr__(self) -> str:
            return "single"

    return Plain, Derived, Single


def _outcome(function: Callable[[], Any]) -> Any:
    try:
        return function()
    except Exception as problem:
        return type(problem), str(problem).replace("test_records.", "")


@pytest.mark.parametrize("eq", [True, False])
@pytest.mark.parametrize("frozen", [True, False])
def test_instances_are_as_those_of_the_library(frozen: bool, eq: bool) -> None:
    seen = []
    for made in (dataclass, dataclasses.dataclass):
        plain, derived, single = _classes(made, frozen, eq=eq)
        one, other, more = plain(1), plain(1, third=[1]), derived(1, "b", sixth=(2,))

        def assign(name: str, it: Any = one) -> None:
            setattr(it, name, 7)

        nan = float("nan")
        seen.append(
            [
                repr(one),
                repr(more),
                repr(single(2)),
                one == other,
                one == plain(2),
                one == more,
                one != 1,
                single(nan) == single(nan),
                derived(1).second,
                one.third is not plain(1).third,
                dataclasses.asdict(dataclasses.replace(one, first=9)),
                [f.name for f in dataclasses.fields(derived)],
                dataclasses.is_dataclass(plain),
                plain.__match_args__,
                _outcome(lambda: hash(plain(1)) == hash(plain(1, third=[3]))),  # noqa: B023
                _outcome(lambda: plain()),  # noqa: B023
                _outcome(lambda: plain(1, none=2)),  # noqa: B023
                _outcome(lambda: plain(1, fifth=2)),  # noqa: B023
                _outcome(lambda: assign("first")),
                _outcome(lambda: assign("unknown")),
                _outcome(lambda: delattr(other, "second")),  # noqa: B023
                repr(one),
            ]
        )
    assert seen[0] == seen[1]


def test_a_subclass_without_fields_takes_attributes_of_its_own() -> None:
    plain, _, _ = _classes(dataclass, frozen=True)

    class Own(plain):
        pass

    own = Own(1)
    own.more = 2
    assert own.more == 2
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'first'"):
        own.first = 2
