"""A run followed in float64 beside itself: what it computes exactly, and what each step adds."""

from bhemu.debug.shadow.numbers import (
    FIDELITY,
    STEPS,
    STORE,
    SUM,
    TRUE,
    UNPACK,
    VECTOR,
    Floats,
    rest,
)
from bhemu.debug.shadow.packed import Packed
from bhemu.debug.shadow.run import Place, Shadow

__all__ = [
    "FIDELITY",
    "STEPS",
    "STORE",
    "SUM",
    "TRUE",
    "UNPACK",
    "VECTOR",
    "Floats",
    "Packed",
    "Place",
    "Shadow",
    "rest",
]
