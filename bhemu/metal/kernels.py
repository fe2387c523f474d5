"""The kernels of one tile as a host places them: arguments, semaphores, circular buffers, texts.

Everything lies behind kernel_config_base in one image, as tt-metal lays it out: runtime arguments
of each core, common arguments, semaphores 16 bytes apart, the table of circular buffers, the texts.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from bhemu.errors import InputError
from bhemu.machine.elf_cache import Texts
from bhemu.memmap import L1_SIZE
from bhemu.metal.firmware import PROCESSORS, Firmware, Write
from bhemu.metal.record import Record, place
from bhemu.program import coordinates
from bhemu.program.coordinates import XY
from bhemu.program.datafiles import encode_values
from bhemu.program.loader import Image, block
from bhemu.program.specs import BufferSpec, TileSpec

_HOST_MODE = 1
_ALIGNMENT = 16


@dataclass(frozen=True)
class Placed:
    """A kernel in L1: its entry, and how far it was moved from where it was linked."""

    image: Image
    entry: int
    moved: int


@dataclass
class Kernels:
    """The image behind `base` while it grows, and where its parts are, relative to `base`."""

    base: int
    data: bytearray = field(default_factory=bytearray)
    args: dict[str, tuple[int, int]] = field(default_factory=dict)
    semaphores: int = 0
    buffers: int = 0
    buffers_end: int = 0
    mask: int = 0
    texts: dict[str, Placed] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)

    def add(self, data: bytes) -> int:
        """Append a part; its offset."""
        at = len(self.data)
        self.data += data.ljust(-(-len(data) // _ALIGNMENT) * _ALIGNMENT, b"\0")
        return at

    def write(self) -> Write:
        """The whole image as one write."""
        return Write(self.base, bytes(self.data), "kernels")


def arrange(part: TileSpec, xy: XY, base: int, texts: Texts) -> Kernels:
    """The kernels of `part` on its tile `xy`, behind `base`; InputError when they do not fit."""
    made = Kernels(base)
    values = coordinates.values_of(xy, part.at)
    common = {}
    for name in PROCESSORS:
        core = part.cores.get(name)
        given = () if core is None else core.args
        made.args[name] = (made.add(encode_values(given, f"{part.origin}: {name}", values)), 0)
    for name in PROCESSORS:
        core = part.cores.get(name)
        given = () if core is None else core.common
        common[name] = made.add(encode_values(given, f"{part.origin}: {name}", values))
    made.args = {name: (own, common[name]) for name, (own, _) in made.args.items()}
    made.semaphores = made.add(
        b"".join(struct.pack("<I12x", initial) for initial in part.semaphores)
    )
    made.buffers = made.add(table(part.buffers))
    made.buffers_end = len(made.data)
    made.mask = sum(1 << buffer.index for buffer in part.buffers)
    for name in PROCESSORS:
        core = part.cores.get(name)
        if core is not None and core.elf is not None:
            _add_text(made, name, texts.image(core.elf), texts)
    _check_room(made, part)
    return made


def _add_text(made: Kernels, name: str, image: Image, texts: Texts) -> None:
    moved = made.base + len(made.data) - block(image)[0]
    data = texts.moved(image, moved)
    made.add(data)
    made.sizes[name] = len(data)
    made.texts[name] = Placed(image, image.entry + moved, moved)


def _check_room(made: Kernels, part: TileSpec) -> None:
    end = made.base + len(made.data)
    if end > L1_SIZE:
        raise InputError(f"{part.origin}: the kernels end at {end:#x}, behind L1")
    for buffer in part.buffers:
        if buffer.at < end and made.base < buffer.at + buffer.size:
            raise InputError(
                f"{part.origin}: circular buffer {buffer.index} at {buffer.at:#x} lies on the"
                f" kernels ({made.base:#x}..{end:#x})"
            )


def table(buffers: Sequence[BufferSpec]) -> bytes:
    """The table of circular buffers: {address, bytes, pages, bytes of a page} by index."""
    rows = {b.index: struct.pack("<4I", b.at, b.size, b.pages, b.page) for b in buffers}
    return b"".join(rows.get(n, bytes(16)) for n in range(max(rows, default=-1) + 1))


def launch_message(firmware: Firmware, made: Kernels) -> Write:
    """The message that names everything, for the first place of the ring of messages."""
    layout = firmware.layout["launch"].type
    config = layout["kernel_config"].type if "kernel_config" in layout else layout
    record = Record(config)
    for n in range(config["kernel_config_base"].type.count):
        record.set(made.base, "kernel_config_base", n)
    record.set(made.semaphores, "sem_offset", 0)
    record.set(made.buffers, "local_cb_offset")
    record.set(made.buffers_end, "remote_cb_offset")
    for n, name in enumerate(PROCESSORS):
        own, common = made.args[name]
        record.set(own, "rta_offset", n, "rta_offset")
        record.set(common, "rta_offset", n, "crta_offset")
        if name in made.texts:
            record.set(made.texts[name].entry - made.base, "kernel_text_offset", n)
            record.set_if_there(made.sizes[name], "kernel_text_size", n)
    record.set(_HOST_MODE, "mode")
    record.set(made.mask, "local_cb_mask")
    record.set(8 * config["local_cb_mask"].type.size, "min_remote_cb_start_index")
    record.set(sum(1 << PROCESSORS.index(name) for name in made.texts), "enables")
    offset = place(firmware.layout, "launch", 0)[0]
    return Write(firmware.mailboxes + offset, bytes(record.data), "launch message")
