"""A run that came to its limit, and is right when it may run on."""

from collections.abc import Iterator

from bhemu.errors import BhemuError, Limit, Where
from bhemu.why.check import Context
from bhemu.why.findings import Finding, likely, place
from bhemu.why.toml_lines import TomlLines

_LEAST, _TIMES = 200_000, 3  # clock units that it may run on, and times the first run's


def too_short(context: Context, error: BhemuError | None) -> Iterator[Finding]:
    """The line of the limit, where the unchanged program is right when it may run on."""
    program = context.program
    if not isinstance(error, Limit) or program.path is None:
        return
    machine = context.launch(engine="compiled", livelock=0, **context.alone)
    if context.finish(machine, limit=max(_LEAST, _TIMES * context.end)).fine:
        line = TomlLines(program.path).key("run", 0, "limit")
        text = f"PROGRAM.toml:{line}: the program is right and needs more time than its limit"
        who = place(Where(file="PROGRAM.toml", line=line), None)
        proof = ("run on, it ends, with all outputs as expected",)
        yield Finding("program", "error", text, who, {}, proof, "raise the limit", likely("limit"))
