"""Placing a program on a tile, running it and checking its outputs (interface chapter)."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from elf_builder import LOCAL, Elf, Sec, Seg, Sym

from bhemu import memmap
from bhemu.devices.bus.address_map import REGISTERS
from bhemu.errors import InputError
from bhemu.launch import launch
from bhemu.machine.resolve import resolve
from bhemu.program.schema import CoreSpec, InputSpec, OutputSpec, Program, RunSpec, SetSpec, Until
from bhemu.riscv.assembly import A0, A1, PARK, T0, ZERO, addi, code, jal, li, lw, sw

START = 0x10000


def elf(folder: Path, data: bytes, *more: Seg, at: int = START, name: str = "k.elf") -> Path:
    text = Sec(".text", at, len(data))
    symbols = [Sym("_start", at, len(data)), Sym("args", 0x20000, 4, "OBJECT", None)]
    path = folder / name
    path.write_bytes(bytes(Elf([Seg(at, data), *more], [text], symbols, entry=at)))
    return path


def program(*cores: CoreSpec, **parts: Any) -> Program:
    image = {"kind": "image"} if parts.get("image") else {"kind": "elf"}
    return Program(name="p", cores={core.name: core for core in cores}, **image, **parts)


def with_run(program: Program, **changes: Any) -> Program:
    return replace(program, run=program.run.with_options(changes))


def copy(source: int, target: int) -> bytes:
    """Copies one word of the address space to L1 and parks."""
    return code(li(A0, source), lw(A1, A0), li(A0, target), sw(A1, A0), PARK)


@pytest.mark.parametrize("core", memmap.CORE_NAMES)
def test_every_core_starts_at_the_entry_of_its_elf(tmp_path, core) -> None:
    path = elf(tmp_path, code(addi(A0, ZERO, 7), sw(A0, ZERO, 0x100), PARK))
    p = program(CoreSpec(core, path))
    tile = launch(p)
    assert tile.run().reason == "idle"
    assert tile.read32(0x100) == 7
    assert [c.name for c in tile.core.values() if c.retired] == [core]


@pytest.mark.parametrize("entry", [0x40, 0x1234C, 0xFF000, 0x100000, 0x17F800])
def test_brisc_jumps_from_address_0_to_its_entry(tmp_path, entry) -> None:
    """BRISC always starts at 0; jal reaches 1 MiB, L1 ends at 1.5 MiB."""
    path = elf(tmp_path, code(addi(A0, ZERO, 7), sw(A0, ZERO, 0x200), PARK), at=entry)
    p = program(CoreSpec("brisc", path))
    tile = launch(p)
    tile.run()
    assert tile.read32(0x200) == 7
    assert tile.core["brisc"].pc == entry + 8


def test_start_code_that_brisc_brings_along_stays(tmp_path) -> None:
    reset = Seg(0, code(addi(T0, ZERO, 5), jal(ZERO, START - 4)))
    path = elf(tmp_path, code(sw(T0, ZERO, 0x100), PARK), reset)
    p = program(CoreSpec("brisc", path))
    tile = launch(p)
    tile.run()
    assert tile.read32(0x100) == 5


def test_no_room_for_the_jump_names_what_lies_there(tmp_path) -> None:
    other = elf(tmp_path, code(PARK), at=0, name="other.elf")
    brisc = elf(tmp_path, code(PARK))
    with pytest.raises(InputError, match=r"brisc starts at L1 address 0, where .*other\.elf lies"):
        launch(program(CoreSpec("brisc", brisc), CoreSpec("ncrisc", other)))


def test_a_core_that_is_not_released_stays_in_reset_with_its_start_address(tmp_path) -> None:
    path = elf(tmp_path, code(PARK))
    brisc = elf(tmp_path, code(PARK), at=0x4000, name="b.elf")
    tile = launch(program(CoreSpec("brisc", brisc), CoreSpec("trisc1", path, release=False)))
    assert tile.core["trisc1"].state == "reset"
    assert tile.read32(REGISTERS["TRISC1_RESET_PC"]) == START


def test_local_segments_are_there_when_the_core_starts(tmp_path) -> None:
    path = elf(tmp_path, copy(LOCAL + 8, 0x100), Seg(LOCAL, bytes(8) + b"\x78\x56\x34\x12"))
    p = program(CoreSpec("trisc2", path))
    tile = launch(p)
    tile.run()
    assert tile.read32(0x100) == 0x12345678


def test_local_segments_are_there_when_another_core_releases_it(tmp_path) -> None:
    path = elf(tmp_path, copy(LOCAL + 8, 0x100), Seg(LOCAL, bytes(8) + b"\x78\x56\x34\x12"))
    release = memmap.SOFT_RESET_ALL & ~(1 << memmap.SOFT_RESET_BITS[2] | 1 << 11)
    register = REGISTERS["SOFT_RESET_0"]
    first = code(li(A0, register), li(A1, release), sw(A1, A0), PARK)
    brisc = elf(tmp_path, first, at=0x4000, name="b.elf")
    p = program(CoreSpec("brisc", brisc), CoreSpec("trisc1", path, release=False))
    tile = launch(p)
    tile.run()
    assert tile.read32(0x100) == 0x12345678


def test_sets_reach_l1_local_ram_and_registers(tmp_path) -> None:
    path = elf(tmp_path, copy(LOCAL + 0x10, 0x100))
    word = (0xCAFE0001).to_bytes(4, "little")
    sets = (
        SetSpec("args+4", b"\1\2\3\4\5", "trisc0"),
        SetSpec(LOCAL + 0x10, word, "trisc0"),
        SetSpec("TRISC2_RESET_PC", (0x5000).to_bytes(4, "little")),
        SetSpec("RISCV_DEBUG_REG_TRISC1_RESET_PC", (0x6000).to_bytes(4, "little")),
        SetSpec(0xFFE00004, (77).to_bytes(4, "little"), "trisc0"),
    )
    p = program(CoreSpec("trisc0", path), sets=sets)
    tile = launch(p)
    tile.run()
    assert tile.read(0x20004, 5) == b"\1\2\3\4\5"
    assert tile.read32(0x100) == 0xCAFE0001
    assert tile.read32(REGISTERS["TRISC2_RESET_PC"]) == 0x5000
    assert tile.read32(REGISTERS["TRISC1_RESET_PC"]) == 0x6000
    assert tile.tensix.gpr[0, 1] == 77


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (SetSpec("nothing", b"\0", "trisc0"), "no symbol nothing"),
        (SetSpec("args", b"\0", "brisc"), "brisc has no ELF"),
        (SetSpec("nothing", b"\0"), "no symbol or register nothing"),
        (SetSpec(LOCAL, b"\0"), "private RAM"),
        (SetSpec(LOCAL + 0xFFE, b"\0\0\0\0", "trisc0"), "end beyond the local RAM"),
        (SetSpec(0x17FFFF, b"\0\0"), "not inside L1"),
        (SetSpec("SOFT_RESET_0", b"\0"), "whole words"),
        (SetSpec(0xFFE00004, bytes(4)), "the host cannot write 0xffe00004 .*no access"),
        (SetSpec(0xFFE00004, bytes(4), "ncrisc"), "ncrisc cannot write 0xffe00004"),
    ],
)
def test_a_set_that_cannot_be_made_is_named(tmp_path, spec, message) -> None:
    spec = replace(spec, origin="[[set]] 3")
    path = elf(tmp_path, code(PARK))
    with pytest.raises(InputError, match=rf"\[\[set\]\] 3: .*{message}"):
        launch(program(CoreSpec("trisc0", path), sets=(spec,)))


def test_a_symbol_with_several_addresses_needs_a_core(tmp_path) -> None:
    first = elf(tmp_path, code(PARK))
    second = elf(tmp_path, code(PARK), at=0x14000, name="second.elf")
    tile = launch(program(CoreSpec("trisc0", first), CoreSpec("trisc1", second)))
    assert resolve(tile, "_start+4", "trisc1") == 0x14004
    assert resolve(tile, "args") == 0x20000
    with pytest.raises(InputError, match="_start stands for several addresses: 0x10000, 0x14000"):
        resolve(tile, "_start")


def test_an_image_starts_its_cores_at_their_addresses(tmp_path) -> None:
    image = tmp_path / "l1.bin"
    image.write_bytes(bytes(START) + code(addi(A0, ZERO, 3), sw(A0, ZERO, 0x100), PARK))
    cores = CoreSpec("brisc", pc=START), CoreSpec("trisc1", pc=START)
    p = program(*cores, image=image, run=RunSpec(until=(Until(0x100, 3),)))
    tile = launch(p)
    assert tile.run().reason == "until"
    assert tile.read32(0x100) == 3
    assert tile.core["trisc1"].pc == START  # brisc's store ended the run
    assert tile.run("idle").reason == "idle"
    assert tile.core["trisc1"].pc == START + 8


def test_inputs_go_in_and_outputs_are_saved_and_compared(tmp_path) -> None:
    values = np.arange(1024, dtype=np.float32).reshape(32, 32) % 128
    np.save(tmp_path / "a.npy", values)
    wrong = values.copy()
    wrong[3, 17] += 1
    np.save(tmp_path / "wrong.npy", wrong)
    path = elf(tmp_path, code(PARK))
    shape = ("bf16", "tile32", (32, 32))
    out = OutputSpec("c", 0x50000, *shape, tmp_path / "c.npy", tmp_path / "a.npy")
    bad = OutputSpec("d", 0x50000, *shape, None, tmp_path / "wrong.npy")
    p = program(
        CoreSpec("trisc0", path),
        inputs=(InputSpec(0x50000, tmp_path / "a.npy", *shape),),
        outputs=(out, bad, OutputSpec("e", 0x50000, *shape)),
    )
    tile = launch(p)
    tile.run()
    good, differs, silent = tile.check()
    assert (good.equal, differs.equal, silent.equal) == (True, False, True)
    assert np.array_equal(np.load(tmp_path / "c.npy"), values)
    assert str(good) == f"c  32x32 bf16  equal (1024 of 1024)  saved to {tmp_path / 'c.npy'}"
    assert "tile (0,0) face 1 row 3 column 1" in str(differs)
    assert str(silent) == "e  32x32 bf16  not compared"
    assert differs.as_dict()["differing"] == 1
    assert sorted(p.name for p in tmp_path.iterdir() if p.name.startswith(".")) == []


def test_what_cannot_be_saved_is_refused_before_anything_runs(tmp_path) -> None:
    path = elf(tmp_path, code(PARK))
    (tmp_path / "folder.npy").mkdir()

    def saving(target: Path, dtype: str = "bf16") -> Program:
        spec = OutputSpec("c", 0, dtype, "rows", (16,), save=target)
        return program(CoreSpec("trisc0", path), outputs=(spec,))

    with pytest.raises(InputError, match="is a folder"):
        launch(saving(tmp_path / "folder.npy"))
    with pytest.raises(InputError, match="cannot be written"):
        launch(saving(tmp_path / "missing" / "c.npy"))
    with pytest.raises(InputError, match=r"not \.npy"):
        launch(saving(tmp_path / "c.txt"))


def test_how_to_run_reaches_the_tile(tmp_path) -> None:
    p = program(CoreSpec("trisc0", elf(tmp_path, code(PARK))))
    tile = launch(with_run(p, poison="ff", ub="silicon", reference="llk", livelock=9), quantum=7)
    assert tile.read32(0x60000) == 0xFFFFFFFF
    s = tile.state
    assert (s.ub_mode[0], s.reference[0], s.quantum[0], s.livelock[0]) == (2, 1, 7, 9)
    random = [launch(with_run(p, poison="random", seed=n)).read(0x60000, 64) for n in (1, 1, 2)]
    assert random[0] == random[1] != random[2]


def test_unknown_symbols_of_outputs_and_end_conditions_are_found_before_running(tmp_path) -> None:
    core = CoreSpec("trisc0", elf(tmp_path, code(PARK)))
    spec = OutputSpec("c", "results", "bf16", "rows", (16,), origin="[[output]] 1")
    with pytest.raises(InputError, match=r"\[\[output\]\] 1: no symbol or register results"):
        launch(program(core, outputs=(spec,)))
    with pytest.raises(InputError, match=r"\[run\] until: no symbol or register done"):
        launch(program(core, run=RunSpec(until=(Until("done", 1),))))
    with pytest.raises(InputError, match="not inside L1"):
        launch(program(core, run=RunSpec(until=(Until("SOFT_RESET_0", 1),))))


def test_limit_and_timeout_end_a_run(tmp_path) -> None:
    p = program(CoreSpec("trisc0", elf(tmp_path, code(addi(A0, A0, 1), jal(ZERO, -4)))))
    assert launch(with_run(p, limit=5000)).run().reason == "limit"
    assert launch(with_run(p, timeout_s=0.05)).run().reason == "timeout"
