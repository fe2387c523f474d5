"""PROGRAM.toml of a chip: tiles, DRAM tensors, kernels; every mistake with its place and a hint."""

from pathlib import Path

import numpy as np
import pytest
from elf_builder import Elf, Seg

from bhemu.errors import InputError
from bhemu.program import coordinates
from bhemu.program.coordinates import TILE_VALUES, parse, values_of
from bhemu.program.schema import BufferSpec, ChipSpec, Dram, load_program

HEAD = 'bhemu = 1\nkind = "tt-metal"\n'
TILE = '[[tile]]\nat = "1-2,2"\n[tile.cores]\nbrisc = { elf = "k.elf" }\n'
INPUT = '[[input]]\nfile = "a.npy"\ndtype = "bf16"\n'
DRAM = "dram = { address = 0x100080 }\n"


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("k.elf").write_bytes(bytes(Elf([Seg(0x10000)])))
    np.save("a.npy", np.zeros((64, 96), np.float32))


def loaded(text: str):
    Path("PROGRAM.toml").write_text(text)
    return load_program("PROGRAM.toml")


def refusal(text: str) -> str:
    with pytest.raises(InputError) as caught:
        loaded(text)
    message = caught.value.message.removeprefix("PROGRAM.toml: ")
    return f"{message}\nhint: {caught.value.hint}" if caught.value.hint else message


def test_a_program_of_many_tiles() -> None:
    program = loaded(
        HEAD
        + "[chip]\nthreads = 2\n"
        + TILE
        + 'args = ["u32:1"]\n'.replace("args", "ncrisc = { elf = 'k.elf', args").replace("]", "] }")
        + "[[tile.buffer]]\nindex = 3\nat = 0x30000\npages = 2\npage = 64\n"
        + '[[tile]]\nat = ["3,4", "5-6,4"]\nsemaphores = [7]\n'
        + '[[tile.set]]\nat = 0x40000\nvalues = ["tile:index"]\n'
        + '[tile.cores]\ntrisc0 = { elf = "k.elf" }\n'
        + INPUT
        + DRAM
    )
    one, two = program.tiles
    assert not program.is_alone
    assert one.at == ((1, 2), (2, 2))
    assert two.at == ((3, 4), (5, 4), (6, 4))
    assert one.cores["ncrisc"].args == ("u32:1",)
    assert one.buffers == (BufferSpec(3, 0x30000, 2, 64),)
    assert two.semaphores == (7,)
    assert two.sets[0].values == ("tile:index",)
    assert program.inputs[0].dram == Dram(0x100080, 2048, tuple(range(8)))
    assert program.chip == ChipSpec(options={"threads": 2})
    assert {path.name for path in program.files()} == {"PROGRAM.toml", "k.elf", "a.npy"}


def test_a_program_of_one_tile_is_no_chip() -> None:
    program = loaded(HEAD + 'semaphores = [1]\n[cores]\nbrisc = { elf = "k.elf" }\n')
    assert program.is_alone
    assert program.placed()[0].semaphores == (1,)


@pytest.mark.parametrize(
    ("text", "tiles"),
    [
        (["1,2"], [(1, 2)]),
        (["6-11,3"], [(6, 3), (7, 3), (10, 3), (11, 3)]),
        (["2,3", "1,3", "2,2"], [(2, 2), (1, 3), (2, 3)]),
        ([" 1 - 2 , 2 - 3 "], [(1, 2), (2, 2), (1, 3), (2, 3)]),
    ],
)
def test_coordinates(text: list[str], tiles: list[tuple[int, int]]) -> None:
    assert parse(text, "x") == tuple(tiles)


def test_all_140_tiles() -> None:
    assert parse(["1-16,2-11"], "x") == coordinates.tensix()
    assert len(coordinates.tensix()) == 140
    assert coordinates.tensix(2)[11] == (14, 2)


