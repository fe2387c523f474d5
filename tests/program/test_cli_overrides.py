"""The command line forms of a program's parts (interface chapter)."""

from pathlib import Path

import numpy as np
import pytest

from bhemu.errors import InputError
from bhemu.program.cli_overrides import (
    parse_core,
    parse_expect,
    parse_input,
    parse_set,
    parse_until,
    with_flags,
)
from bhemu.program.schema import CoreSpec, Program, Until, load_program

PROGRAM = """\
bhemu = 1
[cores]
brisc = { elf = "k.elf", local = 0x82B0 }
trisc0 = { elf = "k.elf", release = false }
[[set]]
at = 0
values = ["u8:1"]
[[input]]
at = 0x50000
file = "a.npy"
dtype = "bf16"
layout = "tile32"
shape = [64, 96]
[[output]]
at = 0x70000
dtype = "bf16"
shape = [64, 64]
expect = "want.npy"
[run]
until = [{ word = 0x100, equals = 1 }]
limit = 1000
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A working folder with an ELF (never opened here), an input and an expected output."""
    monkeypatch.chdir(tmp_path)
    Path("k.elf").write_bytes(b"\x7fELF")
    Path("bytes.bin").write_bytes(b"\1\2\3")
    np.save("a.npy", np.ones((64, 96), np.float32))
    np.save("want.npy", np.ones((64, 64), np.float32))
    Path("PROGRAM.toml").write_text(PROGRAM)


def test_flags_mean_what_the_file_means():
    assert parse_core("trisc0=k.elf") == CoreSpec("trisc0", Path("k.elf"))
    a = parse_input("a.npy@0x50000:bf16:tile32:64x96")
    assert a == load_program("PROGRAM.toml").inputs[0]
    c = parse_expect("want.npy@0x70000:bf16:tile32:64x64")
    assert c == load_program("PROGRAM.toml").outputs[0]
    assert parse_until("0x100=0xD0E0") == Until(0x100, 0xD0E0)
    assert parse_until("done+4=1") == Until("done+4", 1)
    assert parse_until("idle") is None
    one = parse_set("0x10=u32:1")
    assert (one.at, one.data) == (0x10, b"\1\0\0\0")
    assert parse_set("args=u16:1, u16:2").data == b"\1\0\2\0"


def test_layout_and_shape_may_be_left_out():
    short = parse_input("a.npy@args+4:bf16")
    assert (short.at, short.layout, short.shape) == ("args+4", "tile32", (64, 96))
    assert parse_input("bytes.bin@16:raw").data() == b"\1\2\3"
    assert parse_expect("want.npy@0:fp32:rows").layout == "rows"
    Path("a@b.npy").write_bytes(Path("a.npy").read_bytes())
    assert parse_input("a@b.npy@0:fp32").file == Path("a@b.npy")


