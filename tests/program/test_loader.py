"""Reading ELF files and deciding where their segments go (interface chapter, load_elf)."""

import pytest
from elf_builder import LOCAL, PT_DYNAMIC, PT_RISCV_ATTRIBUTES, Elf, Sec, Seg, Sym

from bhemu.errors import InputError
from bhemu.program.loader import Placement, check_overlap, place, read_elf

CODE = b"\x6f\x00\x00\x00" * 4


@pytest.fixture
def image(tmp_path):
    """Build an ELF file from its parts and read it."""

    def read(*segments, **parts):
        path = tmp_path / "k.elf"
        path.write_bytes(bytes(Elf(list(segments), **parts)))
        return read_elf(path)

    return read


def spots(placements):
    return [(p.space, p.address, p.data) for p in placements]


def refused(path, *texts):
    with pytest.raises(InputError) as caught:
        read_elf(path)
    for text in texts:
        assert text in str(caught.value)
    assert str(path) in caught.value.message


def test_reading_keeps_what_is_loaded_and_skips_the_rest(image):
    elf = image(
        Seg(0, b"attributes", memsz=0, kind=PT_RISCV_ATTRIBUTES),
        Seg(0, b"attributes", kind=PT_RISCV_ATTRIBUTES),
        Seg(0x10000, CODE),
        Seg(LOCAL, b"\x68\0\0\0", paddr=0x7000, memsz=0x828, flags=6),
        Seg(0x20000, b"", memsz=0),
        entry=0x10004,
        sections=[Sec(".text", 0x10000)],
        symbols=[Sym("main", 0x10004, 4)],
    )
    assert elf.entry == 0x10004
    assert [(s.vaddr, s.paddr, s.data, s.memsz, s.flags) for s in elf.segments] == [
        (0x10000, 0x10000, CODE, 16, 5),
        (LOCAL, 0x7000, b"\x68\0\0\0", 0x828, 6),
    ]
    assert elf.symbols.address("main") == 0x10004
    assert elf.sections[".text"] == 0x10000


def test_a_missing_file(tmp_path):
    refused(tmp_path / "no.elf", "no such file")
    refused(tmp_path, "cannot be read")


@pytest.mark.parametrize(("data", "text"), [(b"", "is empty"), (b"#!/bin/sh", "23 21 2f 62")])
def test_not_an_elf(tmp_path, data, text):
    path = tmp_path / "k.elf"
    path.write_bytes(data)
    refused(path, "not an ELF file", text)


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ({"ei_class": 2}, "not ELF32 (class 2)"),
        ({"ei_data": 2}, "not little-endian (data encoding 2)"),
        ({"machine": 62}, "built for x86-64 (62), not RISC-V (243)"),
        ({"machine": 999}, "built for another machine (999)"),
        ({"kind": 1}, "a relocatable object, not an executable"),
        ({"kind": 3}, "a shared object or PIE, not an executable"),
        ({"kind": 77}, "of type 77, not an executable"),
    ],
)
def test_an_elf_for_something_else(tmp_path, parts, text):
    path = tmp_path / "k.elf"
    path.write_bytes(bytes(Elf([Seg(0x10000)], **parts)))
    refused(path, text)


def test_no_truncated_file_is_accepted(tmp_path):
    whole = bytes(Elf([Seg(0x10000, CODE)], [Sec(".text", 0x10000)], [Sym("main", 0x10000)]))
    path = tmp_path / "k.elf"
    path.write_bytes(whole)
    read_elf(path)
    for size in [*range(60), *range(60, len(whole), 7), len(whole) - 1]:
        path.write_bytes(whole[:size])
        refused(path, "truncated" if size >= 4 else "not an ELF file")


def test_contents_beyond_the_end_of_the_file(tmp_path):
    whole = bytearray(bytes(Elf([Seg(0x10000, CODE)])))
    whole[52 + 16 : 52 + 24] = (0x1000).to_bytes(4, "little") * 2  # p_filesz, p_memsz
    path = tmp_path / "k.elf"
    path.write_bytes(whole)
    refused(path, "truncated: segment 0 at 0x54..0x1054", "file ends at")


