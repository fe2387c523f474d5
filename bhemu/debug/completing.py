"""What Tab offers in the stepper: commands, cores, symbols, fields, names of state."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from bhemu.debug.registers import fields
from bhemu.machine.core import Core
from bhemu.machine.resolve import registers
from bhemu.memmap import CORE_NAMES
from bhemu.riscv.disasm import ABI_NAMES
from bhemu.tensix import config_fields, thread_fields
from bhemu.tensix.insn import REGISTRY
from bhemu.tensix.views import NAMED

_MOST = 200
_BREAKS = ("break", "tbreak")
_CODE = ("until", "list", "dis")
_FILES = ("save", "load")
_MEMORY = ("mem", "x", "read32", "print")
_CORES = ("core", "regs", "bt", "step", "reverse-step", "reverse-next")
_T = ("T0", "T1", "T2")
_THREADS = ("gpr", "tnext", "tstep")
_STATE = ("dump", "watch", "rwatch", "awatch")
_INFO = ("breakpoints", "locals", "registers", "source", "threads")


def candidates(command: str, before: Sequence[str], text: str, core: Core) -> Iterable[str]:
    """What may stand behind `before`, the arguments of a command so far; `text` begins it."""
    if command in _BREAKS:
        return _of_break(before, core)
    if command in _CODE:
        return _code(core) if not before else CORE_NAMES
    if command in _FILES:
        return _paths(text)
    if command in _MEMORY:
        return [*_code(core), *registers(), *(f"${name}" for name in ABI_NAMES)]
    if command in _CORES:
        return CORE_NAMES
    if command in _THREADS:
        return _T
    if command in _STATE:
        return [named.name for named in NAMED] + [*_fields()]
    return {"cfg": _fields(), "info": _INFO, "src": ("a", "b")}.get(command, ())


def _of_break(before: Sequence[str], core: Core) -> Iterable[str]:
    """What a breakpoint takes: code and a core, or a Tensix instruction, its fields, a thread."""
    if not before:
        return [*_code(core), *(one.name for one in REGISTRY.values())]
    cls = next((one for one in REGISTRY.values() if one.name == before[0]), None)
    if cls is None:
        return (*CORE_NAMES, "if")
    if before[-1] == "on":
        return _T
    return [*(f"{field.name}=" for field in cls.fields), "on", "if"]


def _paths(text: str) -> list[str]:
    """Folders, and files of saved states."""
    found = sorted(Path(text).parent.glob("*") if text[-1:] != "/" else Path(text).glob("*"))
    folder = text.rpartition("/")[0] + "/" if "/" in text else ""
    names = [(f"{folder}{path.name}", path) for path in found]
    return [f"{n}/" if path.is_dir() else n for n, path in names if _shown(path)]


def _shown(path: Path) -> bool:
    return path.is_dir() or path.suffix == ".npz"


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
