"""Build every ELF under elfs/ reproducibly, or check that the ones there are what the sources give.

python firmware/build.py            write elfs/*/*.elf and elfs/MANIFEST.toml
python firmware/build.py --check    build in a scratch folder and compare; status 1 if different
"""

import argparse
import hashlib
import importlib.metadata
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bhemu import kernel as compiler  # noqa: E402

ZIGLANG = "0.17.0"  # another compiler gives other bytes

FLAGS = [*compiler.FLAGS, "-Werror", "-Wl,-z,max-page-size=16"]
LINKED = compiler.LINKED


@dataclass(frozen=True)
class Program:
    """One ELF: paths are relative to the root of the repository."""

    elf: str
    core: str  # names its linker script and the macro CORE_<NAME>
    sources: tuple[str, ...]  # the first is the start code, beside the linker scripts
    moves: bool = False  # loaded elsewhere than linked: relocations are kept


def _kernel(
    elfs: str, sources: str, start: str = "firmware/lib/crt0.S", **cores: str
) -> list[Program]:
    """elfs/<elfs>/<core>.elf of each core from firmware/<sources>/<file>."""
    return [
        Program(f"elfs/{elfs}/{core}.elf", core, (start, f"firmware/{sources}/{source}"))
        for core, source in cores.items()
    ]


def _firmware(folder: str) -> list[Program]:
    """elfs/<folder>/<core>.elf of the slow-dispatch firmware."""
    return _kernel(
        folder,
        "slow_dispatch",
        "firmware/slow_dispatch/crt0.S",
        **dict.fromkeys(("trisc0", "trisc1", "trisc2"), "trisc.c"),
        brisc="brisc.c",
        ncrisc="ncrisc.c",
    )


def _under_firmware(elfs: str, **cores: str) -> list[Program]:
    """A program of many tiles: kernels, and beside them the firmware that launches them."""
    start = "firmware/kernel/crt0.S"
    kernels = [
        Program(f"elfs/{elfs}/{core}.elf", core, (start, f"firmware/{source}"), moves=True)
        for core, source in cores.items()
    ]
    return kernels + _firmware(f"{elfs}/firmware")


_READER, _WRITER = "dataflow/reader.c", "dataflow/writer.c"
KERNEL = {"brisc": "brisc.c", "trisc0": "unpack.c", "trisc1": "math.c", "trisc2": "pack.c"}
PROGRAMS = [
    *_kernel("add1", "add1", **KERNEL),
    *_kernel("matmul", "matmul", **KERNEL),
    *_kernel("eltwise", "eltwise", **KERNEL),
    *_kernel("reduce", "reduce", **KERNEL),
    *_kernel("bench", "bench", **KERNEL),
    *_kernel("sfpu", "sfpu", **KERNEL),
    *_kernel("hang_flag", "hangs", brisc="flag_brisc.c", trisc0="flag_trisc0.c"),
    *_kernel("hang_timeout", "hangs", trisc0="timeout_trisc0.c"),
    *_kernel("hang_cycle", "hangs", trisc1="cycle_math.c", trisc2="cycle_pack.c"),
    *_firmware("slow_dispatch"),
    *_kernel("llk_like", "llk_like", "firmware/llk_like/crt0.S", **KERNEL),
    *_under_firmware("copy_dram", brisc=_WRITER, ncrisc=_READER),
    *_under_firmware(
        "add1_chip",
        brisc=_WRITER,
        ncrisc=_READER,
        trisc0="add1_chip/unpack.c",
        trisc1="add1_chip/math.c",
        trisc2="add1_chip/pack.c",
    ),
    *_under_firmware(
        "matmul_mcast",
        brisc="matmul_mcast/in1.c",
        ncrisc="matmul_mcast/in0.c",
        trisc0="matmul_mcast/unpack.c",
        trisc1="matmul_mcast/math.c",
        trisc2="matmul_mcast/pack.c",
    ),
    *_under_firmware("all_gather", brisc="all_gather/brisc.c"),
]


