"""Names for code that a host has written, from the ELFs of its cache."""

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

import bhemu as package
from bhemu import NoProgress, Program, Tile
from bhemu.errors import InputError, Where
from bhemu.hosts.naming import Names, folders

ELFS = Path(package.__file__).parent.parent / "elfs"
CORES = ("trisc1", "trisc2")


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A cache with two kernels for each core, the newer of which is another one."""
    for name in ("hang_cycle", "add1"):
        for core in CORES:
            at = tmp_path / "tt-metal-cache7" / "kernels" / name / "123" / core
            at.mkdir(parents=True)
            shutil.copyfile(ELFS / name / f"{core}.elf", at / f"{core}.elf")
    return tmp_path


def hanging() -> Tile:
    """A tile that hangs in code without a name."""
    tile: Tile = Program.load(ELFS / "hang_cycle").launch()
    with pytest.raises(NoProgress):
        tile.run()
    for core in tile.core.values():
        core.images.clear()
    return tile


def names(tile: Tile, cache: Path) -> Names:
    return Names(
        SimpleNamespace(tiles_made=lambda: [tile]), folders({"TT_METAL_CACHE": str(cache)})
    )


def test_the_elf_whose_code_lies_around_the_pc_names_it(cache: Path) -> None:
    tile = hanging()
    assert tile.core["trisc1"].locate(tile.core["trisc1"].pc) == (None, None, None)
    error = InputError("bad")
    error.where = Where(tile=(1, 2), core="trisc1", pc=tile.core["trisc1"].pc, decoded="lw")
    names(tile, cache).look(None, error)
    assert tile.core["trisc1"].source(tile.core["trisc1"].pc).endswith("cycle_math.c:14")
    assert [len(tile.core[core].images) for core in ("brisc", *CORES)] == [0, 1, 1]
    assert tile.core["trisc1"].images[0].path == "kernels/hang_cycle/123/trisc1/trisc1.elf"
    assert (error.where.file, error.where.line, error.where.decoded) == ("tensix.h", 59, "lw")
    assert error.where.inlined[-1].file == "cycle_math.c"


def test_code_that_was_moved_is_found_and_other_code_is_not(cache: Path) -> None:
    tile = hanging()
    core = tile.core["trisc1"]
    code = tile.read(0x14000, 0x200)
    tile.write(0x30000, code)
    tile.write(0x14000, bytes(0x200))
    core.set_reset_pc(0x30000 + core.pc - 0x14000)
    core.hold()
    core.release()
    assert core.pc >= 0x30000
    names(tile, cache).look(None)
    assert core.images[0].offset == 0x30000 - 0x14000
    assert core.source(core.pc).endswith("cycle_math.c:14")
    core.images.clear()
    tile.write(0x30000, bytes(0x40))  # most of it is other code now
    names(tile, cache).look(None)
    assert not core.images


def test_of_variants_of_a_kernel_the_one_that_lies_there_names_it(cache: Path) -> None:
    kernels = cache / "tt-metal-cache7" / "kernels"
    own = kernels / "hang_cycle" / "123" / "trisc1" / "trisc1.elf"
    data = bytearray(own.read_bytes())
    tile = hanging()
    at = data.index(tile.read(0x14040, 16))
    data[at] ^= 0x10
    other = kernels / "hang_cycle" / "456" / "trisc1"
    other.mkdir(parents=True)
    (other / "trisc1.elf").write_bytes(data)  # newer, so that it is read first
    names(tile, cache).look(None)
    assert [one.path for one in tile.core["trisc1"].images] == [
        "kernels/hang_cycle/123/trisc1/trisc1.elf"
    ]
    tile.core["trisc1"].images.clear()
    tile.write(0x14040, bytes(data[at : at + 16]))
    names(tile, cache).look(None)
    assert [one.path for one in tile.core["trisc1"].images] == [
        "kernels/hang_cycle/456/trisc1/trisc1.elf"
    ]


def test_the_core_of_a_word_that_waits_is_named_where_it_has_gone_on(cache: Path) -> None:
    tile = hanging()
    tile.state.pc[2] = 0
    tile.backend.engine.write_register(2, 1, 0)
    names(tile, cache).look(None)
    assert [one.path for one in tile.core["trisc1"].images] == [
        "kernels/hang_cycle/123/trisc1/trisc1.elf"
    ]


def test_names_of_what_the_host_has_replaced_are_forgotten(cache: Path) -> None:
    tile = hanging()
    known = names(tile, cache)
    known.look(None)
    assert tile.core["trisc2"].images
    tile.write(0x18000, bytes(0x200))
    known.look(None)
    assert not tile.core["trisc2"].images and tile.core["trisc1"].images


def test_cores_that_wait_in_firmware_come_behind_those_in_kernels(cache: Path) -> None:
    tile = hanging()
    at = cache / "tt-metal-cache7"
    (at / "firmware" / "1").mkdir(parents=True)
    shutil.move(at / "kernels" / "hang_cycle" / "123" / "trisc2", at / "firmware" / "1" / "trisc2")
    known = names(tile, cache)
    known.look((1, 2))
    with pytest.raises(NoProgress) as caught:
        tile.run(resume=True)
    error = caught.value
    assert len(error.waits) > 5
    known.shorten(error)
    assert [waiter.who for waiter in error.graph.waiters] == ["thread T1", "trisc1"]
    assert error.hint.endswith("in firmware: thread T2, trisc2")


def test_a_tile_that_runs_no_kernel_is_named_where_it_is_asked_for(cache: Path) -> None:
    tile = hanging()
    at = cache / "tt-metal-cache7"
    (at / "kernels").rename(at / "firmware")
    names(tile, cache).look((2, 2))
    assert not tile.core["trisc1"].images
    names(tile, cache).look((1, 2))
    assert tile.core["trisc1"].images


def test_where_tt_metal_keeps_its_elfs(cache: Path) -> None:
    assert folders({}) == ()
    made = cache / ".cache" / "tt-metal-cache1"
    made.mkdir(parents=True)
    assert folders({"HOME": str(cache)}) == (made,)
    assert folders({"HOME": "/nowhere", "TT_METAL_CACHE": str(cache), "TT_METAL_HOME": "/m"}) == (
        cache / "tt-metal-cache7",
        Path("/m/tt_metal/pre-compiled"),
    )