def test_what_a_value_may_name_of_a_tile() -> None:
    place = values_of((10, 3), parse(["7-10,2-3"], "x"))
    assert place == {
        "index": 3,
        "count": 4,
        "x": 10,
        "y": 3,
        "column": 1,
        "row": 1,
        "columns": 2,
        "rows": 2,
        "first_x": 7,
        "first_y": 2,
        "last_x": 10,
        "last_y": 3,
        "next_x": 7,
        "next_y": 2,
    }
    assert place.keys() == TILE_VALUES.keys()


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (
            TILE.replace('"1-2,2"', '"8,2"'),
            "[[tile]] 1: '8,2': there is no Tensix tile in column 8",
        ),
        (
            TILE.replace('"1-2,2"', '"1,12"'),
            "[[tile]] 1: '1,12': there is no Tensix tile in row 12",
        ),
        (TILE.replace('"1-2,2"', '"8-9,2"'), "[[tile]] 1: '8-9,2': there is no Tensix tile in co"),
        (TILE.replace('"1-2,2"', '"3-1,2"'), "[[tile]] 1: '3-1,2': columns 3-1 go backwards"),
        (
            TILE.replace('"1-2,2"', '"1:2"'),
            "[[tile]] 1: '1:2' is no coordinate of a tile\nhint: for",
        ),
        (TILE.replace('"1-2,2"', '["1,2", "1,2"]'), "[[tile]] 1: tile 1,2 is named twice"),
        (TILE.replace('"1-2,2"', "[]"), "[[tile]] 1: no tile is named"),
        (TILE + TILE.replace("1-2", "2-3"), "[[tile]] 2: tile 2,2 is also one of [[tile]] 1"),
        (TILE.replace("at", "att"), "[[tile]] 1: missing key at"),
        (
            TILE + "[[tile]]\nat = '5,5'\ncors = {}\n",
            "[[tile]] 2: unknown key cors\nhint: did you m",
        ),
        ('[cores]\nbrisc = { elf = "k.elf" }\n' + TILE, "cores beside [[tile]]: which tile is mea"),
        (
            TILE.replace('"k.elf"', '"k.elf", pc = 0'),
            "[[tile]] 1: [cores]: [brisc]: unknown key pc",
        ),
        (TILE.replace('elf = "k.elf"', ""), "[[tile]] 1: [cores]: [brisc]: missing key elf"),
        (
            TILE.replace('"k.elf"', '"k.elf", args = ["u32:x"]'),
            "[[tile]] 1: [cores]: [brisc]: 'u32:x",
        ),
        (
            TILE.replace('"k.elf"', '"k.elf", args = ["u8:1"]'),
            "[[tile]] 1: [cores]: [brisc]: args is n",
        ),
        (
            TILE.replace('"k.elf"', '"k.elf", args = ["tile:indx"]'),
            "[[tile]] 1: [cores]: [brisc]: 'tile:indx' is not a value\nhint: did you mean index?",
        ),
        (TILE + INPUT + "at = 0x40000\n", "[[input]] 1: in L1 of which tile?\nhint: tile = "),
        (
            TILE + INPUT + DRAM + "at = 4\n",
            "[[input]] 1: at beside dram: a tensor lies in L1 or in",
        ),
        (
            TILE + INPUT + DRAM.replace("80", "90"),
            "[[input]] 1: [dram]: address = 0x100090 is not a",
        ),
        (TILE + INPUT + "dram = { adress = 4 }\n", "[[input]] 1: [dram]: missing key address"),
        (
            TILE + INPUT + "dram = { address = 64, bank = 4 }\n",
            "[[input]] 1: [dram]: unknown key bank\nhint: did you mean banks?",
        ),
        (
            TILE + INPUT + "dram = { address = 64, banks = [8] }\n",
            "[[input]] 1: [dram]: banks = [8] i",
        ),
        (
            TILE + INPUT + "dram = { address = 64, banks = [1, 1] }\n",
            "[[input]] 1: [dram]: banks = [",
        ),
        (
            TILE + INPUT + "dram = { address = 0xFFFFFFC0 }\n",
            "[[input]] 1: 12288 bytes at 0xffffffc0",
        ),
        (
            TILE + (INPUT + DRAM) * 2,
            "[[input]] 2 and PROGRAM.toml: [[input]] 1 overlap in DRAM bank 0",
        ),
        (
            "[chip]\ndram_banks = 7\n" + TILE + INPUT + DRAM,
            "[[input]] 1: bank 7 of a chip with 7 banks\nhint: name the banks",
        ),
        ("[chip]\ndelivery = 'lat'\n" + TILE, '[chip]: delivery = "lat"\nhint: did you mean late?'),
        ("[chip]\nharvest = [8]\n" + TILE, "[chip]: harvest = [8] is no list of Tensix columns"),
        (TILE + "[firmware]\nbrisc = 'k.elf'\n", "[firmware]: missing key trisc0\nhint: all five"),
        (
            TILE + "[[tile.buffer]]\nindex = 64\nat = 0\npages = 1\npage = 16\n",
            "[[tile]] 1: [[buffer]] 1: index = 64 is not within 0..63",
        ),
        (
            TILE + "[[tile.buffer]]\nindex = 1\nat = 8\npages = 1\npage = 16\n",
            "[[tile]] 1: [[buffer]] 1: at and page are multiples of 16",
        ),
        (
            TILE + "[[tile.buffer]]\nindex = 1\nat = 0\npages = 1\npage = 16\n" * 2,
            "[[tile]] 1: two circular buffers have index 1",
        ),
        (
            TILE.replace('"1-2,2"', '"1,2"\nsemaphores = [-1]'),
            "[[tile]] 1: semaphores is not an array",
        ),
    ],
)
def test_mistakes_name_their_place(text: str, answer: str) -> None:
    assert refusal(HEAD + text).startswith(answer)


