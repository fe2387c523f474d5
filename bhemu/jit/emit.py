"""Compiling an entry with numba: names resolved, calls with keywords, machine code emitted."""

import builtins
import functools
import inspect
import re
from contextlib import AbstractContextManager, nullcontext
from types import CellType, FunctionType, ModuleType
from typing import Any, NamedTuple

import numba
from llvmlite import binding
from numba import types
from numba.core import registry
from numba.core.imputils import lower_builtin
from numba.core.typing import signature as numba_types_signature
from numba.core.typing.templates import AbstractTemplate, infer_global
from numba.extending import intrinsic as numba_intrinsic

from bhemu.errors import Internal
from bhemu.jit import host, machine_code, vectors
from bhemu.jit.keys import own, parts, plain
from bhemu.jit.machine_code import Image, image
from bhemu.jit.subset import ByName, Compiled, External, Intrinsic, Signature

# Calls with keywords of any name, as numba compiles them (subset.by_name).


def compiled(function: Any, store: Any, fixed: int) -> Any:
    """What stands for `function` in compiled code; it has `fixed` arguments that are no keywords.

    Both are numba's.  A call of it is a call of `store` for each keyword, in the order of their
    names, then one of `function`.
    """

    def call() -> None:
        """Known to numba as a name only."""

    def resolved(typing: Any, callee: Any, args: Any) -> tuple[Any, Any]:
        kind = typing.resolve_value_type(callee)
        return kind, kind.get_call_type(typing, args, {})

    class ByName(AbstractTemplate):  # type: ignore[misc, unused-ignore]
        key = call

        def generic(self, args: Any, kws: Any) -> Any:
            names = sorted(kws)
            listed = [*(f"_{i}" for i in range(len(args))), *names]
            kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
            parameters = inspect.Signature([inspect.Parameter(name, kind) for name in listed])
            result = resolved(self.context, function, args)[1].return_type
            made = numba_types_signature(result, *args, *(kws[name] for name in names))
            return made.replace(pysig=parameters)

    infer_global(call, types.Function(ByName))

    @lower_builtin(call, types.VarArg(types.Any))
    def emit(context: Any, builder: Any, made: Any, args: Any) -> Any:
        kinds = (made.args[0], types.int64, types.int64)
        callee, each = resolved(context.typing_context, store, kinds)
        for i in range(fixed, len(args)):
            value = context.cast(builder, args[i], made.args[i], types.int64)
            number = context.get_constant(types.int64, i - fixed)
            context.get_function(callee, each)(builder, (args[0], number, value))
        callee, last = resolved(context.typing_context, function, made.args[:fixed])
        return context.get_function(callee, last)(builder, args[:fixed])

    return call


# Marked functions as numba takes them.
#
# numba looks names up in a function's globals.  So every function of the subset is copied with
# globals of its own, in which the marked functions that it calls are numba's.

# numba makes functions callable from Python as well: a quarter of the time to compile them.
_BARE = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_ALWAYS = {"no_rewrites": True}  # of array expressions, which nothing here has

_made: dict[Any, Any] = {}  # numba's form of what was marked
_callable: dict[Compiled, Any] = {}  # the same, callable from Python


@functools.cache
def numba_signature(signature: Signature) -> Any:
    """numba's form of a signature."""
    kinds = [
        getattr(numba.types, kind) if isinstance(kind, str) else numba.from_dtype(kind)
        for kind in signature.arguments
    ]
    return getattr(numba.types, signature.result)(*kinds)


def _resolved(value: Any) -> Any:
    """numba's form of a value that a function of the subset refers to."""
    if not isinstance(value, External | Intrinsic | Compiled | ByName):
        return value
    if value not in _made:
        if isinstance(value, External):
            made = numba_signature(value.signature)
            _made[value] = numba.types.ExternalFunction(value.symbol, made)
        elif isinstance(value, Intrinsic):
            _made[value] = numba_intrinsic(value.emitter)
        elif isinstance(value, ByName):
            function, store = (
                _dispatcher(Compiled(each, {}), _BARE) for each in (value.py_func, value.store)
            )
            _made[value] = compiled(
                function, store, len(inspect.signature(value.py_func).parameters)
            )
        else:
            _made[value] = _dispatcher(value, {} if "inline" in value.options else _BARE)
    return _made[value]


def _dispatcher(value: Compiled, options: dict[str, Any]) -> Any:
    return numba.njit(**{**_ALWAYS, **options, **value.options})(copy(value))


def copy(function: Any) -> FunctionType:
    """A function of the subset as numba compiles it: calls of itself are not provided for."""
    for path in machine_code.libraries:
        binding.load_library_permanently(path)
    made, original = parts(function), plain(function)
    names: dict[str, Any] = {"__builtins__": builtins, "__name__": original.__module__}
    for name, value in made.globals.items():
        names[name] = ModuleType(value.__name__) if own(value) else _resolved(value)
    for (module, attribute), value in made.attributes.items():
        setattr(names[module], attribute, _resolved(value))
    cells = tuple(CellType(_resolved(value)) for value in made.closure.values())
    copied = FunctionType(made.code, names, original.__name__, original.__defaults__, cells)
    copied.__kwdefaults__ = original.__kwdefaults__
    copied.__qualname__, copied.__module__ = original.__qualname__, original.__module__
    return copied


