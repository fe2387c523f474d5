"""Builds the ELFs of tests/why/mutants: shipped programs with one bug, as mutants.toml says.

python scripts/make_mutants.py [NAME ...]      all, or those
"""

import importlib.util
import shutil
import sys
import tempfile
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
MUTANTS = ROOT / "tests" / "why" / "mutants"
sys.path.insert(0, str(ROOT))


def listed() -> list[dict[str, Any]]:
    """The mutants."""
    found: list[dict[str, Any]] = tomllib.loads((MUTANTS / "mutants.toml").read_text())["mutant"]
    return found


def _builder(root: Path) -> ModuleType:
    """firmware/build.py of a copy of the sources."""
    spec = importlib.util.spec_from_file_location("mutant_build", root / "firmware" / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["mutant_build"] = module
    spec.loader.exec_module(module)
    return module


def build(mutant: dict[str, Any], out: Path) -> None:
    """Compile one mutant to `out`."""
    import bhemu.tensix.units  # noqa: F401  (declares the instructions)
    from bhemu.kernel import c_header

    with tempfile.TemporaryDirectory() as folder:
        root, generated = Path(folder) / "root", Path(folder) / "generated"
        generated.mkdir()
        shutil.copytree(ROOT / "firmware", root / "firmware")
        source = root / "firmware" / mutant["source"]
        text = source.read_text()
        if mutant["old"] not in text:
            raise SystemExit(f"{mutant['name']}: {mutant['source']} has no such lines")
        source.write_text(text.replace(mutant["old"], mutant["new"], 1))
        (generated / "tensix_insn.h").write_text(c_header())
        builder = _builder(root)
        elf = f"elfs/{mutant['program']}/{mutant['core']}.elf"
        program = next(one for one in builder.PROGRAMS if one.elf == elf)
        builder.build(program, out, generated)


def main() -> int:
    """Command line."""
    chosen = sys.argv[1:]
    for mutant in listed():
        if not chosen or mutant["name"] in chosen:
            build(mutant, MUTANTS / f"{mutant['name']}.elf")
    return 0


if __name__ == "__main__":
    sys.exit(main())
