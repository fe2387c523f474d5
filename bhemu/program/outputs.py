"""The outputs of a program after a run: read, saved where it says so, and compared."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bhemu.errors import InputError
from bhemu.program import comparison, files, tensor
from bhemu.program.schema import OutputSpec, Program
from bhemu.text import printable


@dataclass(frozen=True, repr=False)
class OutputResult:
    """One output after a run: where it was, how it compares, where it was saved.

    `report` is None when the program names nothing to compare with, `saved` when nothing was saved.
    """

    spec: OutputSpec
    address: int
    report: comparison.Report | None
    saved: Path | None

    @property
    def equal(self) -> bool:
        """False when the output differs from what was expected."""
        return self.report is None or self.report.equal

    def as_dict(self) -> dict[str, object]:
        """JSON-ready values: name, address, shape, dtype, layout, saved, and the report's."""
        compared = {} if self.report is None else self.report.as_dict()
        return {
            **compared,
            "name": self.spec.name,
            "address": self.address,
            "shape": list(self.spec.shape),
            "dtype": self.spec.dtype,
            "layout": self.spec.layout,
            "equal": None if self.report is None else self.report.equal,
            "saved": None if self.saved is None else str(self.saved),
        }

    def __repr__(self) -> str:
        return f"<OutputResult {' '.join(str(self).split())}>"

    def __str__(self) -> str:
        if self.report is not None and not self.report.equal:
            return str(self.report)
        shape = "x".join(str(n) for n in self.spec.shape)
        parts = [self.spec.name, f"{shape} {self.spec.dtype}"]
        if self.report is not None:
            how = "equal" if self.report.how == "bits" else f"agrees by {self.report.how}"
            parts.append(f"{how} ({self.report.total} of {self.report.total})")
        if self.saved is not None:
            parts.append(f"saved to {printable(str(self.saved))}")
        return "  ".join(parts if len(parts) > 2 else [*parts, "not compared"])


def collect(
    program: Program, read: Callable[[OutputSpec], tuple[int, bytes]]
) -> list[OutputResult]:
    """Read every output, save it where the program says so, and compare it.

    read: the address of an output and its bytes. A file is written whole or not.
    """
    results = []
    for spec in program.outputs:
        address, data = read(spec)
        if spec.save is not None:
            _save(spec, data, program.home)
        results.append(OutputResult(spec, address, spec.check(data), spec.save))
    return results


def check_saves(program: Program) -> None:
    """Every file to be saved can be written, and is of a kind that can be read back."""
    keep = list(program.files())
    for spec in program.outputs:
        if spec.save is None:
            continue
        if spec.save.suffix != ".npy" and spec.dtype != "raw":
            raise InputError(
                f"{spec.origin}: save = {spec.save} is not .npy",
                hint='only dtype = "raw" is saved as plain bytes',
            )
        files.check_writable(spec.save, spec.origin, keep)
        keep.append(spec.save)


def _save(spec: OutputSpec, data: bytes, inside: Path | None) -> None:
    """Write an output, below `inside`: its folder may have changed since it was checked."""
    assert spec.save is not None
    if inside is not None and not files.is_inside(spec.save, inside):
        raise InputError(f"{spec.origin}: {spec.save} leaves the folder of the program")
    if spec.save.suffix != ".npy":
        files.write_whole(spec.save, lambda file: file.write(data), spec.origin)
        return
    array = tensor.decode(data, spec.shape, spec.dtype, spec.layout)
    files.write_whole(spec.save, lambda file: np.save(file, array), spec.origin)
