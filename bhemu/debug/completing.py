"""What Tab offers in the stepper: commands, cores, symbols, fields, names of state."""

from collections.abc import Iterable

from bhemu.core import Core
from bhemu.debug.registers import fields
from bhemu.memmap import CORE_NAMES
from bhemu.names import registers
from bhemu.riscv.disasm import ABI_NAMES
from bhemu.tensix import config_fields, thread_fields
from bhemu.tensix.views import NAMED

_MOST = 200
_CODE = ("break", "tbreak", "until", "list", "dis")
_MEMORY = ("mem", "x", "read32", "print")
_CORES = ("core", "regs", "bt", "step", "reverse-step", "reverse-next")
_THREADS = ("gpr", "tnext", "tstep")
_STATE = ("dump", "watch", "rwatch", "awatch")
_INFO = ("breakpoints", "locals", "registers", "source", "threads")


def candidates(command: str, argument: int, core: Core) -> Iterable[str]:
    """What may stand as the argument number `argument` (from 1) of a command."""
    if command in _CODE:
        return _code(core) if argument == 1 else CORE_NAMES
    if command in _MEMORY:
        return [*_code(core), *registers(), *(f"${name}" for name in ABI_NAMES)]
    if command in _CORES:
        return CORE_NAMES
    if command in _THREADS:
        return ("T0", "T1", "T2")
    if command in _STATE:
        return [named.name for named in NAMED] + [*_fields()]
    return {"cfg": _fields(), "info": _INFO, "src": ("a", "b")}.get(command, ())


def _fields() -> tuple[str, ...]:
    return (*fields(config_fields), *fields(thread_fields))


def _code(core: Core) -> list[str]:
    """Symbols, functions and source files of a core."""
    found: set[str] = set()
    for symbols in core.images:
        found.update(symbols.names)
        found.update(block.name for block in symbols.debug.blocks if block.name)
        found.update(symbols.debug.globals)
        found.update(f"{row.file}:" for row in symbols.rows)
    return sorted(found)


def matching(names: Iterable[str], text: str) -> list[str]:
    """Those that begin with `text`, else those that hold it, whatever the case."""
    wanted = text.lower()
    unique = dict.fromkeys(names)
    begin = [name for name in unique if name.lower().startswith(wanted)]
    return (begin or [name for name in unique if wanted in name.lower()])[:_MOST]