@pytest.mark.parametrize(
    ("parse", "text", "answer"),
    [
        (parse_core, "k.elf", "--core k.elf: want CORE=FILE"),
        (parse_core, "trisc0=", "--core trisc0=: want CORE=FILE"),
        (
            parse_core,
            "trsc0=k.elf",
            "--core trsc0=k.elf: no core trsc0\nhint: did you mean trisc0?",
        ),
        (parse_core, "trisc0=no.elf", "--core trisc0=no.elf: elf: no such file: no.elf"),
        (parse_input, "a.npy", "--in a.npy: want FILE@ADDRESS:DTYPE[:LAYOUT[:SHAPE]]"),
        (parse_input, "a.npy@0", "--in a.npy@0: want FILE@ADDRESS"),
        (parse_input, "@0:bf16", "--in @0:bf16: want FILE@ADDRESS"),
        (parse_input, "a.npy@0:bf16:rows:1:2", "--in a.npy@0:bf16:rows:1:2: want FILE@ADDRESS"),
        (parse_input, "a.npy@0:bf16:rows:64", "--in a.npy@0:bf16:rows:64: shape = [64], but a.npy"),
        (
            parse_input,
            "a.npy@0:bf16:rows:64*96",
            "--in a.npy@0:bf16:rows:64*96: 64*96 is not a shape",
        ),
        (
            parse_input,
            "a.npy@0:bf17",
            '--in a.npy@0:bf17: dtype = "bf17"\nhint: did you mean bf16?',
        ),
        (parse_input, "a.npy@010:bf16", '--in a.npy@010:bf16: at = "010" is not an address'),
        (
            parse_input,
            "a.npy@0x17FFFF:bf16",
            "--in a.npy@0x17FFFF:bf16: 12288 bytes at 0x17FFFF are",
        ),
        (parse_expect, "no.npy@0:bf16", "--expect no.npy@0:bf16: expect: no such file: no.npy"),
        (parse_until, "0x100", "--until 0x100: want WORD=VALUE or idle"),
        (parse_until, "0x100=yes", "--until 0x100=yes: want WORD=VALUE or idle"),
        (parse_until, "0x101=1", "--until 0x101=1: word = 0x101 is not the address"),
        (parse_until, "0x100=0x100000000", "--until 0x100=0x100000000: equals = 4294967296 is not"),
        (parse_set, "u32:1", "--set u32:1: want ADDRESS=VALUE"),
        (parse_set, "0=1", "--set 0=1: '1' is not a value"),
        (parse_set, "=u8:1", '--set =u8:1: at = "" is not an address'),
    ],
)
def test_flags_that_cannot_be_read(parse, text, answer):
    with pytest.raises(InputError) as caught:
        parse(text)
    assert str(caught.value).startswith(answer)


def test_a_program_from_flags_alone():
    program = with_flags(
        None, cores=["trisc1=k.elf"], until=["0x100=1", "0x104=2"], sets=["0=u8:1"]
    )
    assert (program.kind, program.path, list(program.cores)) == ("elf", None, ["trisc1"])
    assert program.run.until == (Until(0x100, 1), Until(0x104, 2))
    assert len(program.sets) == 1
    with pytest.raises(InputError, match="command line: no core is released"):
        with_flags(None, sets=["0=u8:1"])


def test_flags_added_to_a_file():
    base = load_program("PROGRAM.toml")
    same = with_flags(base)
    assert same == base
    program = with_flags(
        base,
        cores=["trisc0=k.elf", "trisc2=k.elf"],
        inputs=["a.npy@0x60000:fp32"],
        expects=["want.npy@0x80000:bf16"],
        until=["idle"],
        sets=["0=u8:1"],
    )
    assert program.cores["brisc"] == base.cores["brisc"]
    assert program.cores["trisc0"] == CoreSpec("trisc0", Path("k.elf"))
    assert "trisc2" in program.cores
    assert [len(part) for part in (program.inputs, program.outputs, program.sets)] == [2, 2, 2]
    assert program.run.until == ()
    assert program.run.limit == base.run.limit
    with pytest.raises(InputError, match="idle goes with no other condition"):
        with_flags(base, until=["idle", "0=1"])


@pytest.mark.parametrize(
    "flags",
    [
        {"cores": ["brisc=other.elf"]},
        {"sets": ["0=u8:1"]},
        {"inputs": ["a.npy@0x60000:fp32"]},
        {"expects": ["want.npy@0x80000:bf16"]},
    ],
    ids=str,
)
def test_flags_are_for_one_tile(flags: dict[str, list[str]]) -> None:
    Path("other.elf").write_bytes(b"\x7fELF")

    def on(at: str) -> Program:
        Path("TILES.toml").write_text(
            f'bhemu = 1\n[[tile]]\nat = "{at}"\n[tile.cores]\nbrisc = {{ elf = "k.elf" }}\n'
        )
        return with_flags(load_program("TILES.toml"), **flags)

    program = on("1,3")
    (tile,) = program.tiles
    assert tile.cores["brisc"].elf == Path("other.elf" if "cores" in flags else "k.elf")
    assert len(tile.sets) == ("sets" in flags)
    assert len(program.inputs) == ("inputs" in flags)
    assert [spec.tile for spec in program.outputs] == [(1, 3)] * ("expects" in flags)
    with pytest.raises(InputError, match="for which of the program's 2 tiles"):
        on("1-2,3")
