"""tt-metal firmware on a tile: what its ELFs say about mailboxes, tables and start, and its boot.

Nothing here knows an address: mailboxes are laid out as the debug information says, they lie where
brisc's pointer to its sync bytes points (or at the symbol `mailboxes`), and initial data and tables
lie where the start code copies them from.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from bhemu.errors import InputError
from bhemu.program import coordinates, elf, files, variables
from bhemu.program.coordinates import ROWS, XY
from bhemu.program.loader import Image, read_elf
from bhemu.program.specs import ChipSpec, FirmwareSpec
from bhemu.program.variables import Layout
from bhemu.riscv.assembly import A0, A1, GP, jal
from bhemu.riscv.formats import Jump, Upper
from bhemu.riscv.insn import Instruction
from bhemu.riscv.isa import decode
from bhemu.riscv.semantics import COMPUTING


class Record:
    """A zeroed structure; set(value, "member", index, ...) fills one number of it."""

    def __init__(self, layout: Layout) -> None:
        self.layout, self.data = layout, bytearray(layout.size)

    def set(self, value: int, *path: str | int) -> None:
        """Store a number into the member that `path` leads to; InputError where it does not fit."""
        offset, size = place(self.layout, *path)
        if not 0 <= value < 1 << 8 * size:
            name = ".".join(map(str, path))
            raise InputError(f"{value:#x} does not fit into the {size} bytes of {name}")
        self.data[offset : offset + size] = value.to_bytes(size, "little")


def place(layout: Layout, *path: str | int) -> tuple[int, int]:
    """(offset, bytes) of the member that `path` of names and array indices leads to."""
    offset, here = 0, layout
    for step in path:
        if isinstance(step, int):
            if not 0 <= step < here.count:
                raise InputError(f"element {step} of {here.count}")
            offset += step * here.stride
            here = Layout(here.stride, 1, here.members)
        else:
            member = here[step]
            offset, here = offset + member.offset, member.type
    return offset, here.size


# What firmware copies from L1 to its core's local RAM at its start, read from its code.
#
# A host cannot write local RAM. It writes initial data and tables to L1, and the firmware's start
# code copies them, by calls of one function with constant arguments: (to, from, words). The calls
# are found by following constants through the code in the order in which it lies.

FUNCTION = "l1_to_local_mem_copy"


class Copy(NamedTuple):
    """The firmware copies to `local`, an address of its local RAM, from `source` in L1."""

    local: int
    source: int


def copies(image: Image) -> list[Copy]:
    """Every copy of constant addresses in the code of `image`, in the order of the calls."""
    names = {name for name in image.symbols.names if FUNCTION in name}
    targets = {image.symbols.address(name) for name in names}
    found = []
    for segment in image.segments:
        if segment.executable:
            whole = len(segment.data) // 4
            words = struct.unpack(f"<{whole}I", segment.data[: 4 * whole])
            found += list(_calls(image, segment.vaddr, words, targets))
    return found


def _calls(image: Image, base: int, words: tuple[int, ...], targets: set[int]) -> Iterator[Copy]:
    registers: list[int | None] = [0, *[None] * 31]
    if "__global_pointer$" in image.symbols.names:
        registers[GP] = image.symbols.address("__global_pointer$")
    for number, word in enumerate(words):
        pc = base + 4 * number
        cls, rd = decode(word), Instruction.rd.get(word)
        if cls is None:
            continue
        if issubclass(cls, Jump):
            local, source = registers[A0], registers[A1]
            called = cls.compute(word, pc, 0, 0) in targets
            if called and local is not None and source is not None:
                yield Copy(local, source)
        elif issubclass(cls, (*COMPUTING, Upper)) and rd:
            registers[rd] = cls.computed(word, pc, registers)


class Sized(NamedTuple):
    """A symbol of local RAM: its address and how many bytes it has."""

    address: int
    size: int


def objects(image: Image) -> dict[str, Sized]:
    """The named objects of an ELF, with their sizes."""
    data = files.read_bytes(image.path, "ELF_BYTES")
    table = elf.sections(data, str(image.path))
    found = elf.symbols(data, table, str(image.path))
    return {s.name: Sized(s.value, s.size) for s in found if s.kind in ("STT_OBJECT", "STT_NOTYPE")}


PROCESSORS = ("brisc", "ncrisc", "trisc0", "trisc1", "trisc2")
"""The cores in the order of launch messages."""

SIGNAL_INIT, SIGNAL_GO = 0x40, 0x80
_WATCHER_OFF = 2
MAILBOXES, _SYNC, BASE = "mailboxes", "subordinate_sync", "kernel_config_base"
_HINT = "build the firmware with -g and do not strip it"


class Write(NamedTuple):
    """Bytes that a host writes to L1, and what they are."""

    address: int
    data: bytes
    name: str


@dataclass(frozen=True)
class Grid:
    """What tables say of the chip: tiles in order, DRAM bank -> coordinate on NoC 0 and 1."""

    tiles: tuple[XY, ...]
    dram: tuple[tuple[XY, XY], ...]

    @classmethod
    def of(cls, chip: ChipSpec | None) -> Grid:
        """As software sees a chip; without one, a whole chip of eight banks."""
        about = chip or ChipSpec()
        banks = range(about.dram_banks)
        ports = tuple((coordinates.dram(b, 0), coordinates.dram(b, 1)) for b in banks)
        return cls(coordinates.tensix(len(about.harvest)), ports)


@dataclass(frozen=True)
class Firmware:
    """Five checked ELFs of one build; `mailboxes` and `base` are L1 addresses."""

    images: Mapping[str, Image]
    layout: Layout
    mailboxes: int
    base: int
    copied: Mapping[str, Sequence[Copy]] = field(repr=False)
    objects: Mapping[str, Mapping[str, Sized]] = field(repr=False)

    def address(self, *path: str | int) -> int:
        """The L1 address of a member of the mailboxes."""
        return self.mailboxes + place(self.layout, *path)[0]

    @property
    def go(self) -> int:
        """The address of the first go message, a word with the signal in one of its bytes."""
        return self.address("go_messages", 0)

    def signal(self, value: int) -> Write:
        """A go message with this signal."""
        word = bytearray(place(self.layout, "go_messages", 0)[1])
        word[self.address("go_messages", 0, "signal") - self.go] = value
        return Write(self.go, bytes(word), "go message")

    def boot_writes(self, grid: Grid, xy: XY) -> Iterator[Write]:
        """What a host writes to tile `xy` before it releases brisc."""
        for name, image in self.images.items():
            for segment in image.segments:
                what = f"{image.path.name} {segment}"
                if not segment.is_local:
                    yield Write(segment.paddr, segment.data.ljust(segment.memsz, b"\0"), what)
                elif segment.data:
                    staged = self._staging(name, segment.vaddr)
                    yield Write(staged, segment.data.ljust(segment.memsz, b"\0"), what)
        done: set[int] = set()
        for name in ("brisc", "ncrisc"):
            named = {sized.address: (n, sized.size) for n, sized in self.objects[name].items()}
            for copy in self.copied[name]:
                what, size = named.get(copy.local, ("", 0))
                if what in TABLES and copy.source not in done:
                    done.add(copy.source)
                    yield Write(copy.source, TABLES[what](grid, size), what)
        brisc = self.images["brisc"]
        if not any(s.paddr == 0 for s in brisc.segments):  # brisc starts at 0
            yield Write(0, jal(0, brisc.entry).to_bytes(4, "little"), "start of brisc")
        yield Write(self.address("go_message_index"), bytes(4), "go message index")
        columns = sorted({x for x, _ in grid.tiles})
        values = {
            ("watcher", "enable"): _WATCHER_OFF,
            ("core_info", "absolute_logical_x"): columns.index(xy[0]),
            ("core_info", "absolute_logical_y"): ROWS.index(xy[1]),
            ("core_info", "worker_grid_size_x"): len(columns),
            ("core_info", "worker_grid_size_y"): len(ROWS),
        }
        for path, value in values.items():  # single values that a host puts into the mailboxes
            if path[0] in self.layout and path[1] in self.layout[path[0]].type:
                offset, size = place(self.layout, *path)
                data = value.to_bytes(size, "little")
                yield Write(self.mailboxes + offset, data, ".".join(path))
        yield self.signal(SIGNAL_INIT)

    def _staging(self, name: str, local: int) -> int:
        for copy in self.copied[name]:
            if copy.local == local:
                return copy.source
        raise InputError(
            f"{self.images[name].path}: its start code does not say from where it copies its data"
            f" to {local:#x}",
            hint="a call of l1_to_local_mem_copy with constant addresses is looked for",
        )


def read_firmware(spec: FirmwareSpec) -> Firmware:
    """Read and check the five ELFs; InputError when they do not say what a host must know."""
    images = {name: read_elf(spec.elfs[name]) for name in PROCESSORS}
    brisc = images["brisc"]
    layout = variables.structure(brisc.path, "mailboxes_t")
    if layout is None:
        raise InputError(f"{brisc.path}: no debug information of mailboxes_t", hint=_HINT)
    copied = {name: copies(image) for name, image in images.items()}
    base = spec.base  # where kernels go
    if base is None and BASE in brisc.symbols.names:
        base = brisc.symbols.address(BASE)
    elif base is None:
        if not copied["brisc"]:
            raise InputError(
                f"{brisc.path}: neither a symbol {BASE} nor initial data say where kernels go",
                hint="[firmware] base = 0x... says it",
            )
        # tt-metal has kernels begin where brisc's initial data lie while it starts
        base = copied["brisc"][0].source
    sized = {name: objects(images[name]) for name in ("brisc", "ncrisc")}
    return Firmware(images, layout, _mailboxes(brisc, layout), base, copied, sized)


def _mailboxes(brisc: Image, layout: Layout) -> int:
    if MAILBOXES in brisc.symbols.names:
        return brisc.symbols.address(MAILBOXES)
    pointers = [name for name in brisc.symbols.names if _SYNC in name]
    for name in pointers:
        at = brisc.symbols.address(name)
        for segment in brisc.segments:
            offset = at - segment.vaddr
            if 0 <= offset <= len(segment.data) - 4:
                (value,) = struct.unpack_from("<I", segment.data, offset)
                return int(value) - place(layout, _SYNC)[0]
    raise InputError(
        f"{brisc.path}: no symbol {MAILBOXES} and no initialised {_SYNC} say where mailboxes are",
        hint=_HINT,
    )


# Tables that both data movement cores copy: from logical to NoC coordinates and banks.


def noc_word(xy: XY) -> int:
    """A coordinate as registers and tables hold it: y << 6 | x."""
    return xy[1] << 6 | xy[0]


def _dram_xy(grid: Grid, size: int) -> bytes:
    """u16[2][banks]: y << 6 | x of each bank on each NoC."""
    banks = size // 4
    if banks > len(grid.dram):
        raise InputError(f"the firmware wants {banks} DRAM banks, the chip has {len(grid.dram)}")
    words = [noc_word(bank[noc]) for noc in (0, 1) for bank in grid.dram[:banks]]
    return struct.pack(f"<{len(words)}H", *words)


def _l1_xy(grid: Grid, size: int) -> bytes:
    """u16[2][banks]: y << 6 | x of the tiles that are L1 banks."""
    banks = size // 4
    tiles = [grid.tiles[i % len(grid.tiles)] for i in range(banks)]
    return struct.pack(f"<{2 * banks}H", *(noc_word(xy) for xy in tiles * 2))


def _fitted(places: Iterable[int], size: int) -> bytes:
    return bytes(sorted(places))[:size].ljust(size, b"\0")


TABLES: Mapping[str, Callable[[Grid, int], bytes]] = {
    "dram_bank_to_noc_xy": _dram_xy,
    "l1_bank_to_noc_xy": _l1_xy,
    "bank_to_dram_offset": lambda grid, n: bytes(n),
    "bank_to_l1_offset": lambda grid, n: bytes(n),
    "worker_logical_col_to_virtual_col": lambda grid, size: _fitted(
        {x for x, _ in grid.tiles}, size
    ),
    "worker_logical_row_to_virtual_row": lambda grid, n: _fitted(ROWS, n),
}
