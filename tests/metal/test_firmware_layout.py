"""What the ELFs of a firmware say of mailboxes, tables and start, and what is refused."""

import shutil
import struct
from pathlib import Path

import pytest

from bhemu.errors import InputError
from bhemu.metal import PROCESSORS, Firmware, Grid, Record, place, read_firmware
from bhemu.program import variables
from bhemu.program.specs import ChipSpec, FirmwareSpec

ROOT = Path(__file__).parents[2]
OURS = ROOT / "elfs" / "slow_dispatch"


def firmware(folder: Path = OURS, base: int | None = None) -> Firmware:
    return read_firmware(FirmwareSpec({n: folder / f"{n}.elf" for n in PROCESSORS}, base))


def test_mailboxes_are_where_and_what_the_elf_says() -> None:
    found = firmware()
    assert found.mailboxes == 0x60
    assert found.base == 0x82B0
    assert found.go == 0x370
    assert found.address("go_messages", 0, "signal") == 0x373
    assert found.address("go_message_index") == 0x3A0
    assert found.address("subordinate_sync") == 0x68
    assert found.address("launch", 1) == 0x70 + 96
    launch = found.layout["launch"].type["kernel_config"].type
    assert place(launch, "rta_offset", 2, "crta_offset") == (32, 2)
    assert place(launch, "enables") == (76, 4)
    assert firmware(base=0x9000).base == 0x9000


def test_signals_fill_their_byte_alone() -> None:
    assert firmware().signal(0x80) == (0x370, b"\0\0\0\x80", "go message")


def test_types_of_a_structure_and_of_none() -> None:
    found = variables.structure(OURS / "brisc.elf", "go_msg_t")
    assert found is not None
    assert {name: member.offset for name, member in found.members.items()} == {
        "dispatch_message_offset": 0,
        "master_x": 1,
        "master_y": 2,
        "signal": 3,
    }
    assert variables.structure(OURS / "brisc.elf", "no_such_t") is None


def test_records_refuse_what_does_not_fit() -> None:
    record = Record(firmware().layout["launch"].type["kernel_config"].type)
    record.set(0xFFFF, "local_cb_offset")
    assert struct.unpack_from("<H", record.data, 18) == (0xFFFF,)
    with pytest.raises(InputError, match="does not fit into the 2 bytes of local_cb_offset"):
        record.set(0x10000, "local_cb_offset")
    with pytest.raises(InputError, match="no member enable"):
        record.set(1, "enable")
    with pytest.raises(InputError, match="element 5 of 5"):
        record.set(1, "kernel_text_offset", 5)
    assert "kernel_text_size" not in record.layout  # a member of newer firmware


def test_firmware_without_debug_information_is_refused(tmp_path: Path) -> None:
    for name in PROCESSORS:
        shutil.copy(OURS / f"{name}.elf", tmp_path)
    shutil.copy(ROOT / "elfs" / "add1" / "brisc.elf", tmp_path / "brisc.elf")
    with pytest.raises(InputError, match="no debug information of mailboxes_t"):
        firmware(tmp_path)


def test_damaged_debug_information_is_bad_input(tmp_path: Path) -> None:
    data = bytearray((OURS / "brisc.elf").read_bytes())
    at = data.index(b"mailboxes_t")
    for offset in range(0x1100, at, 7):  # strings and debug sections lie there
        data[offset] ^= 0xFF
    path = tmp_path / "brisc.elf"
    path.write_bytes(bytes(data))
    try:
        variables.structure(path, "mailboxes_t")
    except InputError:
        return


def test_the_grid_of_a_harvested_chip() -> None:
    whole, less = Grid.of(None), Grid.of(ChipSpec(harvest=(3, 16), dram_banks=7))
    assert (len(whole.tiles), len(whole.dram)) == (140, 8)
    assert (len(less.tiles), len(less.dram)) == (120, 7)
    assert whole.dram[5] == ((18, 15), (18, 16))
    assert max(x for x, _ in less.tiles) == 14
