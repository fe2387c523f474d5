"""The error family: text, JSON form, exit codes and pickling (interface chapter)."""

import copy
import json
import pickle

import pytest

from bhemu.errors import (
    Assert,
    BhemuError,
    Call,
    GuestFault,
    InputError,
    Internal,
    Limit,
    NoProgress,
    NotModelled,
    Undefined,
    Where,
)

FULL = Where(
    tile=(1, 2),
    core="trisc1",
    thread=1,
    pc=0x10024,
    symbol="math_main+0x24",
    file="kernel.c",
    line=41,
    word=0xA6A1000A,
    decoded="SEMWAIT 1, 2, 2",
)


def test_exit_codes_are_the_contract():
    codes = {
        InputError: 2,
        NoProgress: 3,
        NotModelled: 4,
        GuestFault: 5,
        Undefined: 5,
        Assert: 6,
        Limit: 7,
        Internal: 70,
    }
    for kind, code in codes.items():
        error = kind("what happened")
        assert error.exit_code == code
        assert isinstance(error, BhemuError)


@pytest.mark.parametrize(
    ("kind", "categories"),
    [
        (InputError, ["InputError"]),
        (NoProgress, ["NoProgress", "Deadlock", "Livelock"]),
        (NotModelled, ["Unsupported", "Unimplemented", "MissingSpecification"]),
        (GuestFault, ["GuestFault", "IllegalWord", "Unmapped", "Alignment"]),
        (Undefined, ["UndefinedBehavior", "NonContractualBehavior"]),
        (Limit, ["Limit", "Timeout"]),
    ],
)
def test_categories_are_closed_and_the_first_is_the_default(kind, categories):
    assert kind("x").category == categories[0]
    assert [kind("x", category=category).category for category in categories] == categories
    with pytest.raises(ValueError, match=f"{kind.__name__} has no category 'Odd'"):
        kind("x", category="Odd")


def test_where_names_everything_known():
    assert str(FULL) == (
        "tile (1,2) trisc1 (thread T1) pc 0x00010024 in math_main+0x24 (kernel.c:41),"
        " word 0xA6A1000A SEMWAIT 1, 2, 2"
    )


@pytest.mark.parametrize(
    ("where", "text"),
    [
        (Where(), ""),
        (Where(core="brisc"), "brisc"),
        (Where(thread=2), "thread T2"),
        (Where(tile="north", core="ncrisc", pc=0), "tile north ncrisc pc 0x00000000"),
        (Where(file="a.c"), "(a.c)"),
        (Where(word=0x02000000), "word 0x02000000"),
        (Where(core="trisc0", decoded="NOP"), "trisc0, NOP"),
    ],
)
def test_where_leaves_out_what_is_unknown(where, text):
    assert str(where) == text


def test_text_is_one_line_with_the_place_and_a_hint_line():
    error = GuestFault("illegal word", rule="RV-1", where=FULL, hint="see the\nlisting")
    first, second = str(error).split("\n")
    assert first == f"[RV-1] illegal word, at {FULL}"
    assert second == "hint: see the listing"
    assert str(InputError("no such file")) == "no such file"
    assert str(InputError("x", where=Where())) == "x"


def test_message_is_forced_onto_one_line():
    assert InputError("bad\n  value\tof 3").message == "bad value of 3"


def test_as_dict_is_json_and_leaves_unknown_places_out():
    error = Undefined("semaphore above 15", rule="SEM-2", where=Where(tile=(1, 2), pc=16), hint="h")
    assert json.loads(json.dumps(error.as_dict())) == {
        "error": "Undefined",
        "category": "UndefinedBehavior",
        "rule": "SEM-2",
        "message": "semaphore above 15",
        "where": {"tile": [1, 2], "pc": 16},
        "hint": "h",
        "exit_code": 5,
    }
    assert InputError("x").as_dict()["where"] == {}


def test_no_progress_carries_its_graph():
    class Graph:
        def as_dict(self):
            return {"edges": 2}

    graph = Graph()
    error = NoProgress("stuck", graph=graph, category="Deadlock")
    assert error.graph is graph
    assert error.as_dict()["graph"] == {"edges": 2}
    assert NoProgress("stuck", graph=[1]).as_dict()["graph"] == [1]
    assert NoProgress("stuck").as_dict()["graph"] is None


@pytest.mark.parametrize("duplicate", [copy.copy, lambda e: pickle.loads(pickle.dumps(e))])
@pytest.mark.parametrize(
    "error",
    [
        NoProgress("stuck", graph={"a": ["b"]}, category="Livelock", where=FULL, hint="h"),
        BhemuError("x", category="Own", exit_code=9, rule="R"),
    ],
)
def test_errors_survive_the_way_between_processes(error, duplicate):
    twin = duplicate(error)
    assert type(twin) is type(error)
    assert twin.as_dict() == error.as_dict()
    assert str(twin) == str(error)
    assert twin.args == error.args


def test_line_0_of_a_compiler_is_no_line() -> None:
    where = Where(file="k.h", line=9, function="f", inlined=(Call("g", "k.c", 0),))
    assert "k.h:9 f, inlined at k.c" in str(where)
    assert ":0" not in str(where)
    assert "k.c:0" not in str(Where(file="k.c", line=0))
