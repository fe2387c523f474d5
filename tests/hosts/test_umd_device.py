"""The device that UMD sees: what each command does to the chip, and when the chip runs."""

import noc_program as noc
import pytest
from hosts.fake_chip import BROKEN, DEBUG_PORT, EBREAK, HOST_MEMORY, REFUSED, FakeChip, device

from bhemu.errors import Assert, BhemuError, InputError, NoProgress, NotModelled
from bhemu.hosts.umd import Command, Device, Message
from bhemu.machine.machine import Chip

CORE = (1, 2)
SOFT_RESET = 0xFFB121B0


def test_write_and_read() -> None:
    _, at = device()
    assert at.answer(Message(Command.WRITE, CORE, 0x100, 8, b"abcdefgh")) is None
    assert at.answer(Message(Command.READ, CORE, 0x102, 4, bytes(4))) == b"cdef"
    assert at.answer(Message(Command.READ, (2, 2), 0x102, 4, bytes(4))) == bytes(4)


def test_a_size_shorter_than_the_data_counts_and_0_means_all() -> None:
    _, at = device()
    at.answer(Message(Command.WRITE, CORE, 0, 6, b"abcdefgh"))
    at.answer(Message(Command.WRITE, CORE, 16, 0, b"abcdefgh"))
    assert at.read(CORE, 0, 8) == b"abcdef\0\0"
    assert at.read(CORE, 16, 8) == b"abcdefgh"


def test_deassert_releases_brisc_alone_and_assert_holds_all() -> None:
    chip, at = device()
    at.answer(Message(Command.ALL_TENSIX_RESET_DEASSERT, CORE))
    assert chip.read(*CORE, SOFT_RESET, 4) == (0x47000).to_bytes(4, "little")
    at.answer(Message(Command.ALL_TENSIX_RESET_ASSERT, CORE))
    assert chip.read(*CORE, SOFT_RESET, 4) == (0x47800).to_bytes(4, "little")


def test_the_chip_runs_before_a_read_and_at_no_other_time() -> None:
    chip = FakeChip(moves=25)
    at = Device(chip, rounds=10)
    at.read(CORE, 0, 4)
    at.deassert_reset(CORE)
    at.write(CORE, 0, b"1234")
    at.assert_reset((2, 2))
    at.deassert_reset((2, 2))
    assert chip.rounds == []
    for _ in range(6):
        at.read(CORE, 0, 4)
    assert chip.rounds == [10, 10, 10], "a chip whose cores only poll is left alone"
    first = chip.log.index(("run", 10))
    order = ["run", "read", "run", "read", "run", "read", "read", "read", "read"]
    assert [entry[0] for entry in chip.log[first:]] == order
    at.write(CORE, 0, b"1234")
    at.read(CORE, 0, 4)
    assert chip.rounds == [10, 10, 10, 10], "it goes on when a host has written"


@pytest.mark.parametrize("command", [Command.SMN_READ, Command.NEO_DM_RESET_ASSERT, 99, -1])
def test_a_command_of_other_chips_is_refused_by_name(command: int) -> None:
    _, at = device()
    wanted = Command(command).name if command in iter(Command) else f"command {command}"
    with pytest.raises(InputError, match=f"{wanted} is no request for a Blackhole chip"):
        at.answer(Message(command, CORE, 0, 4))


def test_a_request_without_a_core_is_refused() -> None:
    _, at = device()
    with pytest.raises(InputError, match="READ names no core"):
        at.answer(Message(Command.READ, None, 0, 4))
    assert at.answer(Message(Command.START)) is None


def test_more_than_a_message_may_hold_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    _, at = device()
    monkeypatch.setenv("BHEMU_LIMIT_MESSAGE_BYTES", "2M")
    with pytest.raises(InputError, match="bytes to read: 2097153"):
        at.read(CORE, 0, (2 << 20) + 1)


def broken() -> tuple[FakeChip, Device]:
    chip, at = device()
    at.write(CORE, BROKEN, b"1234")
    return chip, at


def test_a_failure_is_told_once_and_the_chip_still_answers() -> None:
    chip, at = broken()
    told: list[object] = []
    at.look = lambda tile, error: told.append((tile, error))
    at.on_failure = lambda error, tile: told.append(error)
    with pytest.raises(NotModelled):
        at.read(CORE, 0, 4)
    where = at.failure.where if at.failure else None
    assert told == [(where and where.tile, at.failure), at.failure]
    assert isinstance(at.failure, NotModelled)
    assert at.read(CORE, BROKEN, 4) == b"1234"
    assert len(chip.rounds) == 1, "a chip that failed does not run on"


def test_a_host_that_waits_for_a_stopped_chip_is_told() -> None:
    _, at = broken()
    with pytest.raises(NotModelled):
        at.read(CORE, 0, 4)
    for _ in range(100):
        at.read(CORE, 0, 4)
        at.read((2, 2), 0, 4)
    with pytest.raises(NoProgress, match=r"the chip has stopped: 0x0 of \(1,2\) will not change"):
        at.read(CORE, 0, 4)
    at.write(CORE, 4, b"1234")
    assert at.read(CORE, 0, 4) == bytes(4)


def test_an_ebreak_is_reported_and_fails_no_read() -> None:
    chip, at = device()
    told: list[object] = []
    at.report = told.append
    at.on_failure = lambda error, tile: told.append(error)
    at.write(CORE, EBREAK, b"1234")
    assert at.read(CORE, EBREAK, 4) == b"1234"
    assert told == [at.failure] * 2 and isinstance(at.failure, Assert)
    for _ in range(100):
        at.read(CORE, 0, 4)
    with pytest.raises(NoProgress, match="the chip has stopped"):
        at.read(CORE, 0, 4)
    assert len(chip.rounds) == 1


