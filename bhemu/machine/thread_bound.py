"""What is true of a tile and of a chip as Python objects: one thread, no copies, a short `dir`."""

import threading
from typing import ClassVar, NoReturn

from bhemu.errors import InputError


class ThreadBound:
    """An object that belongs to the thread that made it."""

    NOUN: ClassVar[str]
    INTERNAL: ClassVar[frozenset[str]]  # names that dir() leaves out

    def __init__(self) -> None:
        self._thread = threading.get_ident()

    def check_thread(self) -> None:
        """InputError in another thread than the one that made the object."""
        if threading.get_ident() != self._thread:
            raise InputError(
                f"a {self.NOUN} belongs to the thread that made it",
                hint=f"make a {self.NOUN} in each thread, or run in processes",
            )

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        noun = self.NOUN
        raise InputError(
            f"a {noun} cannot be copied or pickled",
            hint=f"{noun}.snapshot() can, and another {noun} can restore() it",
        )

    def __dir__(self) -> list[str]:
        names = super().__dir__()
        internal = self.INTERNAL
        return sorted(n for n in names if n not in internal and (n[:1] != "_" or n[:2] == "__"))