def test_circular_buffers_and_firmware_belong_to_kernels() -> None:
    elf = 'bhemu = 1\n[cores]\nbrisc = { elf = "k.elf" }\n'
    buffer = "[[buffer]]\nindex = 1\nat = 0\npages = 1\npage = 16\n"
    assert 'belong to kind = "tt-metal", not "elf"' in refusal(elf + buffer)
    assert 'belongs to kind = "tt-metal", not "elf"' in refusal(elf + "[firmware]\n")
    llk = TILE.replace("[[tile]]", 'bhemu = 1\nkind = "llk"\n[[tile]]')
    assert 'kind = "llk" is of one tile' in refusal(llk)


def test_pages_go_round_the_banks() -> None:
    place = Dram(0x1000, 100, (5, 1, 2))
    found = list(place.pieces(450))
    assert [piece.bank for piece in found] == [5, 1, 2, 5, 1]
    assert [piece.address for piece in found] == [0x1000] * 3 + [0x1080] * 2
    assert [(piece.offset, piece.size) for piece in found] == [
        *((100 * i, 100) for i in range(4)),
        (400, 50),
    ]
    assert place.end(450) == 0x1100


def test_what_is_written_over_banks_is_read_again() -> None:
    banks = {n: bytearray(0x1000) for n in range(8)}
    place, data = Dram(0x40, 1088, (0, 3, 6)), bytes(np.random.default_rng(1).bytes(10_000))

    def store(bank: int, address: int, part: bytes) -> None:
        banks[bank][address : address + len(part)] = part

    place.write(data, store)
    assert place.read(len(data), lambda b, at, n: bytes(banks[b][at : at + n])) == data


@pytest.mark.parametrize(
    ("more", "page"),
    [
        ("", 2048),
        ("layout = 'rows'\n", 192),
        ("layout = 'faces16'\n", 512),
    ],
)
def test_a_page_is_a_tile_a_face_or_a_row(more: str, page: int) -> None:
    program = loaded(HEAD + TILE + INPUT + more + DRAM)
    assert program.inputs[0].dram is not None
    assert program.inputs[0].dram.page == page


def test_millions_of_pages_are_refused() -> None:
    np.save("a.npy", np.zeros((1024, 1056), np.uint8))
    text = INPUT.replace("bf16", "uint8") + "dram = { address = 64, page = 1 }\n"
    assert "1081344 bytes in pages of 1 are more than 1048576 pages" in refusal(HEAD + TILE + text)


def test_raw_bytes_need_a_page() -> None:
    assert "missing key page" in refusal(HEAD + TILE + INPUT.replace("bf16", "raw") + DRAM)
