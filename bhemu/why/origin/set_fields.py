"""A word that is refused for what a configuration field holds: who has set that field."""

import re
from collections.abc import Iterator
from contextlib import suppress

from bhemu.errors import BhemuError, NoProgress
from bhemu.machine.watchpoints import spans
from bhemu.tensix import config_fields, thread_fields
from bhemu.tensix.config_fields import Field
from bhemu.tensix.insn import decode
from bhemu.why.check import Context
from bhemu.why.findings import Finding, place
from bhemu.why.origin.chain import Chain, Link

_NAME = re.compile(r"\b[A-Za-z][A-Za-z0-9]*_\w+\b")
_COPIES = ("WRCFG",)  # words that only move a value


def setter(context: Context, error: BhemuError | None) -> Iterator[Finding]:
    """Who gave a field that the message names its value; `context.tile` stands at the error."""
    where = None if error is None else error.where
    if error is None or where is None or where.thread is None or context.is_chip:
        return
    tile = context.tile
    if isinstance(error, NoProgress) or tile.loop.observer is None:
        return
    end = tile.clock
    for name in dict.fromkeys(_NAME.findall(error.message)):
        fields = (vars(one).get(name) for one in (config_fields, thread_fields))
        if not any(isinstance(one, Field) for one in fields):
            continue
        chain = Chain(tile)
        with suppress(BhemuError):  # in which the run has ended
            chain.why(name, spans(tile, where.core or "brisc", name))
        with suppress(BhemuError), tile.history.replaying():
            tile.history.to(end)
        links = chain.links
        made = next((link for link in links if _makes(link)), None)
        if made is not None and made.where is not None:
            evidence = tuple("  " * link.depth + str(link) for link in links)
            text = (
                f"{name}, for which a word of T{where.thread} is refused, has its value from here"
            )
            who = place(made.where, made.clock, tile)
            yield Finding("error", "error", text, who, place(where, end, tile), evidence,
                          error.hint)  # fmt: skip
            return


def _makes(link: Link) -> bool:
    """Whether somebody has made a value there, not only moved it."""
    if link.where is None:
        return False
    cls = None if link.where.word is None else decode(link.where.word)
    return cls is None or cls.name not in _COPIES
