"""The host side of tt-llk's suite, on the functions of tt-exalens: boot, a test of addition.

Run as a script it does two tests, where ttexalens is on the path (scripts/check_wheel.py).
"""

import importlib
import struct
from dataclasses import astuple
from typing import Any

from llk_runner import ADD, ELFS, PARAMS, UNPACK_AB, A, B, C, Params, params

from bhemu import llk as device

SOFT_RESET = "RISCV_DEBUG_REG_SOFT_RESET_0"
BRISC, TRISCS = 0x800, 0x7000
ONE, TWO, THREE = (struct.pack("<H", bits) * 1024 for bits in (0x3F80, 0x4000, 0x4040))


class Suite:
    """The host side as in tt-llk's test_config.py and device.py, on the stand-in's functions."""

    def __init__(self, lib: Any) -> None:
        self.lib, self.commands = lib, 0
        self.booted = False

    def registers(self) -> Any:
        coordinate = self.lib.convert_coordinate("0,0", 0)
        return coordinate.device.get_block(coordinate).get_register_store()

    def command(self, number: int) -> None:
        address = 0x1FFC8 if self.commands & 1 else 0x1FFC4
        self.lib.write_words_to_device("0,0", address, [number])
        self.commands += 1
        for _ in range(20):
            if self.lib.read_word_from_device("0,0", 0x1FFCC, 0) == self.commands:
                return
        raise TimeoutError(f"command {number}")

    def run(self, chosen: Params) -> bytes:
        store = self.registers()
        words = struct.pack(f"<{len(astuple(chosen))}I", *astuple(chosen))
        self.lib.write_to_device("0,0", PARAMS, words)
        self.lib.write_to_device("0,0", A, ONE)
        self.lib.write_to_device("0,0", B, list(TWO))
        if not self.booted:
            store.write_register(SOFT_RESET, store.read_register(SOFT_RESET) | BRISC | TRISCS)
            self.lib.load_elf(str(ELFS / "brisc.elf"), "0,0", "brisc", verify_write=True)
            store.write_register(SOFT_RESET, store.read_register(SOFT_RESET) & ~BRISC)
            self.booted = True
        self.command(device.RESET_TRISCS)
        for i in range(3):
            path = str(ELFS / f"trisc{i}.elf")
            self.lib.load_elf(elf_file=path, location="0,0", risc_name=f"trisc{i}", neo_id=None)
        self.command(device.START_TRISCS)
        waiting = {0x1FFB8, 0x1FFBC, 0x1FFC0}
        for _ in range(4):
            waiting -= {at for at in waiting if self.lib.read_word_from_device("0,0", at) == 0xFF}
        if waiting:
            raise TimeoutError(f"{waiting}")
        data: bytes = self.lib.read_from_device("0,0", C, num_bytes=2048)
        return data


def addition(**more: int) -> Params:
    return params({"unpack": UNPACK_AB, "math": ADD}, "bf16", "bf16", "bf16", "bf16", **more)


def main() -> None:
    """Two tests on one tile, as a suite runs them."""
    suite = Suite(importlib.import_module("ttexalens.tt_exalens_lib"))
    for _ in range(2):
        assert suite.run(addition()) == THREE
    print("two tests of tt-llk's kind passed on", suite.lib.__file__)


if __name__ == "__main__":
    main()
