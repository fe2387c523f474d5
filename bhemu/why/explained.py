"""What a wrong format explains: whatever else the same access does wrong."""

from dataclasses import replace
from typing import Any

from bhemu.why.findings import Finding


def of_formats(found: list[Finding]) -> list[Finding]:
    """The findings; behind a wrong format for certain what that access does wrong besides.

    It takes more bytes than its page has, or fewer.
    """
    sure = [one for one in found if one.found_by == "formats" and one.severity == "error"]
    by = {_access(one.victim): one.likelihood - 1 for one in sure}
    most = [min(by.get(_access(who), 101) for who in (f.culprit, f.victim)) for f in found]
    return [
        one if one in sure else replace(one, likelihood=min(one.likelihood, limit))
        for one, limit in zip(found, most, strict=True)
    ]


def _access(who: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(who.get("tile") or ()), who.get("core"), who.get("pc", -1)
