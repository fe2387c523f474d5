"""Programs that are right: what the checks find in golden cases and production kernels is known.

All golden cases with BHEMU_LONG=1, a few otherwise; docs/why.md says why each finding is true.
"""

import importlib
import os
from pathlib import Path

import alarm_programs
import golden_case
import golden_noc
import pytest
from script_module import script

from bhemu.why.findings import CLASS_OF

LONG = bool(os.environ.get("BHEMU_LONG"))
CASES = sorted(path.stem for path in golden_case.GOLDEN.glob("*.npz"))
SILENT = ["copy_bf16_bfp4", "mm_hifi4_bf16"]
CONFIG_AT_ONCE = ["elwadd_accum", "mm_2x3x2_int", "pipeline_mm_sfpu", "zeroacc_32b"]
GPR_AT_ONCE = ["cfg_wide", "gpr_cfg", "mutex_count", "sem_ring"]
DUMPS = ["gapool", "gmpool", "rwc_addrmod_add", "rwc_addrmod_mul", "src_dst_moves"]
DUMPS += [f"sfpu_{name}" for name in "basic cc fields fma int loadstore lut move".split()]
LANES_ON = ["pipeline_mm_sfpu", *(name for name in DUMPS if name.startswith("sfpu_"))]
LANES_ON.remove("sfpu_loadstore")
KNOWN = {
    **{name: {"races"} for name in (*CONFIG_AT_ONCE, *GPR_AT_ONCE)},
    **{name: {"unwritten"} for name in DUMPS},
    "cfg_wide": {"races", "unwritten", "slots"},
    "replay": {"slots"},
}
for name in LANES_ON:
    KNOWN[name] = {*KNOWN[name], "powerup"}
NOC_KNOWN = {name: {"unwritten"} for name in ("inline_mmio", "random_2", "random_4")}
ALARMS = script("scripts/check_alarms.py")


def classes(names: set[str]) -> set[str]:
    """The classes of what these checks find."""
    return {CLASS_OF[name] for name in names}


def checks_of(program: Path) -> set[str]:
    result = ALARMS.checked(program)
    assert "broken" not in result, result["broken"]
    assert result["error"] is None
    return {one["check"] for one in result["findings"]}


@pytest.mark.parametrize("name", CASES if LONG else [*SILENT, "replay"])
def test_a_golden_case(name: str, tmp_path: Path) -> None:
    assert checks_of(alarm_programs.golden(name, tmp_path / name)) == classes(
        KNOWN.get(name, set())
    )


@pytest.mark.parametrize(
    "name", golden_noc.names() if LONG else ["both_nocs", "code_over_noc", "shared_niu"]
)
def test_a_golden_case_of_several_tiles(name: str, tmp_path: Path) -> None:
    assert checks_of(alarm_programs.noc(name, tmp_path / name)) == classes(
        NOC_KNOWN.get(name, set())
    )


@pytest.mark.skipif(not os.environ.get("BHEMU_KERNEL_DIR"), reason="BHEMU_KERNEL_DIR is not set")
@pytest.mark.parametrize("name", ["eltwise", "layernorm"])
def test_kernels_of_production(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SETDMAREG and WRCFG of its GPR stand side by side in layernorm's reduce mask."""
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "e2e")
    alarm_kernels = importlib.import_module("alarm_kernels")

    found = ALARMS.checked(alarm_kernels.KERNELS[name](tmp_path / name))["findings"]
    texts = {one["text"].split(",")[0] for one in found}
    assert texts == ({"WRCFG does not wait for the scalar unit"} if name == "layernorm" else set())


def test_a_run_that_cannot_be_checked_is_said(tmp_path: Path) -> None:
    (tmp_path / "PROGRAM.toml").write_text("bhemu = 99\n")
    result = ALARMS.checked(tmp_path / "PROGRAM.toml")
    assert result["exit_code"] == 2
    assert "findings" in result