def called(function: Compiled, *arguments: Any) -> Any:
    """Call a function of the subset from Python, compiled for these arguments."""
    if function not in _callable:
        _callable[function] = _dispatcher(function, {})
    return _callable[function](*arguments)


# Machine code for any processor from what numba's front end gives, which names none.
#
# numba types and translates an entry once. What depends on a processor comes after that: vectors,
# unrolled loops, instructions. `lowered` does it for one target, so that code for every processor
# costs one front end.

_LINUX = {"x86-64": "x86_64-unknown-linux-gnu", "aarch64": "aarch64-unknown-linux-gnu"}
# A counter that programs may read: ARM's cycle counter is the kernel's.
_COUNTERS = ("llvm.readcyclecounter", "llvm.readsteadycounter")
# numba's own text of this function has been through x86-64's code generator.
_RELEASE = """
declare void @NRT_MemInfo_call_dtor(ptr)
define void @NRT_decref(ptr %counted) {
  %none = icmp eq ptr %counted, null
  br i1 %none, label %end, label %release
release:
  fence release
  %before = atomicrmw sub ptr %counted, i64 1 monotonic
  %last = icmp eq i64 %before, 1
  br i1 %last, label %free, label %end
free:
  fence acquire
  call void @NRT_MemInfo_call_dtor(ptr %counted)
  br label %end
end:
  ret void
}
"""
_TARGET_LINES = re.compile(r"^target (datalayout|triple) = .*$", re.MULTILINE)

# LLVM unrolls a loop over 32 lanes before it looks for vectors, and then finds none: the copies
# read and write through one pointer. 16 keeps short loops unrolled. (SFPAND: 65 to 15 ns.)
binding.set_option("bhemu", "--unroll-full-max-count=16")
binding.initialize_all_targets()
binding.initialize_all_asmprinters()


class Target(NamedTuple):
    """A processor as LLVM names it, and which of vectors.FORMS it executes, or ""."""

    machine: str  # "x86-64" or "aarch64"
    processor: str
    features: str
    forms: str


def target(level: str) -> Target:
    """The target of one of host.CARRIED, or of every x86-64 processor for "".

    macOS keeps the register x18 of AArch64 for itself.
    """
    if level == host.ARM:
        return Target("aarch64", "generic", "+reserve-x18", "neon")
    if not level:
        return Target("x86-64", "x86-64", "", "")
    # LLVM would take half of a v4's vectors, for early processors that slow down with whole ones.
    wide = "-prefer-256-bit" if level == "x86-64-v4" else ""
    return Target("x86-64", level, wide, "sse4_1" if level == "x86-64-v2" else "avx2")


class Source(NamedTuple):
    """What the front end gives: LLVM's text, and the function in it that is the entry."""

    text: str
    function: str


def lowered(source: Source, target: Target) -> Image:
    """The image of an entry for a target."""
    # Position-independent code, so that references need no fixing.
    machine = binding.Target.from_triple(_LINUX[target.machine]).create_target_machine(
        cpu=target.processor, features=target.features, opt=3, reloc="pic", codemodel="small"
    )
    text = _TARGET_LINES.sub("", source.text)
    if target.machine == "aarch64":
        text = text.replace(*_COUNTERS)
    module = _parsed(text, target, machine)
    if target.machine == "aarch64":
        module.link_in(_parsed(_RELEASE, target, machine))
    if target.forms:
        module.link_in(_parsed(vectors.forms(target.forms), target, machine))
    for function in module.functions:
        if not function.is_declaration and function.name != source.function:
            function.linkage = "internal"
            if function.name.startswith(vectors.PREFIX):
                function.add_function_attribute("alwaysinline")
    tuning = binding.create_pipeline_tuning_options(speed_level=3)
    tuning.loop_vectorization = True
    builder = binding.create_pass_builder(machine, tuning)
    builder.getModulePassManager().run(module, builder)
    module.verify()
    if any(v.name.startswith("numba.dynamic.globals") for v in module.global_variables):
        raise Internal(f"{source.function} holds the address of a Python object")
    if target.machine == "aarch64" and (
        foreign := re.search(r"call .*@(llvm\.x86\.[\w.]+)", str(module))
    ):
        raise Internal(f"{source.function} needs {foreign[1]}, which is an instruction of x86-64")
    return image(machine.emit_object(module), source.function)


def _parsed(text: str, target: Target, machine: Any) -> Any:
    module = binding.parse_assembly(text)
    module.triple = _LINUX[target.machine]
    module.data_layout = str(machine.target_data)
    return module


# Compiling: numba and LLVM make one function of C from a function of the subset.

_LEAN = ("0.68.0", "0.68.1")  # versions of numba whose internals numba_patches.py was tested with


def front_end(signature: Signature, function: Any) -> Source:
    """What numba makes of `function` as a function of C with this signature."""
    registry.cpu_target.target_context  # noqa: B018  # LLVM is ready once numba's target is
    faster: AbstractContextManager[None] = nullcontext()
    if numba.__version__ in _LEAN:
        from bhemu.jit.numba_patches import lean

        faster = lean()
    with faster:
        made = numba.cfunc(numba_signature(signature))(copy(function))
    return Source(made.inspect_llvm(), made.native_name)


def emit(signature: Signature, function: Any) -> Image:
    """Compile `function` as a function of C with this signature, for this machine's level."""
    return lowered(front_end(signature, function), target(host.level()))
