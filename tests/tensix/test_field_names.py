"""Fields of Config are data: every name that the package takes from them must be declared there."""

import ast
from pathlib import Path

import pytest

import bhemu
from bhemu.tensix import config_fields, thread_fields

FIELDS = {"config_fields": config_fields, "thread_fields": thread_fields}


def used(text: str) -> list[tuple[str, str]]:
    """Module and attribute of each field that a source takes, under whatever name it imports it."""
    tree, names = ast.parse(text), {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "bhemu.tensix":
            names |= {a.asname or a.name: a.name for a in node.names if a.name in FIELDS}
    return [
        (names[node.value.id], node.attr)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in names
    ]


def test_every_field_that_the_package_names_is_declared() -> None:
    found = [
        (path.name, module, name)
        for path in Path(bhemu.__file__).parent.rglob("*.py")
        for module, name in used(path.read_text(encoding="utf-8"))
    ]
    assert len(found) > 200
    assert [row for row in found if not hasattr(FIELDS[row[1]], row[2])] == []


def test_a_misspelt_field_says_so() -> None:
    with pytest.raises(AttributeError, match="no field of Config is called 'ALU_FORMAT'"):
        _ = config_fields.ALU_FORMAT
    with pytest.raises(AttributeError, match="no field of ThreadConfig is called 'SRCA'"):
        _ = thread_fields.SRCA


def test_repeated_fields() -> None:
    assert config_fields.TILE_ROW_SET_MAPPING_3_row_set_mapping_15 == (23, 30, 3)
    assert config_fields.PACK_COUNTERS_SEC2_pack_xys_per_tile == (30, 16, 0x7F)
    assert thread_fields.ADDR_MOD_AB_SEC7_SrcAIncr == (19, 0, 0x3F)
    assert config_fields.THCON_SEC1_REG7_Unpack_out_data_format_cntx7 == (143, 28, 0xF)
    assert config_fields.TILE_FACE_SET_MAPPING_3_face_set_mapping_15 == (39, 30, 0x3)
    assert thread_fields.PERF_CNT_CMD_Cmd3Stop == (44, 7, 0x1)
    assert thread_fields.ADDR_MOD_BIAS_SEC7_BiasClear == (54, 4, 0x1)
