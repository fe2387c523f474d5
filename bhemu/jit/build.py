"""Compiled entries: from the cache, or compiled now."""

import functools
import hashlib
import importlib
import importlib.util
import json
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from bhemu.errors import InputError
from bhemu.jit import cache, host, interpreted, machine_code
from bhemu.jit.subset import Signature

before_compiling: list[Callable[[str], None]] = []  # told the name of what is compiled next
_KEPT_NOTES = 50  # of them are kept: one for each version of the sources
_yields = False
_loaded: dict["Entry", int] = {}  # addresses
_expected: set["Entry"] = set()  # that had to be compiled when they were first asked for
_now = ""  # the entry that this process compiles, or waits for while another one does
_one_at_a_time = threading.RLock()


class Outlook(NamedTuple):
    """What is compiled now ("" for nothing), and how many entries are done of those known of."""

    name: str
    done: int
    known: int


class Code(NamedTuple):
    """A function of C, and the time that this process spent compiling it (or waiting for another
    that did) when it asked for it first; 0 when it was kept, or is loaded already.
    """

    address: int
    seconds: float


@dataclass(frozen=True)
class Entry:
    """What is compiled on its own: a function, or the function `entry` of a generated module.

    `function`: it, or None for one that the module has by this name; `text`: gives the text of a
    generated module. Nothing of that is looked at while the machine code is kept.
    """

    name: str
    module: str
    signature: Signature = field(compare=False)
    function: Any = None
    text: Callable[[], str] | None = field(default=None, compare=False)

    def resolved(self) -> Any:
        """The function itself."""
        if self.function is not None:
            return self.function
        if self.text is None:
            return getattr(importlib.import_module(self.module), self.name)
        names: dict[str, Any] = {"__name__": self.module}
        exec(compile(self.text(), f"<{self.name}>", "exec"), names)
        return names["entry"]

    def _made_from(self) -> str:
        from bhemu.jit import keys  # looks into code: not needed where nothing has changed

        return keys.key(self.signature, self.resolved())

    @property
    def path(self) -> str:
        """What tells it from other entries of the same sources, also in other processes."""
        return f"{self.module}.{self.name}"

    def own(self) -> bool:
        """Whether its sources are those of this package, as they are now."""
        package = self.module.partition(".")[0] == __name__.partition(".")[0]
        return package and bool(host.fingerprint())

    def key(self) -> str:
        """The key under which its machine code is kept."""
        if not self.own():
            return self._made_from()
        return str(noted(self.path, self._made_from))


def _index_name() -> str:
    """Name of the notes that belong to these sources and tools."""
    seen = f"{host.fingerprint()} {host.tools()}"
    return f"{cache.KEYS}{hashlib.sha256(seen.encode()).hexdigest()[:20]}"


def _read_notes() -> dict[str, Any]:
    data = cache.read(_index_name())
    return dict(json.loads(data)) if data else {}


_known_notes = functools.cache(_read_notes)


def noted(name: str, make: Callable[[], Any]) -> Any:
    """What `make` gives, JSON that follows from the package's sources and the tools alone.

    It is kept for as long as these are the same.
    """
    if not host.fingerprint():
        return make()
    known = _known_notes()
    if name not in known:
        known[name] = make()
        known |= _read_notes()  # other processes note some at the same time
        cache.write(_index_name(), json.dumps(known).encode())
        cache.prune(cache.KEYS, _KEPT_NOTES)
    return known[name]


def function(signature: Signature, compiled: Callable[..., Any]) -> Entry:
    """The entry that is a function itself."""
    return Entry(compiled.__name__, compiled.__module__, signature, compiled)


def function_at(signature: Signature, path: str) -> Entry:
    """The entry that is the function of this path, whose module is imported to compile it."""
    module, _, name = path.rpartition(".")
    return Entry(name, module, signature)


def generated(signature: Signature, name: str, module: str, text: Callable[[], str]) -> Entry:
    """The function `entry` of a generated module, given by `text`, that calls into `module`."""
    return Entry(name, module, signature, text=text)


def is_kept(wanted: Entry) -> bool:
    """Whether an entry need not be compiled."""
    return _find_image(wanted) is not None


def expect(wanted: Iterable[Entry]) -> None:
    """Entries that will be asked for: those that are not kept yet count in the outlook."""
    _expected.update(one for one in wanted if not is_there(one))


def outlook() -> Outlook:
    """How far the compiling is, of this process and those that compile ahead for it."""
    known = list(_expected)
    return Outlook(_now, sum(map(is_there, known)), len(known))


def is_there(wanted: Entry) -> bool:
    """As is_kept, without a look at what the file in the cache is worth."""
    if wanted in _loaded:
        return True
    carried = wanted.own() and host.find(wanted.path) is not None
    return carried or cache.has(_file(wanted))


def _file(wanted: Entry) -> str:
    return f"{wanted.name}-{wanted.key()}"


def load(wanted: Entry) -> Code:
    """The machine code of an entry: loaded already, kept, or compiled now."""
    with _one_at_a_time:  # tiles of a chip may run in several threads
        if (address := _loaded.get(wanted)) is not None:
            return Code(address, 0)
        begin = time.perf_counter()
        kept = _find_image(wanted)
        found = machine_code.unpacked(kept or _compiled(wanted))
        address = _loaded[wanted] = machine_code.load(found)
        return Code(address, 0 if kept else time.perf_counter() - begin)


def image(wanted: Entry) -> bytes:
    """The machine code of an entry, packed: kept, or compiled now."""
    return _find_image(wanted) or _compiled(wanted)


def _find_image(wanted: Entry) -> bytes | None:
    """What the wheel carries, or the cache holds."""
    carried = host.find(wanted.path) if wanted.own() else None
    return carried or cache.read(_file(wanted))


def _compiled(wanted: Entry) -> bytes:
    """Compiled now, here or by another process that does so already."""
    global _now
    _expected.add(wanted)
    _now = wanted.name
    try:
        with cache.alone(wanted.name, wait=not _yields) as waited:
            if waited and (kept := _find_image(wanted)):
                return kept
            for announce in before_compiling:
                announce(wanted.name)
            if importlib.util.find_spec("numba") is None:
                raise InputError(f"{wanted.name} is not compiled yet", hint=interpreted.COMPILER)
            from bhemu.jit.emit import emit

            data = emit(wanted.signature, wanted.resolved()).packed()
            cache.write(_file(wanted), data)
            return data
    finally:
        _now = ""


def yield_to_others(yields: bool = True) -> None:
    """Whether cache.BusyError is raised for an entry that another process is compiling."""
    global _yields
    _yields = yields
