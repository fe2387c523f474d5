"""Who set the formats and addresses that UNPACR and PACR use, in errors and where."""

from pathlib import Path

import pytest

import bhemu as package
from bhemu import BhemuError, Program, Tile
from bhemu.memmap import TENSIX_CFG_BASE
from bhemu.program.schema import CoreSpec, RunSpec
from bhemu.riscv.assembly import A0, A1, PARK, code, li, sw, tt
from bhemu.tensix import config_fields as cf

START = 0x10000
BASE, FORMAT = cf.THCON_SEC0_REG3_Base_address, cf.THCON_SEC0_REG2_Out_data_format


def launched(folder: Path, *words: int | list[int], engine: str = "unicorn") -> Tile:
    path = folder / "l1.bin"
    path.write_bytes(bytes(START) + code(*words))
    cores = {"trisc0": CoreSpec("trisc0", pc=START)}
    return Program("p", "image", cores, image=path, run=RunSpec(limit=10_000)).launch(engine=engine)


@pytest.mark.parametrize("engine", ["unicorn", "compiled"])
def test_errors_and_where_say_who_set_what_a_word_uses(tmp_path, engine) -> None:
    store = [*li(A1, TENSIX_CFG_BASE + 4 * FORMAT.word), *li(A0, 0xF), sw(A0, A1, 0)]
    set_base = tt("WRCFG", cfg_reg=BASE.word, gpr_address=8)
    tile = launched(tmp_path, *store, set_base, tt("UNPACR"), PARK, engine=engine)
    tile.break_word("UNPACR")
    assert tile.run().reason == "breakpoint"
    by_core = f"Out_data_format by trisc0 {START + 4 * (len(code(*store)) // 4 - 1):#x}"
    by_word = f"Base_address by T0 {START + len(code(*store)):#x}"
    line = str(tile.where()).splitlines()[5]
    assert by_core in line
    assert by_word in line
    with pytest.raises(BhemuError) as caught:
        tile.run()
    assert by_core in caught.value.where.operands
    assert by_word in str(caught.value)


def test_a_saved_state_still_tells(tmp_path) -> None:
    tile = launched(tmp_path, tt("WRCFG", cfg_reg=BASE.word, gpr_address=8), tt("UNPACR"), PARK)
    tile.break_word("UNPACR")
    tile.run()
    tile.snapshot().save(tmp_path / "s.npz")
    other = Tile()
    other.restore(package.Snapshot.load(tmp_path / "s.npz"))
    assert f"Base_address by T0 {START:#x}" in str(other.where())


def test_a_wait_names_what_it_holds(tmp_path) -> None:
    words = tt("SEMWAIT", wait_sem_cond=1, sem_sel=2, stall_res=0x12), tt("SEMPOST", sem_sel=1)
    tile = launched(tmp_path, *words, PARK)
    with pytest.raises(BhemuError) as caught:
        tile.run()
    held = "SEMWAIT (holds SYNC, XMOV until semaphore 1 (MATH_PACK) is above 0) holds back SEMPOST"
    assert held in str(caught.value)
    assert "stall_res" not in str(caught.value)
