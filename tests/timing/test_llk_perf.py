"""The plugin that writes what tt-llk's performance tests measure: its rows."""

from typing import Any

from script_module import script

llk_perf: Any = script("scripts/llk_perf.py")


def test_a_zone_gives_a_row_for_each_run_type_and_none_for_other_columns() -> None:
    record = {
        "tile_cnt": 16,
        "marker": "TILE_LOOP",
        "loop_factor": 2,
        "mean(UNPACK_ISOLATE)": 1190.0,
        "mean(MATH_ISOLATE)": 555.0,
        "std(MATH_ISOLATE)": 0.5,
        "L1_TO_L1_mean(fpu_utilization_pct)": 40.0,
        "TEXT_SIZE(UNPACK_ISOLATE)": 2992,
    }
    assert llk_perf.rows("one", record) == [
        ("one", "TILE_LOOP", "UNPACK_ISOLATE", "1190", "32"),
        ("one", "TILE_LOOP", "MATH_ISOLATE", "555", "32"),
    ]


def test_a_zone_without_counts_is_of_one_tile() -> None:
    record = {"marker": "INIT", "mean(PACK_ISOLATE)": 197.5}
    assert llk_perf.rows("one", record) == [("one", "INIT", "PACK_ISOLATE", "197.5", "1")]
