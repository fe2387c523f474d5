"""What `import bhemu` shows, and what it does not load; what every object says of itself."""

import json
import subprocess
import sys

import pytest

import bhemu
from bhemu import Program, Tile, errors

NAMES = {"Tile", "Program", "Stop", "Snapshot", "errors", "load_elf", "BhemuError", "__version__"}
SLOW = {"numba", "llvmlite", "unicorn", "elftools", "numpy"}


def test_dir_shows_what_there_is_without_loading_it() -> None:
    script = (
        "import sys, json, bhemu\n"
        "names = dir(bhemu)\n"
        "loaded = {m.split('.')[0] for m in sys.modules}\n"
        "found = [n for n in names if getattr(bhemu, n, None) is None]\n"
        "print(json.dumps([names, sorted(loaded), found]))\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    names, loaded, missing = json.loads(result.stdout)
    assert set(names) >= NAMES
    assert not SLOW & set(loaded)
    assert missing == []


def test_every_error_class_is_at_the_top() -> None:
    kinds = {name for name, kind in vars(errors).items() if isinstance(kind, type)}
    kinds = {name for name in kinds if name[0] != "_" and issubclass(vars(errors)[name], Exception)}
    assert kinds <= set(dir(bhemu))


def test_a_wrong_name_gets_a_suggestion() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Tiles'; did you mean Tile"):
        print(bhemu.Tiles)
    with pytest.raises(ImportError):
        exec("from bhemu import Programs")


def test_objects_say_what_they_are(request) -> None:
    tile = Program.load(request.config.rootpath / "elfs" / "add1").launch()
    cores = "brisc:running trisc0:reset trisc1:reset trisc2:reset ncrisc:reset"
    assert repr(tile) == f"<Tile (1,2) add1, clock 0; {cores}>"
    assert repr(tile.core) == f"<Cores {cores}>"
    assert repr(tile.core["ncrisc"]) == "<Core ncrisc: reset, 0 retired>"
    assert repr(tile.tensix).startswith("<Tensix: words executed T0 0, T1 0, T2 0; semaphores 0 0")
    assert repr(tile.run()) == "<Stop until, clock 2688>"
    assert repr(tile.check()) == "[<OutputResult y 32x32 bf16 equal (1024 of 1024)>]"
    assert len(repr(tile.where()).splitlines()) == 8


def test_dir_of_a_tile_leaves_out_what_is_not_for_users() -> None:
    names = dir(Tile())
    assert {"run", "core", "tensix", "snapshot", "break_at", "__repr__"} <= set(names)
    assert not {"state", "backend", "bus", "stepping", "loop"} & set(names)
    assert {"gpr", "cfg", "dst", "cfg_field"} <= set(dir(Tile().tensix))
