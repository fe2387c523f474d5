"""Makes a folder in which stock ttnn runs, with a stand-in for sfpi's compiler.

    python scripts/stock_ttnn/install.py FOLDER [PYTHON]

ttnn comes from the Python package registry, the RISC-V compiler from Debian's (12, unpacked into
FOLDER, nothing is installed); about 210 MB. What is there already is left alone. PYTHON: a Python
3.10 or 3.12, the two that ttnn has wheels for; default: one that is found.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from elftools.elf.elffile import ELFFile

HERE = Path(__file__).resolve().parent
TTNN = "0.81.1"
PYTHONS = ("3.10", "3.12")
DEBS = (
    "gcc-riscv64-unknown-elf",
    "binutils-riscv64-unknown-elf",
    "libstdc++-12-dev",
    "libnewlib-dev",
)
LIBRARY_DEBS = ("libisl23", "libmpc3", "libmpfr6", "libgmp10", "libzstd1")
# Under these numbers ttnn looks for the firmware of a simulator folder and of its library: hashes
# of, among others, the text by which compiler.py states its version. No set in the wheel has them.
FIRMWARE = ("14121442395078755387", "2906205993819637780")
LAYOUT = {"bank_to_dram_offset": 4 * 8, "bank_to_l1_offset": 4 * 130}  # bytes of the bank tables
DISPATCH = 0xFFB70  # the page of the tile register that worker dispatch writes
TOOLS = ("nm", "objcopy", "objdump", "readelf", "strip")


class Missing(RuntimeError):  # noqa: N818 - it says what is missing
    """Something that cannot be had here; nothing is wrong with the rest."""


def call(*words: str | Path, cwd: Path | None = None, check: bool = True, **more: str) -> str:
    """What a command prints; RuntimeError with the end of it when it fails."""
    there = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        words, cwd=cwd, env={**there, **more}, capture_output=True, text=True, check=False
    )
    if check and done.returncode:
        tail = (done.stdout + done.stderr).strip()[-1500:]
        raise RuntimeError(f"{' '.join(map(str, words))}: exit code {done.returncode}\n{tail}")
    return done.stdout.strip()


def find_python() -> str:
    """A Python that ttnn has a wheel for: on the PATH, or among those of pyenv and uv."""
    home = Path.home()
    folders = ((".pyenv/versions", ""), (".local/share/uv/python", "cpython-"))
    found = [f"python{version}" for version in PYTHONS]
    for folder, prefix in folders:
        for version in PYTHONS:
            found += map(str, sorted((home / folder).glob(f"{prefix}{version}.*/bin/python3")))
    wanted = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"
    for name in found:
        if shutil.which(name) and call(name, "-c", wanted, check=False) in PYTHONS:
            return name
    raise Missing(f"ttnn {TTNN} needs Python {' or '.join(PYTHONS)}, and none is at hand")


def install_ttnn(folder: Path, python: str) -> Path:
    """An environment with ttnn; the folder of the package."""
    binary = folder / "venv" / "bin" / "python"
    if not binary.exists():
        call(python, "-m", "venv", folder / "venv")
    show = (binary, "-c", "from importlib.metadata import version; print(version('ttnn'))")
    if call(*show, check=False) != TTNN:
        call(binary, "-m", "pip", "install", "-q", "--disable-pip-version-check", f"ttnn=={TTNN}")
    return next((folder / "venv" / "lib").glob("python3.*/site-packages/ttnn"))


def unpack(folder: Path, packages: tuple[str, ...]) -> None:
    """Debian packages, unpacked below FOLDER/root."""
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise Missing("the RISC-V compiler comes from Debian 12, whose apt-get is not at hand")
    debs = folder / "deb"
    debs.mkdir(exist_ok=True)
    try:
        call("apt-get", "download", *packages, cwd=debs)
    except RuntimeError:
        call("apt-get", "update")
        call("apt-get", "download", *packages, cwd=debs)
    for deb in debs.glob("*.deb"):
        call("dpkg-deb", "-x", deb, folder / "root")
    shutil.rmtree(debs)


def install_gcc(folder: Path) -> tuple[Path, str]:
    """The stock compiler, and where its own shared libraries are ("": the system has them)."""
    gcc, libraries = folder / "root/usr/bin/riscv64-unknown-elf-g++", folder / "root/libraries"
    probe = folder / "probe.cpp"
    probe.write_text("int main() {}\n")

    def runs() -> bool:
        line = (gcc, "-march=rv32im", "-mabi=ilp32", "-c", probe, "-o", probe.with_suffix(".o"))
        try:
            call(*line, LD_LIBRARY_PATH=str(libraries))
        except (OSError, RuntimeError):
            return False
        return True

    if not runs():
        unpack(folder, DEBS)
    if not runs():
        unpack(folder, LIBRARY_DEBS)
        libraries.mkdir()
        for library in (folder / "root").rglob("*linux-gnu*/*.so.*"):
            shutil.copy2(library, libraries, follow_symlinks=False)
        if not runs():
            raise RuntimeError(f"{gcc} does not run")
    return gcc, str(libraries)


def install_compiler(folder: Path, package: Path, gcc: Path, libraries: str) -> None:
    """The stand-in, in the place where ttnn looks for sfpi's compiler."""
    sfpi, include = package / "runtime/sfpi", folder / "include"
    binaries = sfpi / "compiler/bin"
    for path in (binaries, sfpi / "include", include):
        path.mkdir(parents=True, exist_ok=True)
    for header in (HERE / "include").glob("*.h"):
        shutil.copy(header, sfpi / "include")
        shutil.copy(header, include)
    first = include / "first/api/compute"
    first.mkdir(parents=True, exist_ok=True)
    shutil.copy(HERE / "include/first/compute_kernel_api.h", first)
    stock = folder / "root/usr/include"
    shutil.copytree(stock / "x86_64-linux-gnu/c++/12/bits", include / "bits", dirs_exist_ok=True)
    config = include / "bits/c++config.h"  # of a system with threads; the cores have none
    threads = r"(?m)^#define _GLIBCXX_(HAVE_LINUX_FUTEX|HAS_GTHREADS|USE_PTHREAD_\w+)\b.*$"
    config.write_text(re.sub(threads, "", config.read_text()))
    (include / "bits/os_defines.h").write_text("")
    support = folder / "support.o"
    line = ("-march=rv32im", "-mabi=ilp32", "-O2", "-ffreestanding", "-w", "-xc", "-c")
    call(gcc, *line, HERE / "support.c", "-o", support, LD_LIBRARY_PATH=libraries)
    shutil.copy(HERE / "compiler.py", binaries / "riscv-tt-elf-g++")
    (binaries / "riscv-tt-elf-g++").chmod(0o755)
    for tool in TOOLS:
        link = binaries / f"riscv-tt-elf-{tool}"
        link.unlink(missing_ok=True)
        link.symlink_to(gcc.with_name(f"riscv64-unknown-elf-{tool}"))
    headers = [stock / "c++/12", stock / "newlib", stock / "c++/12/backward"]
    setup = {"gcc": gcc, "libraries": libraries, "include": include, "support": support}
    shown = {**{name: str(value) for name, value in setup.items()}, "headers": [*map(str, headers)]}
    (binaries / "setup.json").write_text(json.dumps(shown, indent=1))


