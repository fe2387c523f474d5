"""The direction of dependencies, read from the import statements (docs/architecture.md)."""

import ast
import functools
from pathlib import Path

import bhemu

ROOT = Path(bhemu.__file__).parent
# Rooms from the ground up; a module may import its own room and those of the rows before it.
LAYERS = (
    ("text", "system"),
    ("errors", "bits"),
    ("arguments", "memmap", "jit"),
    ("tensix", "program"),
    ("devices", "kernel"),
    ("riscv", "noc"),
    ("timing",),
    ("machine",),
    ("llk",),
    ("metal",),
    ("launch",),
    ("oracle", "debug"),
    ("hosts", "why"),
    ("pictures",),
    ("sweeps",),
    ("bench",),
    ("cli", "pytest_plugin"),
)
LATER = ("Later", "function_at")  # what is imported when something of it is asked for
RANK = {room: rank for rank, rooms in enumerate(LAYERS) for room in rooms}


@functools.cache
def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found |= {f"{node.module}.{name.name}" for name in node.names}
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in LATER:
            constants = (one.value for one in node.args if isinstance(one, ast.Constant))
            found |= {one for one in constants if isinstance(one, str)}
    return found


def room(module: str) -> str | None:
    parts = module.split(".")
    return parts[1] if parts[0] == "bhemu" and len(parts) > 1 and parts[1] in RANK else None


def test_every_module_has_a_room() -> None:
    names = {
        p.stem if p.is_file() else p.name for p in ROOT.iterdir() if p.suffix == ".py" or p.is_dir()
    }
    assert names - {"__init__", "__main__", "__pycache__", "data"} <= RANK.keys()


def test_dependencies_point_down() -> None:
    wrong = []
    for path in sorted(ROOT.rglob("*.py")):
        own = path.relative_to(ROOT).parts[0].removesuffix(".py")
        if own not in RANK:
            continue
        for module in imports(path):
            other = room(module)
            if other is not None and other != own and RANK[other] >= RANK[own]:
                wrong.append(f"{path.relative_to(ROOT)} imports {module}")
    assert wrong == []


def test_unicorn_is_imported_in_one_place() -> None:
    users = [
        str(p.relative_to(ROOT))
        for p in ROOT.rglob("*.py")
        if any(m.split(".")[0] == "unicorn" for m in imports(p))
    ]
    assert users == ["riscv/unicorn_core.py"]


def test_riscv_does_not_know_the_tensix_units_and_tensix_knows_no_device() -> None:
    for path in (ROOT / "tensix").rglob("*.py"):
        assert not any(room(m) in ("devices", "riscv") for m in imports(path)), path
