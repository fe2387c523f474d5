"""Stands in for tt_umd, which the suite in tt-metal imports and of which it calls nothing here."""

from typing import NoReturn

from bhemu.errors import NotModelled


def __getattr__(name: str) -> NoReturn:
    if name.startswith("__"):
        raise AttributeError(name)
    raise NotModelled(
        f"tt_umd.{name}: the tests run on a tile of bhemu, without a device of UMD",
        rule="LLK-UMD",
        hint="leave out the options of the suite that start a simulator of its own",
    )
