"""What tt-llk's tests import from tt-exalens, on an emulated tile; not tt-exalens itself.

A folder on PYTHONPATH (`bhemu llk --path`) makes the tests find this package (docs/llk.md).
"""

from enum import IntEnum

from . import tt_exalens_init
from .tt_exalens_lib import check_context, convert_coordinate

__all__ = ["Verbosity", "check_context", "convert_coordinate", "tt_exalens_init"]


class Verbosity(IntEnum):
    """Levels of tt-exalens' messages, of which there are none here."""

    NONE = 0
    ERROR = 1
    WARN = 2
    INFO = 3
    VERBOSE = 4
    DEBUG = 5
    TRACE = 6

    @staticmethod
    def set(level: int) -> None:
        """Nothing is printed at any level; the level is checked."""
        Verbosity(level)
