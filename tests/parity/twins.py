"""A program of one tile written twice: as it is, and as a [[tile]] at (1, 2) of a chip."""

import re
import shutil
from pathlib import Path

import bhemu as package

ELFS = Path(package.__file__).parent.parent / "elfs"
PROGRAMS = ("add1", "matmul", "eltwise", "reduce", "sfpu", "hang_flag", "hang_cycle")
TWINS = ("tile", "chip")


def write(name: str, folder: Path, change: tuple[str, str] = ("", "")) -> dict[str, Path]:
    """Both forms of a program of elfs/, by "tile" and "chip"; change: a text, its replacement."""
    paths = {}
    for form in TWINS:
        path = folder / form / name
        shutil.copytree(ELFS / name, path)
        toml = path / "PROGRAM.toml"
        text = toml.read_text()
        if change[0]:
            assert change[0] in text
            text = text.replace(*change)
        toml.write_text(text if form == "tile" else on_chip(text))
        paths[form] = path
    return paths


def on_chip(text: str) -> str:
    """The text of a PROGRAM.toml of one tile, its parts in a [[tile]]."""
    tables = re.split(r"(?m)^(?=\[)", text)
    head, others = tables[0], tables[1:]
    cores = [table for table in others if table.startswith("[cores]")]
    sets = [table for table in others if table.startswith("[[set]]")]
    rest = [table for table in others if table not in cores and table not in sets]
    made = [head, '[[tile]]\nat = "1,2"\n']
    made += [table.replace("[cores]", "[tile.cores]") for table in cores]
    made += [table.replace("[[set]]", "[[tile.set]]") for table in sets]
    for table in rest:
        if table.startswith(("[[input]]", "[[output]]")):
            table = re.sub(r"(?m)^at = ", 'tile = "1,2"\nat = ', table, count=1)
        made.append(table)
    return "".join(made)
