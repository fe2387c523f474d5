"""Everything that is compiled on its own."""

from collections.abc import Iterator

from bhemu.devices.bus import entries as windows
from bhemu.jit.build import Entry
from bhemu.machine.backend import BUS, CSR, TIMED
from bhemu.noc.network import ENTRIES as CHIP
from bhemu.program.schema import ENGINES
from bhemu.riscv.engine import entries as engine_entries
from bhemu.tensix import compiled, insn
from bhemu.tensix.insn import REGISTRY


def entries() -> Iterator[Entry]:
    """Every entry: loop, the engines, devices, instructions, profiling."""
    yield from compiled.LOOP.values()
    for engine in ENGINES:
        yield from engine_entries(engine).values()
    yield from BUS.values()
    yield CSR
    yield TIMED
    yield from windows.performed()
    yield from CHIP.values()
    yield from (
        compiled.entry(opcode) for opcode, cls in REGISTRY.items() if cls.execute is not None
    )
    yield from map(compiled.second_entry, insn.ENTRIES)
    yield compiled.WORD
    yield from compiled.WRAPPERS.values()
