"""`bhemu warm`: compiles into the cache what programs will use, so that no run has to wait."""

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from bhemu.cli import output
from bhemu.cli.isa import expands, named
from bhemu.cli.options import json_option
from bhemu.cli.progress import Progress
from bhemu.errors import EXIT_OK, InputError

if TYPE_CHECKING:
    from bhemu.tensix.insn import Instruction

_CORE = "the core"


@click.command("warm")
@click.argument("mnemonics", nargs=-1, metavar="[MNEMONIC]...")
@json_option
@click.option("-q", "--quiet", is_flag=True, help="print only what went wrong")
def command(mnemonics: tuple[str, ...], as_json: bool, quiet: bool) -> int:
    """Compile everything into the cache before it is needed.

    Given names, it compiles the core and these instructions only, no device windows. What is in the
    cache already is not compiled again. BHEMU_CACHE_DIR sets the cache folder.
    """
    progress = Progress(quiet or as_json)
    with progress.starting():
        from bhemu.devices.bus import entries
        from bhemu.jit.build import load
        from bhemu.jit.cache import root
        from bhemu.jit.subset import JIT
        from bhemu.machine import precompile
        from bhemu.machine.backend import core_is_fresh
        from bhemu.program.schema import ENGINES
        from bhemu.tensix import compiled

        if not JIT:
            raise InputError("NUMBA_DISABLE_JIT is set: nothing is compiled", hint="unset it")
        chosen = _chosen(mnemonics)
        precompile.start(precompile.missing(cls.opcode for cls in reversed(chosen)))
        devices = () if mnemonics else entries.performed()
        fresh = [*map(core_is_fresh, ENGINES), *(load(part).seconds > 0 for part in devices)]
        made = [_CORE] if any(fresh) else []
    for number, cls in enumerate(chosen, start=1):
        progress.status(f"{number} of {len(chosen)}  {cls.name}")
        parts = [
            compiled.entry(cls.opcode),
            *(compiled.second_entry(i) for i in cls.second_entries),
        ]
        seconds = sum(load(part).seconds for part in parts)
        if seconds:
            made.append(cls.name)
            progress(cls.name, seconds)
    progress.status("")
    seconds, count = progress.seconds, len(chosen) + 1
    if as_json:
        report = {"made": made, "cached": count - len(made), "seconds": seconds}
        output.say(json.dumps({**report, "folder": str(root()), "exit_code": EXIT_OK}, indent=2))
    elif not quiet:
        output.say(_summary(made, count, seconds))
    return EXIT_OK


def _summary(made: list[str], count: int, seconds: float) -> str:
    """`count` parts are there now: the core and the entries."""
    entries = f"the core and {count - 1} instruction{'' if count == 2 else 's'}"
    if not made:
        return f"everything is there: {entries}, loaded in {seconds:.1f} s"
    rest = count - len(made)
    there = f", {rest} {'was' if rest == 1 else 'were'} there" if rest else ""
    return f"{entries}: made {len(made)} in {seconds:.1f} s{there}"


def _chosen(mnemonics: Iterable[str]) -> "list[type[Instruction]]":
    """The instructions with those names, or all that have a model."""
    from bhemu.tensix import units
    from bhemu.tensix.insn import REGISTRY

    assert units.MODULES  # importing the package declares the instructions
    known = [REGISTRY[opcode] for opcode in sorted(REGISTRY)]
    if not (wanted := [named(known, mnemonic) for mnemonic in mnemonics]):
        return [cls for cls in known if cls.execute is not None]
    for cls in wanted:
        if cls.execute is None:
            reason = cls.refused or "it is not modelled yet"
            if expands(cls):
                reason = "the front end expands it, so it is part of the core"
            raise InputError(f"{cls.name} has nothing to compile: {reason}")
    return list(dict.fromkeys(wanted))
