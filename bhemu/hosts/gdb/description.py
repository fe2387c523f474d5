"""What gdb is told about the target: registers, threads, loaded ELFs, as XML."""

from pathlib import Path
from xml.sax.saxutils import quoteattr

from bhemu.machine.core import Core
from bhemu.machine.tile import Tile
from bhemu.riscv import csr
from bhemu.riscv.assembly import ABI_NAMES

PC = 32  # gdb's number of the program counter; x0-x31 come before it
CSRS: tuple[int, ...] = tuple(csr.NAMES)  # from number PC + 1 on
_VECTOR = 16  # bytes at the beginning of L1 that hold a jump, not a program


def registers() -> str:
    """The target description: RV32, its registers and CSRs."""
    general = "".join(
        f'<reg name="{name}" bitsize="32" type="{_TYPES.get(name, "int")}" regnum="{i}"/>'
        for i, name in enumerate((*ABI_NAMES, "pc"))
    )
    special = "".join(
        f'<reg name="{csr.NAMES[number]}" bitsize="32" type="uint32" regnum="{PC + 1 + i}"'
        ' group="csr" save-restore="no"/>'
        for i, number in enumerate(CSRS)
    )
    return (
        '<?xml version="1.0"?><!DOCTYPE target SYSTEM "gdb-target.dtd"><target version="1.0">'
        "<architecture>riscv:rv32</architecture><osabi>none</osabi>"
        f'<feature name="org.gnu.gdb.riscv.cpu">{general}</feature>'
        f'<feature name="org.bhemu.csr">{special}</feature></target>'
    )


_TYPES = {"ra": "code_ptr", "sp": "data_ptr", "gp": "data_ptr", "tp": "data_ptr", "pc": "code_ptr"}


def threads(tile: Tile) -> str:
    """The cores as threads: number, name, state."""
    rows = "".join(
        f'<thread id="{core.index + 1}" name={quoteattr(core.name)}>{extra(core)}</thread>'
        for core in tile.core.values()
    )
    return f'<?xml version="1.0"?><threads>{rows}</threads>'


def extra(core: Core) -> str:
    """What `info threads` shows beside a thread."""
    return f"{core.state}, {core.retired} retired"


def _programs(tile: Tile) -> dict[str, int]:
    """The ELFs whose code lies in L1, and where it begins."""
    starts: dict[str, int] = {}
    for low, _, name in tile.ranges:
        text = Path(name)
        if low >= _VECTOR and text.is_file():
            starts.setdefault(str(text.resolve()), low)
    return starts


def executable(tile: Tile) -> str:
    """The first ELF, which gdb takes for the program; the others are its libraries."""
    return next(iter(_programs(tile)), "")


def libraries(tile: Tile) -> str:
    """The other ELFs, for gdb to read symbols from by itself."""
    rows = "".join(
        f'<library name={quoteattr(path)}><segment address="{at:#x}"/></library>'
        for path, at in _programs(tile).items()
        if path != executable(tile)
    )
    return f'<?xml version="1.0"?><library-list version="1.0">{rows}</library-list>'