@pytest.mark.parametrize("at", [42, 46])
def test_headers_of_a_wrong_size(tmp_path, at):
    whole = bytearray(bytes(Elf([Seg(0x10000, CODE)])))
    whole[at] = 7
    path = tmp_path / "k.elf"
    path.write_bytes(whole)
    refused(path, "damaged ELF", "of 7 bytes")


def test_a_file_with_nothing_to_load_or_that_needs_a_dynamic_linker(tmp_path):
    path = tmp_path / "k.elf"
    path.write_bytes(bytes(Elf([Seg(0, b"x", kind=PT_RISCV_ATTRIBUTES)])))
    refused(path, "no loadable segment")
    path.write_bytes(bytes(Elf([Seg(0x10000), Seg(0x20000, kind=PT_DYNAMIC)])))
    refused(path, "dynamically linked (PT_DYNAMIC)", "hint: link with -static")
    path.write_bytes(bytes(Elf([Seg(0x10000, CODE, memsz=4)])))
    refused(path, "segment 0 has 0x10 bytes in the file for 0x4 in memory")


def test_p_paddr_places_and_the_offset_moves_it(image):
    elf = image(Seg(0x9000, CODE, paddr=0x4000, memsz=0x18))
    padded = CODE + bytes(8)
    assert spots(place(elf, local="direct", core="brisc")) == [("l1", 0x4000, padded)]
    moved = place(elf, local="direct", core="brisc", offset=0x100)
    assert spots(moved) == [("l1", 0x4100, padded)]


def test_local_segments_go_where_local_says(image):
    firmware = image(Seg(0x3840, CODE), Seg(LOCAL, b"\x68\0\0\0", memsz=8))
    kernel = image(Seg(0x49F0, CODE), Seg(LOCAL + 0x830, b"data", paddr=0x4A00, memsz=16))
    text = ("l1", 0x3840, CODE)
    direct = place(firmware, local="direct", core="brisc", offset=0)
    assert spots(direct) == [text, ("local", 0, b"\x68" + bytes(7))]
    staged = place(firmware, local=0x82B0, core="brisc")
    assert spots(staged) == [text, ("l1", 0x82B0, b"\x68" + bytes(7))]
    uploaded = place(kernel, local="lma", core="ncrisc", offset=0x10)
    assert spots(uploaded) == [("l1", 0x4A00, CODE), ("l1", 0x4A10, b"data")]
    in_place = place(kernel, local="direct", core="brisc", offset=0x10)
    assert spots(in_place)[1] == ("local", 0x830, b"data" + bytes(12))


@pytest.mark.parametrize("named_by", ["section", "symbol"])
def test_loader_init_writes_file_bytes_only(image, named_by):
    # The regions .loader_init and .runtime_args are NOLOAD: the host fills them itself.
    sections = [Sec(".loader_init", 0x4000)] if named_by == "section" else [Sec(".text", 0x6000)]
    start = Sym("__loader_init_start", 0x4000, 0, "NOTYPE", sections[0].name)
    elf = image(
        Seg(0x4000, b"", memsz=0x2000),
        Seg(0x20000, b"", memsz=0x1000),
        Seg(0x6000, CODE),
        Seg(LOCAL + 4, b"data", memsz=0x40),
        sections=sections,
        symbols=[start],
    )
    placed = place(elf, local="loader_init", core="trisc0")
    assert spots(placed) == [("l1", 0x6000, CODE), ("l1", 0x4004, b"data")]


def test_loader_init_needs_its_section_only_for_data(image):
    with pytest.raises(InputError, match=r'local = "loader_init", but there is no section'):
        place(image(Seg(LOCAL, b"data")), local="loader_init", core="brisc")
    elf = image(Seg(0x6000, CODE), Seg(LOCAL, b"", memsz=64))
    assert spots(place(elf, local="loader_init", core="brisc")) == [("l1", 0x6000, CODE)]


