"""Compiling without what only functions that are called from Python need.

numba turns every function, with all it calls, into machine code before it goes on to the function's
caller; only the machine code of the outermost is ever used here.  While `lean` is in force inner
functions are optimised once, not twice, and become no machine code.  What numba finds out again
and again (the signature of an operator for given types, the IR of a function that is inlined) is
remembered, and Python's collector of cyclic garbage, which would find next to nothing, waits.

All this reaches into numba's internals, so emit.py uses it with the versions it was tested with
only; any other numba compiles as it does by itself, and needs longer.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import binding
from numba import _dynfunc, types
from numba.core import codegen, cpu, inline_closurecall, registry

_Library: Any = codegen.JITCodeLibrary
_Context: Any = cpu.CPUContext
_Record: Any = types.Record
_Function: Any = types.BaseFunction
_Inliner: Any = inline_closurecall.InlineWorker
_get_executable = _Context.get_executable
_repr = _Record.__repr__
_get_call_type = _Function.get_call_type
_create_pass_builder = codegen.create_pass_builder
_run_untyped_passes = _Inliner.run_untyped_passes
_LINKONCE = "linkonce_odr"
_CALLBACK = "cfunc."  # how the names of functions of C begin


class InnerLibrary(_Library):
    """Code of one function that becomes machine code only when its address is asked for."""

    def add_linking_library(self, library: Any) -> None:
        """Note a callee's code."""
        self._linking_libraries.append(library)

    def defines(self, name: str) -> bool:
        """Whether there is a function of that name, before anything is linked to it."""
        functions = self._final_module.functions
        return any(f.name == name and not f.is_declaration for f in functions)

    def get_pointer_to_function(self, name: str) -> int:
        """Address of a function; 0, without compiling anything, when there is none."""
        if not self._finalized and not self.defines(name):
            return 0
        if name.startswith(_CALLBACK):
            self._finish()
            return 0
        return int(super().get_pointer_to_function(name))

    def _finish(self) -> None:
        """Link the outermost function; its machine code is made elsewhere (emit.py)."""
        for library in dict.fromkeys(self._linking_libraries):
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        for variable in self._final_module.global_variables:
            if variable.linkage.name == "common":
                variable.linkage = "internal"

    def _get_module_for_linking(self) -> Any:
        if self._finalized or self._shared_module is not None:
            return super()._get_module_for_linking()
        module = self._final_module.clone()
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            module.link_in(library._get_module_for_linking(), preserve=True)
        # Without this MVMUL takes 470 ns instead of 370, unpacking a tile half as long again.
        passes, builder = self._codegen._module_pass_manager()
        passes.run(module, builder)
        for function in module.functions:
            if not function.is_declaration and function.linkage.name == "external":
                function.linkage = _LINKONCE
        self._shared_module = module
        return module


def _passes(machine: Any, opt: int = 3, **_: bool) -> Any:
    """numba's create_pass_builder, without what depends on a processor: vectors, unrolled loops."""
    tuning = binding.create_pipeline_tuning_options(speed_level=opt)
    tuning.loop_unrolling = tuning.loop_vectorization = tuning.slp_vectorization = False
    return binding.create_pass_builder(machine, tuning)


def _executable(context: Any, library: Any, fndesc: Any, env: Any) -> Any:
    """numba's get_executable, unless the function cannot be called from Python anyway."""
    name = fndesc.llvm_cpython_wrapper_name
    if env.consts or not isinstance(library, InnerLibrary) or library.defines(name):
        return _get_executable(context, library, fndesc, env)
    module, name = fndesc.lookup_module(), fndesc.qualname.split(".")[-1]
    return _dynfunc.make_function(module, name, "", 0, env, (library,))


def _name_of(record: Any) -> str:
    """The record type's name; numba's own __repr__ spells out 200 members for every pass."""
    return str(record.name)


_signatures: dict[tuple[Any, ...], tuple[Any, Any]] = {}


def _signature(function: Any, context: Any, args: Any, kws: Any) -> Any:
    """numba's get_call_type for operators and builtins, which tries all overloads at every call."""
    if kws:
        return _get_call_type(function, context, args, kws)
    key = (id(function), *args)
    found = _signatures.get(key)
    if found is None:  # the function is kept, so that its id stays its own
        found = _signatures[key] = (function, _get_call_type(function, context, args, kws))
    return found[1]


_untyped: dict[tuple[Any, bool], Any] = {}


def _untyped_passes(worker: Any, function: Any, enable_ssa: bool = False) -> Any:
    """numba's run_untyped_passes, once for each function that is inlined: callers copy the IR."""
    worker.flags.enable_ssa = enable_ssa  # numba leaves it so
    key = (function, enable_ssa)
    if key not in _untyped:
        _untyped[key] = _run_untyped_passes(worker, function, enable_ssa)
    return _untyped[key]


@contextmanager
def lean() -> Iterator[None]:
    """Compile that way within the context."""
    backend = registry.cpu_target.target_context.codegen()
    collecting = gc.isenabled()
    gc.disable()
    backend._library_class = InnerLibrary
    _Context.get_executable = _executable
    _Record.__repr__ = _name_of
    _Function.get_call_type = _signature
    _Inliner.run_untyped_passes = _untyped_passes
    codegen.create_pass_builder = _passes
    try:
        yield
    finally:
        codegen.create_pass_builder = _create_pass_builder
        _Inliner.run_untyped_passes = _run_untyped_passes
        _Function.get_call_type = _get_call_type
        _Record.__repr__ = _repr
        _Context.get_executable = _get_executable
        del backend._library_class
        if collecting:
            gc.enable()
