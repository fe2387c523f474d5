"""A simulator folder as UMD expects it: run.sh, which starts `bhemu serve`, descriptor, library."""

import hashlib
import importlib.util
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import bhemu
from bhemu.devices.noc_map import COLUMNS, DRAM, L2CPU, ROUTER, ROWS, SECURITY
from bhemu.errors import InputError
from bhemu.jit import cache
from bhemu.memmap import L1_SIZE
from bhemu.noc.grid import ARC_AT, BANKS, ETHERNET_COLUMNS, PCIE_AT, PORTS, Grid
from bhemu.program import files
from bhemu.system import whole_file

# libbhemu.so, which hosts load in place of a card: its C sources, and how it comes to be.

LIBRARY = "libbhemu.so"
_SOURCES = Path(__file__).parent / "libbhemu"
_TARGET = "x86_64-linux-gnu.2.28"  # the oldest C library that Pythons with wheels of ttnn need
_DATA = Path(bhemu.__file__).parent / "data"
_FLAGS = ("-shared", "-fPIC", "-O2", "-std=c11", "-Wall", "-Wextra", "-fvisibility=hidden", "-s")
_OF_ZIG = ("-target", _TARGET, "-Werror", "-fno-sanitize=all")


def build_library(
    to: Path, compiler: Sequence[str] = (sys.executable, "-m", "ziglang", "cc")
) -> None:
    """Compile the library; RuntimeError with what the compiler says.

    ziglang's compiler makes one for all machines, another compiler one for this machine.
    """
    flags = (*_FLAGS, *(_OF_ZIG if "ziglang" in compiler else ()))
    sources = [str(path) for path in sorted(_SOURCES.glob("*.c"))]
    command = [*compiler, *flags, "-o", str(to), *sources, "-ldl", "-lpthread"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)


def library() -> Path:
    """The library for this machine, made from the sources in libbhemu/; its name says which.

    A wheel carries it. Else it is made when it is first wanted, by ziglang in the package, or by
    the machine's `cc` in the cache. InputError where there is none.
    """
    if sys.platform != "linux" or platform.machine() != "x86_64":
        text = f"there is no {LIBRARY} for {sys.platform} on {platform.machine()}"
        raise InputError(text, hint="TT_METAL_SIMULATOR=FOLDER needs none")
    digest = hashlib.sha256()
    for source in sorted(_SOURCES.glob("*.[ch]")):
        digest.update(source.read_bytes())
    made = _DATA / f"libbhemu-x86_64-{digest.hexdigest()[:12]}.so"
    if made.exists():
        return made
    if importlib.util.find_spec("ziglang") is not None:
        return _made(made)
    compiler, own = shutil.which("cc"), cache.root() / made.name
    if compiler is None and not own.exists():
        text = f"this installation has no {LIBRARY}, and there is no compiler for it"
        raise InputError(text, hint="pip install ziglang==0.17.0, or install a C compiler (cc)")
    return own if own.exists() else _made(own, [str(compiler)])


def _made(to: Path, *compiler: Sequence[str]) -> Path:
    with tempfile.TemporaryDirectory() as folder:
        part = Path(folder) / LIBRARY
        build_library(part, *compiler)
        data = part.read_bytes()
    whole_file.write(to, lambda file: file.write(data), mode=0o755)
    return to


# soc_descriptor.yaml: the chip as a host sees it.
#
# In directory mode a host uses these coordinates as they are on NoC 0 and mirrors those of DRAM,
# and only those, within the grid for NoC 1. In the chip's own grid of 17 x 12 some mirrored ports
# of DRAM fall on Tensix tiles. So the grid here is 40 x 36: mirrored, ports lie in columns 30 and
# 39, where nothing else is. They stand at their physical coordinates, because tt-exalens knows no
# others.

GRID = (40, 36)
_BANK_BYTES = (1 << 32) - (16 << 20)  # the last 16 MiB hold the DRAM tile's own registers
_ETHERNET_BYTES = 512 << 10
# The port that firmware uses, by NoC: two ports, so that the NoCs do not meet.
_ENDPOINTS = ((2, 1), (0, 1), (0, 1), (0, 1), (2, 1), (2, 1), (2, 1), (2, 1))
_FEATURES = """\
features:
  noc: {translation_id_enabled: true}
  unpacker: {version: 2, inline_srca_trans_without_srca_trans_instr: true}
  math: {dst_size_alignment: 32768}
  packer: {version: 2}
  overlay: {version: 2}
"""


