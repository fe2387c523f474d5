"""Where a program's tensors and conditions are: tiles of a chip, DRAM banks, and their checks."""

from __future__ import annotations

from bhemu.errors import InputError
from bhemu.program import codecs, coordinates, interleave, limits, options, tensor
from bhemu.program.address import At, check_l1
from bhemu.program.options import BANKS
from bhemu.program.specs import XY, ChipSpec, Dram, Program
from bhemu.program.table import REQUIRED, Table

BANK_SIZE = 1 << 32
_MOST_PAGES = 1 << 20
HARVESTED_MOST = len(coordinates.COLUMNS) - 1
_DRAM_HINT = "for example dram = { address = 0x100080, page = 2048 }"


def tiles_at(table: Table, key: str) -> tuple[XY, ...]:
    """The tiles that a table names: "1,2", "1-4,2-5", or an array of those."""
    value = table.take(key, REQUIRED, (str, list))
    return coordinates.parse([value] if isinstance(value, str) else value, table.origin)


def one_tile(table: Table) -> XY:
    """The one tile that a table names."""
    found = tiles_at(table, "tile")
    if len(found) > 1:
        table.fail(f"tile stands for {len(found)} tiles, an output is read from one")
    return found[0]


def chip_from(table: Table) -> ChipSpec:
    """[chip]: harvested columns, number of banks, when transfers are delivered, threads, caches."""
    harvest = table.take("harvest", [], (list,))
    if len(harvest) > HARVESTED_MOST or any(
        type(x) is not int or x not in coordinates.COLUMNS for x in harvest
    ):
        table.fail(f"harvest = {harvest} is no list of Tensix columns", hint="1-7 and 10-16")
    given = options.read(table, "chip")
    table.finish()
    return ChipSpec(tuple(harvest), given.pop("dram_banks", BANKS), given)


def dram_from(table: Table, dtype: str, layout: str, shape: tuple[int, ...]) -> Dram | None:
    """`dram` of a tensor, None without; a page is a tile or a row unless the table says it."""
    if "dram" not in table:
        return None
    for key in ("at", "tile"):
        if key in table:
            table.fail(f"{key} beside dram: a tensor lies in L1 or in DRAM", hint=_DRAM_HINT)
    own = table.table("dram")
    place = Dram(
        address=own.integer("address", hi=BANK_SIZE - 1),
        page=own.integer("page", _page(own, dtype, layout, shape), lo=1, hi=BANK_SIZE),
        banks=_banks(own),
    )
    own.finish()
    if place.address % interleave.PAGE_ALIGNMENT:
        own.fail(f"address = {place.address:#x} is not a multiple of {interleave.PAGE_ALIGNMENT}")
    return place


def _page(table: Table, dtype: str, layout: str, shape: tuple[int, ...]) -> int:
    """Bytes of one tile (tile32), face (faces16) or row (rows); raw bytes have no such unit."""
    edge = tensor.EDGE.get(layout)
    row = shape if edge is None else (edge, edge)
    if "page" in table:
        return 0
    if layout == "raw" or (edge is None and codecs.FORMATS[dtype].kind == "bfp"):
        table.fail("missing key page", hint="bytes that lie together in one bank")
    return tensor.encoded_size(row[-1:] if edge is None else row, dtype, layout)


def _banks(table: Table) -> tuple[int, ...]:
    """All banks, the first n of them, or those that are listed."""
    value = table.take("banks", BANKS, (int, list))
    banks = list(range(value)) if type(value) is int and 0 <= value <= BANKS else value
    if (
        not isinstance(banks, list)
        or not banks
        or any(type(n) is not int or not 0 <= n < BANKS for n in banks)
        or len(set(banks)) != len(banks)
    ):
        table.fail(f"banks = {value} is neither a number of banks nor a list of banks 0-7")
    return tuple(banks)


def check_extent(table: Table, at: At, size: int, dram: Dram | None = None) -> None:
    """InputError when `size` bytes at `at`, or over banks, do not fit into memory."""
    if dram is not None:
        limits.check("ARRAY_BYTES", size, f"{table.origin}: bytes of the tensor")
        if size > _MOST_PAGES * dram.page:
            table.fail(f"{size} bytes in pages of {dram.page} are more than {_MOST_PAGES} pages")
        last = interleave.end(dram, size)
        if last > BANK_SIZE:
            table.fail(f"{size} bytes at {dram.address:#x} end behind the bank ({last:#x})")
    elif isinstance(at, int):
        check_l1(table.origin, at, size)


def check_tensors(program: Program) -> None:
    """InputError for tensors that share bytes, or lie where the program has no bank and no tile."""
    dram = [(spec.origin, spec.dram, spec.size) for spec in program.inputs if spec.dram]
    interleave.check_apart(dram)
    banks = (program.chip or ChipSpec()).dram_banks
    places = [*dram, *((spec.origin, spec.dram, 0) for spec in program.outputs if spec.dram)]
    for origin, place, _ in places:
        if max(place.banks) >= banks:
            raise InputError(
                f"{origin}: bank {max(place.banks)} of a chip with {banks} banks",
                hint="name the banks: dram = { address = ..., banks = 7 }",
            )
    if program.tiles:
        for source in program.inputs:
            if not source.tiles and source.dram is None:
                _missing_tile(source.origin)
        for output in program.outputs:
            if output.tile is None and output.dram is None:
                _missing_tile(output.origin)


def _missing_tile(origin: str) -> None:
    raise InputError(
        f"{origin}: in L1 of which tile?", hint='tile = "1,2", or dram = { address = ... }'
    )
