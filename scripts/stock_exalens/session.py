"""Sessions of stock tt-exalens with the emulator: its commands, and its gdb server with stock gdb.

What it prints is compared with what it must say of scripts/stock_exalens/sample.c, which runs on
brisc of one tile.
"""

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

from elftools.elf.elffile import ELFFile

HERE = Path(__file__).resolve().parent
EXALENS = "0.4.2"
PYTHONS = ((3, 10), (3, 11), (3, 12))  # that its parts have wheels for
SECONDS = 300  # for a session
AT = "-r brisc -l 1-2"
FLAGS = (
    "-target riscv32-freestanding-none -mcpu=generic_rv32+m -O1 -g -ffreestanding -nostdlib"
    " -fno-sanitize=all -fno-omit-frame-pointer -fno-optimize-sibling-calls"
).split()
GDB = """
set confirm off
set architecture riscv:rv32
set endian little
target extended-remote 127.0.0.1:{port}
attach 1
add-symbol-file {elf}
break sample.c:7
continue
backtrace
print $pc
detach
"""
# Memory comes with its bytes reversed from this server, and behind a stop it answers the next
# request to go on with an old stop: so one stop, and no values of memory.
GDB_SAYS = (
    r"Breakpoint 1, depth .*sample\.c:7",
    r"#1 +0x\w+ in depth",
    r"\$1 = .*<depth\+\d+>",
    r"detached",
)


class Missing(RuntimeError):  # noqa: N818 - it says what is missing
    """Something that cannot be had here; nothing is wrong with the rest."""


def install(folder: Path) -> Path:
    """The program tt-exalens, in an environment of its own below `folder`."""
    if sys.version_info[:2] not in PYTHONS:
        wanted = ", ".join(f"{a}.{b}" for a, b in PYTHONS)
        raise Missing(f"tt-exalens {EXALENS} needs Python {wanted}")
    program = folder / "venv" / "bin" / "tt-exalens"
    if not program.exists():
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
        pip = (folder / "venv/bin/python", "-m", "pip", "install", "-q")
        done = subprocess.run(
            [*pip, f"tt-exalens=={EXALENS}"], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise Missing(f"tt-exalens {EXALENS} cannot be installed: {done.stderr[-500:]}")
    return program


def build(folder: Path) -> Path:
    """The ELF of sample.c."""
    elf = folder / "sample.elf"
    line = [sys.executable, "-m", "ziglang", "cc", *FLAGS, f"-Wl,-T,{HERE}/sample.ld"]
    done = subprocess.run(
        [*line, "-o", elf, HERE / "sample.c"], capture_output=True, text=True, check=False
    )
    if "No module named ziglang" in done.stderr:
        raise Missing("the compiler of the package ziglang is not installed")
    if done.returncode:
        raise RuntimeError(done.stderr[-1500:])
    return elf


def symbols(elf: Path) -> dict[str, int]:
    """Addresses by name."""
    with elf.open("rb") as file:
        table = ELFFile(file).get_section_by_name(".symtab")
        return {symbol.name: symbol["st_value"] for symbol in table.iter_symbols()}


def commands(elf: Path) -> list[tuple[str, str]]:
    """Commands and what each must print."""
    at = symbols(elf)
    depth, rounds = at["depth"], at["rounds"]
    return [
        ("wxy 1-2 0x8000 0x12345678", r"<= 0x12345678"),
        ("brxy 1-2 0x8000 2", r"0x00008000: +12345678 +00000000"),
        ("write 0x8004 0xabcd1234 -l 1-2", r""),
        ("read 0x8000 2 -l 1-2 --format hex32", r"12345678 +abcd1234"),
        ("search 0xabcd1234 -l 1-2", r"0x00008004"),
        ("rv status -l 1-2", r"IN RESET - trisc0"),
        (f"re {elf} {AT}", r""),
        (f"rv status {AT}", r"(RUNNING|STATE) PC=0x000000"),  # after a number of turns
        (f"rv bkpt set {depth:#x} {AT}", r"Setting breakpoint"),
        (f"rv status {AT}", f"HALTED PC=0x{depth:08x}"),
        (f"bt {elf} {AT}", r"#0 0x0\w+ in depth \(.*\n.* in main \(\) at .*sample\.c"),
        (f"rv step {AT}", r"Stepping"),
        (f"rv status {AT}", f"HALTED PC=0x{depth + 4:08x}"),
        ("gpr sp,pc -l 1-2", f"pc +0x{depth + 4:08x}"),
        (f"rv wreg 31 0x77 {AT}", r"Writing to register 31"),
        (f"rv rreg 31 {AT}", r"0x00000077"),
        (f"rv bkpt del {AT}", r"Deleting breakpoint"),
        (f"rv wchpt setrw {rounds:#x} {AT}", r"Setting read/write watchpoint"),
        (f"rv cont {AT}", r"Continuing"),
        (f"rv status {AT}", r"HALTED PC="),
        (f"rv rd {rounds:#x} {AT}", r"0x[0-9a-f]{8}"),
        (f"rv wr 0x8008 0x55 {AT}", r"Writing to memory"),
        ("brxy 1-2 0x8008 1", r"0x00008008: +00000055"),
        (f"rv wr 0xffb00010 0x99 {AT}", r"Writing to memory"),
        (f"rv rd 0xffb00010 {AT}", r"0x00000099"),
        ("reg RISCV_DEBUG_REG_SOFT_RESET_0 -l 1-2", r"290816"),
        ("reg cfg(1,0x1E000000,25) -l 1-2", r"0"),
        ("tensix alu -l 1-2", r"Dstacc_override|ALU"),
        ("tensix rwc -l 1-2", r"all_buffers_empty +│ 0x7"),
        ("tensix adc -a 0x9000 -l 1-2", r"ADCS0_UNPACKER0_CHANNEL0"),
        ("noc status -l 1-2", r"read reqs sent +│ 0xffb20214 │ 0x00000000"),
        ("dbus brisc_pc -l 1-2", r"brisc_pc: 0x"),
        ("dr dstacc -t 1 -l 1-2", r"(0\.0\s+){32}"),
        ("d", r"0"),
    ]


def call(program: Path, simulator: Path, *words: str) -> list[str]:
    """The command line of tt-exalens."""
    return [str(program), "-s", str(simulator), *words]


def environment() -> dict[str, str]:
    """UMD listens on this machine only."""
    return {**os.environ, "TT_SIMULATOR_LOCALHOST": "1", "NO_COLOR": "1", "PYTHONUNBUFFERED": "1"}


def check_commands(program: Path, simulator: Path, elf: Path) -> str:
    """All commands in one session; RuntimeError with the first that says something else."""
    wanted = commands(elf)
    line = call(program, simulator, "--commands", ";".join([c for c, _ in wanted] + ["x"]))
    done = subprocess.run(
        line, env=environment(), capture_output=True, text=True, timeout=SECONDS, check=False
    )
    text = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout)
    parts = text.split("Executing command: ")[1:]
    for (command, says), part in zip(wanted, parts, strict=False):
        if not re.search(says, part.partition("\n")[2]) or "Traceback" in part:
            raise RuntimeError(f"{command}: no {says!r} in\n{part}\n{done.stderr[-1500:]}")
    if done.returncode or len(parts) < len(wanted):
        raise RuntimeError(f"exit code {done.returncode}\n{text[-1500:]}{done.stderr[-1500:]}")
    return f"{len(wanted)} commands"


