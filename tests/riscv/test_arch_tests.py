"""riscv-arch-test on both engines: each test's signature is the reference's, word by word.

BHEMU_ARCH_TESTS names folders (os.pathsep between them) that hold NAME.elf and NAME.signature, a
word in hexadecimal per line.  The ELFs are the suite's tests of I, M, Zba, Zbb and Zifencei, linked
to L1 from 0x10000.  begin_signature and end_signature enclose what they write; they halt by a jump
to itself.
"""

import os
from pathlib import Path

import numpy as np
import pytest

from bhemu.machine.tile import Tile

FOLDERS = os.environ.get("BHEMU_ARCH_TESTS", "").split(os.pathsep)
SIGNATURES = sorted(
    path for folder in FOLDERS if folder for path in Path(folder).glob("*.signature")
)
LARGEST = 1_000_000  # instructions of a test

pytestmark = pytest.mark.skipif(not SIGNATURES, reason="BHEMU_ARCH_TESTS is not set")


def test_they_are_there() -> None:
    assert len(SIGNATURES) > 40


@pytest.mark.parametrize(("engine", "after"), [("unicorn", 0), ("unicorn", 20), ("compiled", 0)])
@pytest.mark.parametrize("reference", SIGNATURES, ids=lambda path: f"{path.parts[-3]}-{path.stem}")
def test_signature(
    reference: Path, engine: str, after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BHEMU_TRANSLATE_AFTER", str(after))
    elf = reference.with_suffix(".elf")
    tile = Tile(engine=engine)
    core = tile.core["trisc0"]
    core.load_elf(elf)
    symbols = core.images[-1]
    core.release()
    assert tile.run(limit=LARGEST).reason == "idle"
    begin, end = (symbols.address(f"{name}_signature") for name in ("begin", "end"))
    want = [int(line, 16) for line in reference.read_text().split()]
    got = np.frombuffer(tile.read(begin, end - begin), "<u4")
    assert [f"{word:08x}" for word in got[: len(want)]] == [f"{word:08x}" for word in want]
    assert len(got) - len(want) < 4  # the reference ends with what the test writes
