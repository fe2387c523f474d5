"""Programs of tt-metal's own add1 kernels, from listings and ELFs that a user has at hand."""

import os
import re
import shutil
from pathlib import Path

import numpy as np
from elf_builder import Elf, Seg, Sym

from bhemu.metal import PROCESSORS, objects
from bhemu.program.loader import read_elf

FIRMWARE = os.environ.get("BHEMU_FIRMWARE_DIR")
KERNELS = os.environ.get("BHEMU_KERNEL_DIR")
LISTINGS = dict(
    zip(
        PROCESSORS,
        ("writer_brisc", "reader_ncrisc", "compute_trisc0", "compute_trisc1", "compute_trisc2"),
        strict=True,
    )
)
PAGES, BANKS, SOURCE, TARGET = 7, 7, 0x40, 0x400040  # pages of one tile: one in each bank
_WORD = re.compile(r"^\s*([0-9a-f]+):\s+([0-9a-f]{8})\s", re.MULTILINE)
_BUFFERS = "".join(
    f"[[tile.buffer]]\nindex = {index}\nat = {at:#x}\npages = 2\npage = 2048\n"
    for index, at in ((0, 0x37000), (16, 0x39000))
)


def kernels(folder: Path) -> None:
    """The five kernels as ELFs, with the names that their firmware's ELFs have for local RAM."""
    assert KERNELS is not None
    assert FIRMWARE is not None
    for name, listing in LISTINGS.items():
        rows = _WORD.findall((Path(KERNELS) / f"{listing}.objdump.txt").read_text())
        first = int(rows[0][0], 16)
        text = b"".join(bytes.fromhex(word)[::-1] for _, word in rows)
        known = objects(read_elf(Path(FIRMWARE) / f"{name}.elf"))
        symbols = [
            Sym(symbol, sized.address, sized.size, "OBJECT", None)
            for symbol, sized in known.items()
            if symbol.isidentifier()
        ]
        elf = Elf(segments=[Seg(first, text)], symbols=symbols, entry=first)
        (folder / f"{name}.elf").write_bytes(bytes(elf))


def add1(folder: Path, tiles: list[str], *, firmware: bool = True) -> Path:
    """y = x + 1 of 7 bf16 tiles on each of `tiles`, with its data; the path of the program."""
    kernels(folder)
    lines = ["bhemu = 1", 'kind = "tt-metal"']
    if firmware:
        (folder / "fw").mkdir()
        lines.append("[firmware]")
        for name in PROCESSORS:
            shutil.copy(Path(str(FIRMWARE)) / f"{name}.elf", folder / "fw")
            lines.append(f'{name} = "fw/{name}.elf"')
    for i, at in enumerate(tiles):
        lines += ["[[tile]]", f'at = "{at}"', "[tile.cores]"]
        for name in PROCESSORS:
            where = {"brisc": TARGET, "ncrisc": SOURCE}.get(name)
            own = '"f32:1.0"' if where is None else f'"u32:{PAGES}"'
            one = f'"u32:{PAGES}"' if where is None else f'"u32:{where + 2048 * i}"'
            lines.append(f'{name} = {{ elf = "{name}.elf", args = [{one}, {own}] }}')
        lines.append(_BUFFERS)
    data(folder, 32 * PAGES * len(tiles))
    for kind, file, address in (("input", "file", SOURCE), ("output", "expect", TARGET)):
        lines += [f"[[{kind}]]", f'{file} = "{file}.npy"', 'dtype = "bf16"']
        lines.append(f"dram = {{ address = {address}, banks = {BANKS} }}")
    path = folder / "PROGRAM.toml"
    path.write_text("\n".join(lines) + "\n")
    return path


def data(folder: Path, rows: int) -> None:
    """Random bf16 numbers, and their sums with 1 without the lower half of fp32."""
    rng = np.random.default_rng(rows)
    x = (rng.standard_normal((rows, 32)) * 50).astype(np.float32).view(np.uint32) & 0xFFFF0000
    y = (x.view(np.float32) + np.float32(1)).view(np.uint32) & 0xFFFF0000
    np.save(folder / "file.npy", x.view(np.float32))
    np.save(folder / "expect.npy", y.view(np.float32))