def soc_descriptor(ethernet: bool = False) -> str:
    """The text of the file: 140 Tensix tiles, eight banks of DRAM, Ethernet tiles if they run."""
    places = Grid().places()
    ports = [place.physical for place in places if place.kind == DRAM]
    others = {place.physical for place in places if place.kind in (ROUTER, SECURITY, L2CPU)}
    links = ((x, 1) for x in ETHERNET_COLUMNS) if ethernet else ()
    banks = (_names(ports[PORTS * bank : PORTS * (bank + 1)]) for bank in range(BANKS))
    views = (
        f"  - {{channel: {bank}, eth_endpoint: {[*ports]}, worker_endpoint: {[*ports]}, "
        f"address_offset: 0}}\n"
        for bank, ports in enumerate(_ENDPOINTS)
    )
    dram = (f"  - {bank}\n" for bank in banks)
    workers = (f"  {_names((x, y) for x in COLUMNS)[1:-1]},\n" for y in ROWS)
    return (
        f"arch_name: BLACKHOLE\ngrid: {{x_size: {GRID[0]}, y_size: {GRID[1]}}}\n"
        f"arc: {_names([ARC_AT])}\npcie: {_names(PCIE_AT)}\neth: {_names(links)}\n"
        f"dram:\n{''.join(dram)}"
        f"dram_views:\n{''.join(views)}dram_view_size: {_BANK_BYTES}\n"
        f"functional_workers: [\n{''.join(workers)}]\nharvested_workers: []\n"
        f"router_only: {_names(sorted(others - {*PCIE_AT}))}\n"
        f"worker_l1_size: {L1_SIZE}\ndram_bank_size: {_BANK_BYTES}\n"
        f"eth_l1_size: {_ETHERNET_BYTES}\n{_FEATURES}"
    )


def _names(places: Iterable[tuple[int, int]]) -> str:
    return f"[{', '.join(f'{x}-{y}' for x, y in places)}]"


RUN, DESCRIPTOR = "run.sh", "soc_descriptor.yaml"
_MARK = "# Written by `bhemu simulator`"


def write(
    folder: Path,
    options: Sequence[str],
    cache: Path,
    library: Path | None = None,
    *,
    chips: int = 1,
) -> None:
    """Write the files into `folder`, which is created; InputError where that cannot be.

    `options` are those of `bhemu serve`; `cache` is where compiled code is kept; `library` goes
    beside run.sh, which it starts. A run.sh that another program wrote is not replaced.
    """
    run = folder / RUN
    if not files.is_missing(run) and _MARK.encode() not in files.read_bytes(run, "PROGRAM_BYTES"):
        raise InputError(f"{run} is not from bhemu", hint="name a folder of its own")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = f"{_MARK}.\n{soc_descriptor(ethernet=chips > 1)}"
        files.write_whole(folder / DESCRIPTOR, descriptor.encode(), "simulator")
        # The host's Python is another one than ours: none of its settings may reach ours
        home = Path(bhemu.__file__).parent.parent
        paths = {Path(sysconfig.get_path(name)) for name in ("purelib", "platlib")}
        lines = [
            "#!/bin/sh",
            f"{_MARK}; a host that uses the folder as its simulator starts it.",
            "unset PYTHONHOME PYTHONPATH PYTHONSTARTUP",
            *([] if home in paths else [f"export PYTHONPATH={shlex.quote(str(home))}"]),
            # Nothing here multiplies; its threads would spin at first
            "export OPENBLAS_NUM_THREADS=1",
            f'[ "$BHEMU_CACHE_DIR" ] || BHEMU_CACHE_DIR={shlex.quote(str(cache))}',
            "export BHEMU_CACHE_DIR",
            f"exec {shlex.join([sys.executable, '-P', '-m', 'bhemu', 'serve', *options])}",
        ]
        files.write_whole(run, "\n".join([*lines, ""]).encode(), "simulator")
        run.chmod(0o755)
        if library is not None:
            files.write_whole(folder / LIBRARY, library.read_bytes(), "simulator")
    except (OSError, ValueError) as problem:  # ValueError: a NUL in the name
        text = f"{folder}: {files.reason(problem)}"
        raise InputError(text, hint="is that folder meant?") from problem
