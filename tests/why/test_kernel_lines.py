"""What stands in tt-metal's headers is named by the kernel that calls them."""

from types import SimpleNamespace
from typing import Any

from bhemu.why.findings import Finding
from bhemu.why.question import of_kernels

CALLS = [
    {"function": "add_tiles", "file": "eltwise_binary.h", "line": 268},
    {"function": "kernel_main", "file": "add.cpp", "line": 18},
]
WHO = {
    "tile": [1, 2], "core": "trisc1", "pc": 0x100, "function": "run", "file": "ckernel.h",
    "line": 7, "inlined": CALLS,
}  # fmt: skip


def named(kind: str, library: set[str], who: dict[str, Any] = WHO) -> Finding:
    image = SimpleNamespace(library=frozenset(library))
    tile = SimpleNamespace(xy=(1, 2), core={"trisc1": SimpleNamespace(images=[image])})
    context: Any = SimpleNamespace(
        program=SimpleNamespace(kind=kind),
        symptom=SimpleNamespace(machine=None),
        libraries={},
        tiles=lambda machine: (tile,),
    )
    (found,) = of_kernels(context, [Finding("races", "error", "", who, {}, ("e",), "")])
    return found


def test_the_call_outside_the_library_is_named() -> None:
    found = named("tt-metal", {"ckernel.h", "eltwise_binary.h"})
    who = found.as_dict()["culprit"]
    assert (who["function"], who["file"], who["line"]) == ("kernel_main", "add.cpp", 18)
    assert who["inlined"] == []
    assert found.evidence == ("e", "there in ckernel.h:7")


def test_calls_on_the_way_stay() -> None:
    who = named("elf", {"ckernel.h"}).culprit
    assert (who["file"], who["line"], who["inlined"]) == ("eltwise_binary.h", 268, CALLS[1:])


def test_a_library_without_a_caller_stays() -> None:
    everything = {"ckernel.h", "eltwise_binary.h", "add.cpp"}
    assert named("tt-metal", everything).culprit == WHO
    assert named("tt-metal", set()).culprit == WHO
    assert named("tt-metal", {"ckernel.h"}, {"core": "brisc"}).culprit == {"core": "brisc"}


def test_of_tests_of_tt_llk_the_header_is_named() -> None:
    assert named("llk", {"ckernel.h", "eltwise_binary.h"}).culprit == WHO


def test_a_text_with_the_place_has_the_kernels() -> None:
    image = SimpleNamespace(library=frozenset({"ckernel.h", "eltwise_binary.h"}))
    tile = SimpleNamespace(xy=(1, 2), core={"trisc1": SimpleNamespace(images=[image])})
    context: Any = SimpleNamespace(
        program=SimpleNamespace(kind="tt-metal"),
        symptom=SimpleNamespace(machine=None),
        libraries={},
        tiles=lambda machine: (tile,),
    )
    texts = ("if trisc1 ckernel.h:7 is changed: left out", "T1 of ckernel.h:7: no")
    found = of_kernels(context, [Finding("cure", "", t, WHO, {}, (), "") for t in texts])
    assert [one.text for one in found] == ["if trisc1 add.cpp:18 is changed: left out", texts[1]]
