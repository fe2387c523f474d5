"""What can be observed from outside: lists of plain callables, empty unless somebody looks."""

from collections.abc import Callable
from typing import Any

tile_created: list[Callable[[Any], None]] = []  # told every Tile when it has been powered up
