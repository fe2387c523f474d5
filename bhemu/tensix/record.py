"""Signatures of the compiled functions that are called through pointers of the record."""

from bhemu.jit.subset import signature
from bhemu.tensix.state import DTYPE

ENTRY = signature("int64", DTYPE, "int64", "uint32")  # execute one word of thread t
STEP = signature("int64", DTYPE, "int64")  # run a core, or the coprocessor for n words
ACCESS = signature("int64", DTYPE, "int64", "int64", "int64", "int64")
