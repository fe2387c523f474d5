"""The host side of tt-llk's boot protocol, and programs of kind "llk" (docs/llk.md)."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from llk_runner import CORES, ELFS, PARAMS, UNPACK_AB, loaded, params, run

from bhemu import llk as device
from bhemu.cli import main
from bhemu.errors import Assert, InputError, Limit
from bhemu.launch import launch
from bhemu.program.schema import load_program
from bhemu.riscv.assembly import A0, A1, A2, EBREAK, PARK, ZERO, addi, beq, code, jal, li, lw, sw

FOREVER = [addi(A0, A0, 1), jal(ZERO, -4)]
ADD = 1


def bf16_pair() -> tuple[bytes, bytes]:
    one, two = (0x3F80).to_bytes(2, "little"), (0x4000).to_bytes(2, "little")
    return one * 1024, two * 1024


def test_the_kernels_run_again_and_again_on_one_tile() -> None:
    """tt-llk boots BRISC once per session; each test resets the TRISCs and starts them anew."""
    tile = loaded()
    a, b = bf16_pair()
    chosen = params({"unpack": UNPACK_AB, "math": ADD}, "bf16", "bf16", "bf16", "bf16")
    three = (0x4040).to_bytes(2, "little") * 1024
    assert run(tile, chosen, a, b) == three
    for _ in range(2):
        tile.write(chosen.c, bytes(2048))
        device.command(tile, device.RESET_TRISCS)
        assert tile.core["trisc1"].state == "reset"
        device.command(tile, device.START_TRISCS)
        assert tile.run(device.done_words(), limit=20_000_000).reason == "until"
        assert tile.read(chosen.c, 2048) == three
    assert tile.read32(device.COUNTER) == 6


def test_the_mailboxes_are_not_complete_before_the_run() -> None:
    tile = loaded()
    for mailbox in device.MAILBOXES.values():
        tile.write32(mailbox, device.COMPLETE)
    device.start(tile)
    assert [tile.read32(at) for at in device.MAILBOXES.values()] == [0, 0, 0]
    assert tile.core["trisc0"].state == "reset"


def test_data_goes_through_the_staging_area() -> None:
    """BRISC's reset PCs are in .data: it is staged at .loader_init and copied by the start code."""
    tile = loaded()
    assert tile.read32(0x4000) == 0x6000
    assert tile.core["brisc"].read32(0xFFB00000) == 0
    device.boot(tile)
    assert tile.core["brisc"].read32(0xFFB00000) == 0x6000


def test_a_brisc_that_never_listens_is_named() -> None:
    tile = loaded()
    tile.write(0, code(*FOREVER))
    with pytest.raises(Limit, match="brisc did not set the command counter at 0x1ffcc") as caught:
        device.start(tile)
    assert (caught.value.rule, caught.value.exit_code) == ("LLK-BOOT", 7)


def test_a_command_that_is_not_carried_out_is_named() -> None:
    """BRISC clears the counter and stops listening."""
    tile = loaded()
    tile.write(0, code(li(A0, device.COUNTER), sw(ZERO, A0), *FOREVER))
    with pytest.raises(
        Limit, match=r"did not carry out command RESET_TRISCS .* is 0, not 1"
    ) as got:
        device.start(tile)
    assert got.value.rule == "LLK-COMMAND"


def test_a_brisc_that_says_it_is_ready_listens() -> None:
    """tt-metal's BRISC stores 0xB001CAFE to the counter once it listens, and counts from 0."""
    tile = loaded()
    tile.write(
        0,
        code(
            *(li(A2, device.COMMANDS[0]), sw(ZERO, A2)),
            *(li(A0, device.COUNTER), li(A1, device.READY), sw(A1, A0)),
            *(lw(A1, A2, 0), beq(A1, ZERO, -4)),  # the first command
            *(li(A1, 1), sw(A1, A0), *FOREVER),
        ),
    )
    device.start(tile)
    assert tile.read32(device.COUNTER) == 1
    assert [tile.read32(at) for at in device.COMMANDS] == [device.RESET_TRISCS, 1]


def test_an_assert_in_a_kernel_stops_the_run() -> None:
    tile = loaded()
    tile.write(PARAMS, bytes(0x400))  # no tiles
    tile.write(0xB000, code(EBREAK))
    device.start(tile)
    with pytest.raises(Assert, match="trisc1"):
        tile.run(device.done_words(), limit=1_000_000)


def test_the_shipped_program_runs() -> None:
    result = CliRunner().invoke(main, ["run", str(ELFS), "--json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["outputs"][0]["equal"] is True


def test_a_limit_names_the_mailboxes_that_are_missing() -> None:
    result = CliRunner().invoke(main, ["run", str(ELFS), "--limit", "1500"])
    assert result.exit_code == 7
    assert "the mailbox of trisc2 (pack) at 0x1ffc0 was 0xff (it is 0x" in result.stderr


def test_check_runs_nothing() -> None:
    result = CliRunner().invoke(main, ["check", str(ELFS)])
    assert result.exit_code == 0
    assert "ends when the mailbox of trisc0 (unpack) at 0x1ffb8 is 0xff and" in result.stdout
    assert launch(load_program(ELFS), boot=False).core["brisc"].retired == 0


@pytest.mark.parametrize("missing", CORES)
def test_every_core_is_wanted(tmp_path: Path, missing: str) -> None:
    cores = "".join(
        f'{core} = {{ elf = "{ELFS / core}.elf" }}\n' for core in CORES if core != missing
    )
    path = tmp_path / "PROGRAM.toml"
    path.write_text(f'bhemu = 1\nkind = "llk"\n[cores]\n{cores}')
    with pytest.raises(InputError, match="wants an elf for brisc and each TRISC"):
        load_program(path, allow_outside=True)


def test_a_flag_replaces_a_kernel_the_same_way() -> None:
    """--core keeps the way in which the kind places local RAM segments."""
    elf = ELFS / "trisc0.elf"
    result = CliRunner().invoke(main, ["run", str(ELFS), "--core", f"trisc0={elf}", "-q"])
    assert result.exit_code == 0, result.output
    result = CliRunner().invoke(main, ["check", str(ELFS), "--core", f"brisc={ELFS}/brisc.elf"])
    assert "0x00004000..0x0000400C" in result.stdout


def test_parking_instead_of_listening_is_named_too() -> None:
    tile = loaded()
    tile.write(0, code(PARK))
    with pytest.raises(Limit, match="does not listen"):
        device.start(tile)
