"""riscv-tests on both engines; BHEMU_RISCV_TESTS names what scripts/build_riscv_tests.py built."""

import os
from pathlib import Path

import pytest

from bhemu.errors import BhemuError
from bhemu.machine.tile import Tile

FOLDER = os.environ.get("BHEMU_RISCV_TESTS")
ELFS = sorted(Path(FOLDER).glob("*.elf")) if FOLDER else []
REFUSED = {"rv32ui-ma_data": "RV-ALIGN", "rv32ua-lrsc": "RV-LRSC"}
GP = 3

pytestmark = pytest.mark.skipif(not FOLDER, reason="BHEMU_RISCV_TESTS is not set")


def test_they_are_there() -> None:
    assert len(ELFS) > 70


@pytest.mark.parametrize(("engine", "after"), [("unicorn", 0), ("unicorn", 20), ("compiled", 0)])
@pytest.mark.parametrize("elf", ELFS, ids=lambda path: path.stem)
def test_it_passes_or_is_refused(
    elf: Path, engine: str, after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """gp is 1 when every case has passed, else it holds the number of one that has not."""
    monkeypatch.setenv("BHEMU_TRANSLATE_AFTER", str(after))
    tile = Tile(engine=engine)
    core = tile.core["trisc0"]
    core.load_elf(elf)
    core.release()
    if elf.stem in REFUSED:
        with pytest.raises(BhemuError) as caught:
            tile.run(limit=1_000_000)
        assert caught.value.rule == REFUSED[elf.stem]
    else:
        assert tile.run(limit=1_000_000).reason == "idle"
        assert core.regs[GP] == 1
