"""A small part of scripts/hostile_campaign.py: files of every kind, in this process's worker."""

import importlib
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "scripts"))  # worker processes inherit it
campaign = importlib.import_module("hostile_campaign")
files = importlib.import_module("hostile_files")


def test_damaged_files_are_read_or_refused(tmp_path: Path) -> None:
    outcomes = campaign.campaign(600, 0, 0, 0, tmp_path / "keep", 1)
    assert {o.kind for o in outcomes} >= {kind.name for kind in files.kinds(tmp_path)}
    assert [o for o in outcomes if not campaign.good(o)] == []
    assert any(o.end == "read" for o in outcomes) and any(o.end == "refused" for o in outcomes)


def test_a_case_that_ends_otherwise_is_bad(tmp_path: Path) -> None:
    def fail(path: Path) -> None:
        raise IndexError("out of range")

    kind = files.kinds(tmp_path)[0]._replace(read=fail)
    outcome = campaign.one(kind, tmp_path)
    assert (outcome.end, campaign.good(outcome)) == ("IndexError: out of range", False)
    page = campaign.page([outcome], "")
    assert "not documented 1" in page
    assert "1 of them bad" in page
