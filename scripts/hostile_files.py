"""Damaged files for hostile_campaign.py: what they start from, how they are damaged and read."""

import contextlib
import importlib
import io
import random
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
NUMBERS = (0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
PIECES = (b"\xff" * 4, b"\x80" * 12, b"(((((((", b"[[[[", b"a.a.a.a.")


def mutate(r: random.Random, data: bytes) -> bytes:
    """One to six changes: bytes, words, runs, cuts, copies; more often near the head."""
    out = bytearray(data)
    for _ in range(r.randint(1, 6)):
        at = r.randrange(min(len(out), 0x400) if r.random() < 0.5 else len(out)) if out else 0
        change = r.randrange(8)
        if change < 3:
            size = r.choice((1, 2, 4, 8))
            out[at : at + size] = (r.choice(NUMBERS) & (1 << 8 * size) - 1).to_bytes(size, "little")
        elif change == 3 and out:
            out[at % len(out)] ^= 1 << r.randrange(8)
        elif change == 4:
            out[at : at + r.randrange(64)] = r.randbytes(r.randrange(64))
        elif change == 5:
            source = r.randrange(len(out) + 1)
            out[at:at] = out[source : source + r.randrange(256)]
        elif change == 6 and r.random() < 0.3:
            del out[at:]
        else:
            out[at : at + 4] = r.choice(
                (b"\xff" * 4, b"\x80" * 12, b"(((((((", b"[[[[", b"a.a.a.a.")
            )
    return bytes(out)


def archive(r: random.Random, data: bytes) -> bytes:
    """An .npz whose members or whose own bytes are damaged."""
    if r.random() < 0.4:
        return mutate(r, data)
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w", 8) as new:
        victim = r.choice(old.namelist())
        for name in old.namelist():
            held = old.read(name)
            if name == victim:
                held = mutate(r, held[:4096]) + held[4096:]
            new.writestr(name, held, compress_type=r.choice((0, 8)), compresslevel=1)
    return out.getvalue()


# Kinds of files: how one is made, and what a command does with it


def read_elf(path: Path) -> None:
    """Placement for every core and mode, names and source lines of where code may be."""
    loader = importlib.import_module("bhemu.program.loader")
    image = loader.read_elf(path)
    for core in ("brisc", "trisc1"):
        for local in ("direct", "lma", "loader_init"):
            _tolerate(lambda c=core, how=local: loader.place(image, local=how, core=c))
    _tolerate(lambda: image.symbols.names)
    for segment in image.segments[:8]:
        _tolerate(lambda s=segment: (image.symbols.lookup(s.vaddr), image.symbols.line(s.vaddr)))


def read_state(path: Path) -> None:
    """Everything that `bhemu dump` shows."""
    dump = importlib.import_module("bhemu.debug.dump")
    view = importlib.import_module("bhemu.debug.decoded").View("", False)
    state = importlib.import_module("bhemu.machine.saved").Snapshot.load(path)
    list(dump.text(state, dump.select([]), view))


def read_image(path: Path) -> None:
    """A picture of L1."""
    importlib.import_module("bhemu.program.input_files").read_image(path)


def read_toml(path: Path) -> None:
    """A program file with its arrays."""
    schema = importlib.import_module("bhemu.program.schema")
    program = schema.load_program(path)
    for source in program.inputs:
        source.data()
    for output in program.outputs:
        output.check(bytes(output.size))


def read_array(path: Path) -> None:
    """An array by itself."""
    importlib.import_module("bhemu.program.input_files").read_array(path, "bf16", "array")


def _tolerate(action: Callable[[], Any]) -> None:
    errors = importlib.import_module("bhemu.errors")
    with contextlib.suppress(errors.InputError):
        action()


class Kind(NamedTuple):
    """One kind of file: its name in a folder, how it is damaged and read, its share of cases."""

    name: str
    file: str
    seeds: list[Path]
    damage: Callable[[random.Random, bytes], bytes]
    read: Callable[[Path], None]
    command: tuple[str, ...]
    weight: int


def kinds(seeds: Path) -> list[Kind]:
    """Every kind with the files it starts from."""
    elfs, tomls, arrays = (
        sorted((ROOT / "elfs").glob(f"*/{name}")) for name in ("*.elf", "PROGRAM.toml", "*.npy")
    )
    run = ("run", "-q", "--limit", "20000", "--timeout", "3")
    elf = (*run, "--core")
    return [
        Kind("ELFs", "k.elf", elfs, mutate, read_elf, elf, 45),
        Kind("program files", "PROGRAM.toml", tomls, mutate, read_toml, ("check",), 35),
        Kind("arrays", "a.npy", arrays, mutate, read_array, (), 15),
        Kind("images of L1", "l1.npz", [seeds / "image.npz"], archive, read_image, (), 3),
        Kind("saved states", "s.npz", [seeds / "state.npz"], archive, read_state, ("dump",), 2),
    ]


def make_seeds(folder: Path) -> None:
    """A saved state and a picture of L1 to damage."""
    import numpy as np

    from bhemu.machine.tile import Tile

    Tile().snapshot().save(folder / "state.npz")
    piece = np.arange(256, dtype=np.uint8)
    np.savez_compressed(
        folder / "image.npz",
        in_addr=np.array([0, 0x1000]),
        in_len=np.array([100, 156]),
        in_data=piece,
    )
