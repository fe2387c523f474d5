"""Compiling: numba and LLVM make one function of C from a function of the subset."""

import platform
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numba
from llvmlite import binding
from numba.core import registry

from bhemu.errors import Internal
from bhemu.jit import resolve
from bhemu.jit.link import image
from bhemu.jit.machine_code import Fix, Image
from bhemu.jit.subset import Signature

_LEAN = ("0.68.0", "0.68.1")  # versions of numba whose internals lean.py was tested with


def _faster() -> AbstractContextManager[None]:
    """What makes this version of numba compile faster."""
    if numba.__version__ not in _LEAN:
        return nullcontext()
    from bhemu.jit.lean import lean

    return lean()


def _target() -> Any:
    """What LLVM writes code for: position-independent, so that references need no fixing."""
    processor = numba.config.CPU_NAME or binding.get_host_cpu_name()
    features = numba.config.CPU_FEATURES
    if features is None:
        features = "" if numba.config.CPU_NAME else binding.get_host_cpu_features().flatten()
    return binding.Target.from_triple(binding.get_process_triple()).create_target_machine(
        cpu=processor, features=features, opt=3, reloc="pic", codemodel="small"
    )


def emit(signature: Signature, function: Any) -> Image:
    """Compile `function` as a function of C with this signature."""
    registry.cpu_target.target_context  # noqa: B018  # LLVM is ready once numba's target is
    with _faster():
        made = numba.cfunc(resolve.numba_signature(signature))(resolve.copy(function))
    module = binding.parse_assembly(made.inspect_llvm())
    if any(v.name.startswith("numba.dynamic.globals") for v in module.global_variables):
        raise Internal(f"{function!r} holds the address of a Python object")
    return packed_as(platform.machine(), _target().emit_object(module), module, made.native_name)


def packed_as(machine: str, data: bytes, module: Any, name: str) -> Image:
    """The image of an object file, or the file itself on other machines than x86-64."""
    if machine == "x86_64":
        return image(data, name)
    values = (*module.functions, *module.global_variables)
    missing = [v.name for v in values if v.is_declaration and not v.name.startswith("llvm.")]
    return Image(0, 0, tuple(Fix(0, name, 0) for name in missing), data, object_of=name)