def firmware_sets(precompiled: Path) -> Iterator[Path]:
    """The sets of LAYOUT for Blackhole whose dispatch messages go to a worker tile."""
    for brisc in sorted(precompiled.glob("*/brisc/brisc.elf")):
        chosen = brisc.parents[1]
        if chosen.is_symlink() or not (chosen / "drisc").exists():
            continue
        with brisc.open("rb") as file:
            elf = ELFFile(file)
            found = {
                s.name: s["st_size"] for s in elf.get_section_by_name(".symtab").iter_symbols()
            }
            code = elf.get_section_by_name(".text").data()
        words = (int.from_bytes(code[i : i + 4], "little") for i in range(0, len(code) & ~3, 4))
        loads_page = any(word & 0x7F == 0x37 and word >> 12 == DISPATCH for word in words)
        if loads_page and all(found.get(name) == size for name, size in LAYOUT.items()):
            yield chosen


def link_firmware(package: Path) -> None:
    """Give a set in the wheel the numbers that ttnn asks for."""
    precompiled = package / "tt_metal/pre-compiled"
    for number in FIRMWARE:
        link = precompiled / number
        if not link.is_symlink():
            link.symlink_to(next(firmware_sets(precompiled)).name)


def install(folder: Path, python: str | None = None) -> Path:
    """Make everything; the Python that has ttnn. Missing where something cannot be had."""
    folder.mkdir(parents=True, exist_ok=True)
    folder = folder.resolve()
    package = install_ttnn(folder, python or find_python())
    gcc, libraries = install_gcc(folder)
    install_compiler(folder, package, gcc, libraries)
    link_firmware(package)
    return folder / "venv/bin/python"


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 3:
        sys.exit(__doc__)
    try:
        print(install(Path(sys.argv[1]), *sys.argv[2:]))
    except Missing as what:
        sys.exit(str(what))
