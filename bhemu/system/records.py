"""Dataclasses that are made in a quarter of the time: a generated __init__, the rest is shared.

`dataclass` takes frozen, repr and eq of the library's decorator, and gives what that gives; its
fields(), replace() and asdict() know them. The library compiles each method of each class.
"""

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any


def _initializer(cls: type, frozen: bool) -> Any:
    """The method __init__, which takes the fields in their order."""
    names: dict[str, Any] = {"put": object.__setattr__, "missing": dataclasses.MISSING}
    taken, lines = ["self"], []
    for i, one in enumerate(dataclasses.fields(cls)):
        made = one.default_factory is not dataclasses.MISSING
        value = one.name
        if made:
            names[f"make{i}"] = one.default_factory
            value = f"make{i}() if {one.name} is missing else {one.name}"
        if one.init:
            names[f"default{i}"] = one.default
            default = "missing" if made else f"default{i}"
            optional = made or one.default is not dataclasses.MISSING
            taken.append(f"{one.name}={default}" if optional else one.name)
        elif made:
            value = f"make{i}()"
        else:
            continue
        lines.append(
            f"put(self, {one.name!r}, {value})" if frozen else f"self.{one.name} = {value}"
        )
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    body = "\n    ".join(lines or ["pass"])
    exec(f"def __init__({', '.join(taken)}):\n    {body}", names)
    made_init = names["__init__"]
    made_init.__qualname__ = f"{cls.__qualname__}.__init__"
    return made_init


def _compared(cls: Any, frozen: bool) -> None:
    """Equality by the values of the fields, and with them a hash where they cannot change."""
    names = [one.name for one in dataclasses.fields(cls) if one.compare]
    values: Callable[[Any], Any] = lambda it: tuple(getattr(it, name) for name in names)  # noqa: E731
    if len(names) > 1:
        values = attrgetter(*names)  # gives a tuple only of several

    def equal(self: Any, other: Any) -> Any:
        alike = other.__class__ is self.__class__
        return values(self) == values(other) if alike else NotImplemented

    if "__eq__" not in vars(cls):
        cls.__eq__ = equal
    if vars(cls).get("__hash__") is None:
        cls.__hash__ = (lambda self: hash(values(self))) if frozen else None


def _frozen(cls: Any) -> None:
    """No field can be assigned or deleted."""
    names = frozenset(one.name for one in dataclasses.fields(cls))

    def refuse(self: Any, name: str, what: str) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot {what} field {name!r}")

    def assign(self: Any, name: str, value: Any) -> None:
        refuse(self, name, "assign to")
        super(cls, self).__setattr__(name, value)

    def delete(self: Any, name: str) -> None:
        refuse(self, name, "delete")
        super(cls, self).__delattr__(name)

    cls.__setattr__, cls.__delattr__ = assign, delete


def _shown(self: Any) -> str:
    """The method __repr__."""
    values = (f"{f.name}={getattr(self, f.name)!r}" for f in dataclasses.fields(self) if f.repr)
    return f"{self.__class__.__qualname__}({', '.join(values)})"


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls=None, **given):
        """As the decorator of the library."""
        if cls is None:
            return lambda cls: dataclass(cls, **given)
        frozen = given.get("frozen", False)
        dataclasses.dataclass(init=False, repr=False, eq=False)(cls)
        cls.__init__ = _initializer(cls, frozen)
        if given.get("eq", True):
            _compared(cls, frozen)
        if frozen:
            _frozen(cls)
        if given.get("repr", True) and "__repr__" not in vars(cls):
            cls.__repr__ = _shown
        return cls
