"""Compiled entries: from the cache, or compiled now."""

import functools
import hashlib
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
_KEYS = "keys-"  # how the names of notes about keys begin
_KEPT_KEYS = 50  # of them are kept: one for each version of the sources
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
    """What is compiled on its own: a function, or the function `entry` of a generated module."""

    name: str
    module: str
    signature: Signature = field(compare=False)
    function: Any = None
    text: str = ""

    def resolved(self) -> Any:
        """The function itself."""
        if self.function is not None:
            return self.function
        names: dict[str, Any] = {"__name__": self.module}
        exec(compile(self.text, f"<{self.name}>", "exec"), names)
        return names["entry"]

    def _made_from(self) -> str:
        from bhemu.jit import keys  # looks into code: not needed where nothing has changed

        return keys.key(self.signature, self.resolved())

    def label(self) -> str:
        """What tells it from other entries of the same sources."""
        return f"{self.module} {self.name} {hashlib.sha256(self.text.encode()).hexdigest()[:16]}"

    @property
    def path(self) -> str:
        """What other processes call it: one name for each entry of the package."""
        return f"{self.module}.{self.name}"

    def own(self) -> bool:
        """Whether its sources are those of this package, as they are now."""
        package = self.module.partition(".")[0] == __name__.partition(".")[0]
        return package and bool(host.fingerprint())

    def key(self) -> str:
        """The key under which its machine code is kept."""
        if not self.own():
            return self._made_from()
        label, known = self.label(), _known_keys()
        if label not in known:
            known[label] = self._made_from()
            known |= _read_keys()  # other processes find some at the same time
            cache.write(_index_name(), json.dumps(known).encode())
            cache.prune(_KEYS, _KEPT_KEYS)
        return known[label]


def _index_name() -> str:
    """Name of the list of keys that belongs to these sources and tools."""
    seen = f"{host.fingerprint()} {host.tools()}"
    return f"{_KEYS}{hashlib.sha256(seen.encode()).hexdigest()[:20]}"


def _read_keys() -> dict[str, str]:
    data = cache.read(_index_name())
    return dict(json.loads(data)) if data else {}


_known_keys = functools.cache(_read_keys)


def function(signature: Signature, compiled: Callable[..., Any]) -> Entry:
    """The entry that is a function itself."""
    return Entry(compiled.__name__, compiled.__module__, signature, compiled)


def generated(signature: Signature, name: str, module: str, text: str) -> Entry:
    """The function `entry` of a generated module that calls into `module`."""
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
    carried = wanted.own() and host.find(wanted.label()) is not None
    return carried or cache.has(_file(wanted))


def is_loaded(wanted: Entry) -> bool:
    """Whether this process has it."""
    return wanted in _loaded


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
    carried = host.find(wanted.label()) if wanted.own() else None
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
