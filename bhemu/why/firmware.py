"""The ELFs of a program's firmware, which is taken to be right."""

from bhemu.machine.core import Core
from bhemu.program.schema import Program


def firmware_of(program: Program) -> frozenset[bytes]:
    """The bytes of each of its ELFs."""
    elfs = {} if program.firmware is None else program.firmware.elfs
    return frozenset(path.read_bytes() for path in elfs.values())


def in_firmware(firmware: frozenset[bytes], core: Core, pc: int) -> bool:
    """Whether an instruction of a core is of one of those ELFs."""
    return any(image.data in firmware and image.lookup(pc) for image in core.images)