def write_header(folder: Path) -> None:
    """Write the generated instruction header into `folder`."""
    import bhemu.tensix.units  # noqa: F401  (declares the instructions)
    from bhemu.kernel import c_header

    (folder / "tensix_insn.h").write_text(c_header())


def build(program: Program, out: Path, generated: Path) -> None:
    """Compile one program to `out`; the bytes depend on neither folder nor machine."""
    # The working folder is the root, so every path the compiler sees and records is relative.
    zig = compiler.Compiler(compiler.zig() or Path("zig"), is_zig=True)
    places = ["-Werror", "-Ifirmware", f"-I{generated}"]
    places += [f"-ffile-prefix-map={generated}=generated", "-fdebug-compilation-dir=."]
    script = Path(program.sources[0]).with_name(f"{program.core}.ld")
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        objects = [str(Path(scratch) / f"{n}.o") for n in range(len(program.sources))]
        commands = []
        for source, target in zip(program.sources, objects, strict=True):
            # zig writes another object, as good, where no list of what is included is asked for.
            listed = [] if program.moves else ["-MD", "-MF", f"{target}.d"]
            commands.append(zig.compile(program.core, source, target, [*places, *listed]))
        link = (program.core, script, objects, out, "firmware")
        for command in (*commands, zig.link(*link, moves=program.moves)):
            done = compiler.run(command, ROOT)
            if done.returncode:
                raise SystemExit(f"{program.elf}: the compiler failed\n{done.stderr}")


def build_all(out: Path) -> dict[str, bytes]:
    """Build every program below `out`; returns {path of the ELF: its bytes}."""
    with tempfile.TemporaryDirectory() as scratch:
        generated = Path(scratch)
        write_header(generated)
        for program in PROGRAMS:
            build(program, out / program.elf, generated)
    return {program.elf: (out / program.elf).read_bytes() for program in PROGRAMS}


def manifest(elfs: dict[str, bytes]) -> str:
    """Text of MANIFEST.toml for these ELFs."""
    lines = [
        "# Generated by firmware/build.py: hashes of the built ELFs and what built them.",
        "[toolchain]",
        f'ziglang = "{ZIGLANG}"',
        f'flags = "{" ".join(FLAGS)}"',
    ]
    for program in PROGRAMS:
        data = elfs[program.elf]
        sources = ", ".join(f'"{source}"' for source in program.sources)
        lines += ["", "[[elf]]", f'path = "{program.elf}"', f"size = {len(data)}"]
        lines += [f'sha256 = "{hashlib.sha256(data).hexdigest()}"', f"sources = [{sources}]"]
    return "\n".join(lines) + "\n"


def require_toolchain() -> None:
    """Stop unless the pinned compiler is installed."""
    try:
        found = importlib.metadata.version("ziglang")
    except importlib.metadata.PackageNotFoundError:
        raise SystemExit(f"ziglang is missing: pip install ziglang=={ZIGLANG}") from None
    if found != ZIGLANG:
        raise SystemExit(f"ziglang {found} would give other bytes: pip install ziglang=={ZIGLANG}")


def check() -> int:
    """Number of ELFs, counting the manifest, that differ from a fresh build."""
    with tempfile.TemporaryDirectory() as scratch:
        fresh = build_all(Path(scratch))
    files = {path: (ROOT / path).read_bytes() for path in fresh if (ROOT / path).exists()}
    different = [path for path in fresh if files.get(path) != fresh[path]]
    listed = ROOT / "elfs/MANIFEST.toml"
    if not listed.exists() or listed.read_text() != manifest(fresh):
        different.append("elfs/MANIFEST.toml")
    for path in different:
        print(f"{path}: not what the sources give; run python firmware/build.py", file=sys.stderr)
    return len(different)


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    arguments = parser.parse_args()
    require_toolchain()
    if arguments.check:
        return int(check() != 0)
    (ROOT / "elfs/MANIFEST.toml").write_text(manifest(build_all(ROOT)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