def test_a_debugger_s_first_access_lets_a_chip_that_stood_on_ebreak_go_on() -> None:
    chip, at = device()
    at.write(CORE, EBREAK, b"1234")
    at.read(CORE, 0, 4)
    at.write((2, 2), DEBUG_PORT, bytes(4))
    at.read(CORE, 0, 4)
    assert at.failure is not None and len(chip.rounds) == 1, "it was another tile's"
    at.write(CORE, EBREAK, b"1234")
    at.write(CORE, DEBUG_PORT, bytes(4))
    at.read(CORE, 0, 4)
    assert at.failure is None and len(chip.rounds) == 2
    at.write(CORE, BROKEN, b"1234")
    with pytest.raises(NotModelled):
        at.read(CORE, 0, 4)
    at.write(CORE, DEBUG_PORT, bytes(4))
    assert isinstance(at.failure, NotModelled)


def test_a_host_that_waits_after_a_refused_write_is_told() -> None:
    chip, at = device()
    chip.stands = "idle"
    with pytest.raises(InputError, match="nothing is there"):
        at.write(CORE, REFUSED, b"1234")
    at.write(CORE, 0, b"1234")
    for _ in range(5001):
        at.read(CORE, 0, 4)
    with pytest.raises(NoProgress, match="the host waits; nothing is there"):
        at.read(CORE, 0, 4)
    assert at.read(CORE, 0, 4) == b"1234"


def test_a_host_that_waits_for_cores_that_only_poll_is_told_what_they_wait_for() -> None:
    _, at = device(moves=1)
    at.write(CORE, 0, b"1234")
    for _ in range(5000):
        at.read(CORE, 0, 4)
        at.read((2, 2), 0, 4)
    at.read(CORE, 0, 4)  # the first read ran the chip
    with pytest.raises(NoProgress, match=r"tile \(1, 2\) waits"):
        at.read(CORE, 0, 4)
    assert at.failure is None
    assert at.read(CORE, 0, 4) == b"1234"


def test_who_keeps_the_chip_hears_of_a_host_that_waits_in_vain_once_until_it_writes() -> None:
    _, at = device()
    told: list[object] = []
    at.look = lambda tile, error: told.append(tile)
    at.on_failure = lambda error, tile: told.append((str(error), tile))

    def wait() -> None:
        at.write(CORE, 0, b"1234")
        at.read(CORE, 0, 4)  # runs the chip
        for _ in range(2):
            for _ in range(5000):
                at.read(CORE, 0, 4)
            with pytest.raises(NoProgress, match=r"tile \(1, 2\) waits"):
                at.read(CORE, 0, 4)

    wait()
    assert told == [CORE, ("[LIVELOCK] tile (1, 2) waits", CORE)]
    wait()
    assert len(told) == 4


def test_an_idle_chip_may_be_read_for_ever() -> None:
    _, at = device()
    for _ in range(5100):
        at.read(CORE, 0, 4)


def reports(at: Device) -> list[BhemuError]:
    told: list[BhemuError] = []
    at.report = told.append
    return told


def test_a_kernel_that_wants_the_hosts_memory_is_told_once_and_the_host_goes_on() -> None:
    _, at = device()
    told = reports(at)
    at.read(CORE, 0, 4)
    assert told == []
    for _ in range(2):
        at.write(CORE, HOST_MEMORY, b"1234")
        assert at.read(CORE, HOST_MEMORY, 4) == b"1234"
    at.silent()
    assert [error.rule for error in told] == ["HOST-MEMORY"]
    assert "read of 64 bytes" in told[0].message and told[0].where is not None
    assert "TT_METAL_DRAM_BACKED_CQ=1" in told[0].hint


def test_a_host_that_asks_nothing_is_told_before_the_chip_runs() -> None:
    """While it waits for its own memory it reads nothing, and the chip runs before reads only."""
    chip, at = device()
    told = reports(at)
    at.write(CORE, HOST_MEMORY, b"1234")
    at.silent()
    assert [error.rule for error in told] == ["HOST-MEMORY"]
    assert chip.rounds == [] and chip.host_access is None
    at.silent()
    at.read(CORE, 0, 4)
    assert len(told) == 1 and chip.rounds == [at._rounds]


@pytest.mark.parametrize("written", [BROKEN, 0x100])
def test_silence_tells_nothing_else(written: int) -> None:
    chip, at = device(moves=1000)
    told = reports(at)
    at.write(CORE, written, b"1234")
    at.silent()
    assert (told, chip.rounds, at.failure) == ([], [], None)


def test_the_rounds_that_are_seen_ahead_leave_the_chip_as_it_is() -> None:
    """brisc of (1,2) reads the host's memory: told while its chip stands in round 0."""
    chip = Chip()
    program = noc.send(noc.READ, (1 << 60 | 0x1000, noc.hi((19, 24))), (0x40000, noc.hi(CORE)), 64)
    noc.put(chip, CORE, program)
    at = Device(chip)
    told = reports(at)
    at.write(CORE, 0x100, b"1234")
    at.silent()
    assert [error.rule for error in told] == ["HOST-MEMORY"]
    place = told[0].where
    assert place is not None and (place.tile, place.core) == (CORE, "brisc")
    assert "read of 64 bytes from 0x1000000000001000 of PCIe tile (19,24)" in told[0].message
    assert (chip.round, chip.clock, chip.host_access) == (0, 0, None)
    at.read(CORE, 0x100, 4)
    assert chip.round > 0 and chip.host_access is not None and len(told) == 1
