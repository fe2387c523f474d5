"""Fields of the 224 Config words by name (both banks have the same layout).

They are declared in data/cfg_fields.json: a row is name, word, shift and mask; a row with `repeat`
declares the fields of that prefix and number 0 again for 1 to `last`, `words` or `bits` further on.
"""

import json
from functools import cache
from pathlib import Path
from typing import NamedTuple


class Field(NamedTuple):
    """Position of a field: word index, right shift, mask after shifting."""

    word: int
    shift: int
    mask: int


def declared(space: str) -> dict[str, Field]:
    """The fields of "config" or "thread" by name, in the order of their declarations."""
    data = Path(__file__).parents[1] / "data" / "cfg_fields.json"
    fields: dict[str, Field] = {}
    for row in json.loads(data.read_text(encoding="utf-8"))[space]:
        if isinstance(row, list):
            fields[row[0]] = Field(row[1], row[2], int(row[3], 16))
            continue
        prefix, words, bits = row["repeat"], row.get("words", 1), row.get("bits", 0)
        after = len(prefix) + 1
        first = [(n, f) for n, f in fields.items() if n.startswith(f"{prefix}0")]
        first = [(n, f) for n, f in first if not n[after : after + 1].isdigit()]
        for k in range(1, row["last"] + 1):
            for name, f in first:
                again = f"{prefix}{k}{name.removeprefix(prefix)[1:]}"
                fields[again] = Field(f.word + k * words, f.shift + k * bits, f.mask)
    return fields


globals().update(declared("config"))


@cache
def fields_of(module: object) -> dict[str, Field]:
    """The named fields of this module or of thread_fields."""
    return {name: field for name, field in vars(module).items() if isinstance(field, Field)}


def __getattr__(name: str) -> Field:
    """No field: the names that exist are attributes already. Type checkers read its return type."""
    raise AttributeError(f"no field of Config is called {name!r}")