def test_modes_that_do_not_fit_the_file(image):
    firmware = image(Seg(LOCAL, b"data"))
    with pytest.raises(InputError, match=r'"lma", but segment 0xFFB00000\+0x4 has no load address'):
        place(firmware, local="lma", core="brisc")
    assert place(image(Seg(LOCAL, b"", memsz=64)), local="lma", core="brisc") == []
    kernel = image(Seg(LOCAL, b"data", paddr=0x5000))
    with pytest.raises(InputError, match=r"local = 0x82B0, but .*p_paddr 0x00005000"):
        place(kernel, local=0x82B0, core="brisc")


@pytest.mark.parametrize("local", ["LMA", True, None, 1.5])
def test_an_unknown_mode_or_core(image, local):
    elf = image(Seg(0x6000, CODE))
    with pytest.raises(InputError, match="is not a way to place"):
        place(elf, local=local, core="brisc")
    with pytest.raises(InputError, match="no core 'trisc3'") as caught:
        place(elf, local="direct", core="trisc3")
    assert "trisc2" in caught.value.hint


@pytest.mark.parametrize(
    ("vaddr", "memsz", "offset"),
    [(0x17FFF4, 16, 0), (0x180000, 16, 0), (0x17FFF0, 17, 0), (0x10000, 16, -0x10004)],
)
def test_outside_l1(image, vaddr, memsz, offset):
    elf = image(Seg(vaddr, CODE, memsz=memsz))
    with pytest.raises(InputError, match=r"outside L1 \(0x0..0x180000\)"):
        place(elf, local="direct", core="brisc", offset=offset)


def test_the_last_byte_of_l1_can_be_used(image):
    elf = image(Seg(0x17FFF0, CODE))
    assert place(elf, local="direct", core="brisc")[0].end == 0x180000


def test_staging_outside_l1(image):
    elf = image(Seg(LOCAL, b"data", memsz=16))
    with pytest.raises(InputError, match="outside L1"):
        place(elf, local=0x17FFF8, core="brisc")


@pytest.mark.parametrize(
    ("core", "size"), [("brisc", 0x2000), ("ncrisc", 0x2000), ("trisc1", 0x1000)]
)
def test_local_ram_is_as_large_as_the_cores(image, core, size):
    fits = image(Seg(LOCAL + size - 16, CODE))
    assert place(fits, local="direct", core=core)[0].address == size - 16
    over = image(Seg(LOCAL + size - 16, CODE, memsz=17))
    with pytest.raises(InputError, match=rf"beyond the local RAM of {core} \(0x{size:X} bytes"):
        place(over, local="direct", core=core)


def test_segments_of_one_image_must_not_overlap(image):
    elf = image(Seg(0x6000, CODE), Seg(0x600C, CODE))
    with pytest.raises(InputError, match=r"overlap in L1 at 0x600C"):
        place(elf, local="direct", core="brisc")
    inside_bss = image(Seg(0x6000, CODE, memsz=0x100), Seg(0x6080, CODE))
    with pytest.raises(InputError, match="overlap"):
        place(inside_bss, local="direct", core="brisc")
    local = image(Seg(LOCAL, CODE), Seg(LOCAL + 8, CODE, paddr=0x8000))
    with pytest.raises(InputError, match="overlap in local RAM at 0x8"):
        place(local, local="direct", core="brisc")


def test_the_same_address_in_l1_and_local_ram_is_no_overlap(image):
    elf = image(Seg(0x0, CODE), Seg(LOCAL, CODE))
    assert len(place(elf, local="direct", core="brisc")) == 2


def test_overlap_with_what_is_there(image):
    placed = place(image(Seg(0x6000, CODE), Seg(LOCAL, CODE)), local="direct", core="brisc")
    check_overlap([(0x5000, 0x6000, "a.elf"), (0x6010, 0x7000, "b.elf"), (0, 16, "c.elf")], placed)
    for lo, hi in [(0x600F, 0x7000), (0x5000, 0x6001), (0x6004, 0x6008), (0x5000, 0x7000)]:
        with pytest.raises(
            InputError, match=r"k\.elf segment .* would overwrite t0\.elf at L1 0x60"
        ):
            check_overlap([(lo, hi, "t0.elf")], placed)


def test_placements_show_their_place_and_not_their_bytes():
    assert repr(Placement(4, b"secret", "l1", "k.elf")) == (
        "Placement(address=4, space='l1', name='k.elf')"
    )
