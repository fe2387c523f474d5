"""The command line forms of what a PROGRAM.toml says, and merging them into a program."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from bhemu.errors import InputError
from bhemu.memmap import CORE_NAMES
from bhemu.program import options, schema
from bhemu.program.coordinates import At
from bhemu.program.loader import Local
from bhemu.program.toml import Table, suggestion

_NUMBER = re.compile(r"0[xX][0-9a-fA-F]{1,32}|0|[1-9][0-9]{0,31}")


def parse_core(text: str, local: Local = "direct") -> schema.CoreSpec:
    """`trisc0=unpack.elf`."""
    origin = f"--core {text}"
    name, equals, elf = text.partition("=")
    if not equals or not elf:
        _fail(origin, "want CORE=FILE", "for example --core trisc0=unpack.elf")
    if name not in CORE_NAMES:
        _fail(origin, f"no core {name}", suggestion(name, CORE_NAMES))
    return schema.core_from(name, Table({"elf": elf}, origin, Path()), local)


def parse_input(text: str) -> schema.InputSpec:
    """`a.npy@0x50000:bf16:tile32:64x96`; layout and shape may be left out."""
    return schema.input_from(_tensor("--in", text, "file"))


def parse_expect(text: str) -> schema.OutputSpec:
    """`c.npy@0x70000:bf16:tile32:64x64`, compared by bits; layout and shape may be left out."""
    return schema.output_from(_tensor("--expect", text, "expect"))


def parse_until(text: str) -> schema.Until | None:
    """`0x100=0xD0E0`, a word of L1 and its value; None for `idle`."""
    if text == "idle":
        return None
    origin = f"--until {text}"
    word, equals, value = text.partition("=")
    if not equals or _NUMBER.fullmatch(value.strip()) is None:
        _fail(origin, "want WORD=VALUE or idle", "for example --until 0x100=0xD0E0")
    data = {"word": _address(word), "equals": _address(value)}
    return replace(schema.until_from(Table(data, origin, Path())), origin=origin)


def parse_set(text: str) -> schema.SetSpec:
    """`0x10=u32:1`, or several values: `args=u32:4,f32:1.0`."""
    origin = f"--set {text}"
    at, equals, values = text.partition("=")
    if not equals:
        _fail(origin, "want ADDRESS=VALUE", "for example --set 0x10=u32:1")
    parts = [value.strip() for value in values.split(",")]
    return schema.set_from(Table({"at": _address(at), "values": parts}, origin, Path()))


def with_flags(
    program: schema.Program | None,
    *,
    cores: Sequence[str] = (),
    inputs: Sequence[str] = (),
    expects: Sequence[str] = (),
    until: Sequence[str] = (),
    sets: Sequence[str] = (),
) -> schema.Program:
    """`program` with the flags' meaning added, or a program made of flags alone.

    A --core replaces the core of that name, any --until replaces all conditions of the file, the
    others are added after those of the file. InputError for a flag that cannot be read, or that
    does not say which of several tiles it is for.
    """
    base = program or schema.Program(name="program", kind="elf", cores={})
    local = schema.LOCAL_OF_KIND.get(base.kind, "direct")
    named = {core.name: core for core in (parse_core(text, local) for text in cores)}
    written = tuple(parse_set(text) for text in sets)
    outputs = [parse_expect(text) for text in expects]
    run = base.run
    if until:
        conditions = [parse_until(text) for text in until]
        if None in conditions and len(conditions) > 1:
            _fail("--until", "idle goes with no other condition", "")
        run = replace(run, until=tuple(c for c in conditions if c is not None))
    if base.tiles:
        at = [xy for part in base.tiles for xy in part.at]
        flags = {"--core": cores, "--set": sets, "--in": inputs, "--expect": expects}
        given = [flag for flag, texts in flags.items() if texts]
        if given and len(at) > 1:
            hint = "write it into PROGRAM.toml: below [[tile]], or tile = in [[input]], [[output]]"
            _fail(given[0], f"for which of the program's {len(at)} tiles?", hint)
        outputs = [replace(output, tile=at[0]) for output in outputs]
    own = base.tiles[0] if base.tiles else base
    placed, written = {**own.cores, **named}, (*own.sets, *written)
    if base.tiles:
        first = replace(base.tiles[0], cores=placed, sets=written)
        base = replace(base, tiles=(first, *base.tiles[1:]))
    else:
        base = replace(base, cores=placed, sets=written)
    merged = replace(
        base,
        inputs=(*base.inputs, *(parse_input(text) for text in inputs)),
        outputs=(*base.outputs, *outputs),
        run=run,
    )
    schema.check_cores(merged, "command line" if base.path is None else str(base.path))
    return merged


def with_options(program: schema.Program, values: Mapping[str, Any]) -> schema.Program:
    """`program`, run as those options say that are in `values` and not None."""
    given = {n: values[n] for n in options.given_in("flag") if values.get(n) is not None}
    on_chip = [name for name in given if name in options.CHIP_ONLY]
    if on_chip and program.is_alone:
        raise InputError(f"--{on_chip[0]} goes with a program of a chip")
    return replace(program, run=program.run.with_options(given))


def without_expected(program: schema.Program) -> schema.Program:
    """`program` with outputs that are read and compared with nothing (--no-compare)."""
    return replace(program, outputs=tuple(replace(spec, expect=None) for spec in program.outputs))


def _tensor(flag: str, text: str, key: str) -> Table:
    origin = f"{flag} {text}"
    file, at_sign, rest = text.rpartition("@")
    at, *parts = rest.split(":")
    if not at_sign or not file or not 1 <= len(parts) <= 3:
        example = f"{flag} a.npy@0x50000:bf16:tile32:64x96"
        _fail(origin, "want FILE@ADDRESS:DTYPE[:LAYOUT[:SHAPE]]", f"for example {example}")
    data: dict[str, object] = {key: file, "at": _address(at)}
    data.update(zip(("dtype", "layout"), parts, strict=False))
    if len(parts) == 3:
        sizes = parts[2].split("x")
        if not all(size.isdecimal() for size in sizes):
            _fail(origin, f"{parts[2]} is not a shape", "for example 64x96")
        data["shape"] = [int(size) for size in sizes]
    return Table(data, origin, Path())


def _address(text: str) -> At:
    text = text.strip()
    return int(text, 0) if _NUMBER.fullmatch(text) else text


def _fail(origin: str, problem: str, hint: str) -> NoReturn:
    raise InputError(f"{origin}: {problem}", hint=hint)