def check_gdb(program: Path, simulator: Path, elf: Path) -> str:
    """The gdb server of tt-exalens with stock gdb: attach, break, where it stopped."""
    gdb = shutil.which("gdb-multiarch")
    if gdb is None:
        return "gdb-multiarch is not installed: left out"
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = f"re {elf} {AT};rv status {AT}"  # the second is announced once brisc runs
    line = call(program, simulator, f"--start-gdb={port}", "--commands", words)
    server = subprocess.Popen(
        line, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        _wait_for(port, server)
        assert server.stdout is not None
        for text in server.stdout:
            if "rv status" in text:
                break
        words = GDB.format(port=port, elf=elf).strip().splitlines()
        options = [word for line in words for word in ("-ex", line)]
        done = subprocess.run(
            [gdb, "-q", "-nx", "-batch", *options],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    finally:
        server.communicate("x\n", timeout=SECONDS)
    found = [re.search(says, done.stdout) for says in GDB_SAYS]
    if None in found:
        missing = GDB_SAYS[found.index(None)]
        raise RuntimeError(f"gdb: no {missing!r} in\n{done.stdout}{done.stderr[-800:]}")
    return "gdb"


def _wait_for(port: int, server: "subprocess.Popen[str]") -> None:
    end = time.monotonic() + SECONDS
    while server.poll() is None and time.monotonic() < end:
        if f":{port:04X} 00000000:0000 0A" in Path("/proc/net/tcp").read_text():
            return  # somebody listens; a connection would be taken for gdb's
        time.sleep(0.2)
    raise RuntimeError("tt-exalens started no gdb server")


def check(folder: Path, simulator: Path) -> str:
    """Both; what was done, in words."""
    program, elf = install(folder), build(folder)
    return "; ".join(step(program, simulator, elf) for step in (check_commands, check_gdb))
