"""Machine code for any processor from what numba's front end gives, which names none.

numba types and translates an entry once. What depends on a processor comes after that: vectors,
unrolled loops, instructions. `lowered` does it for one target, so that code for every processor
costs one front end.
"""

import re
from typing import Any, NamedTuple

from llvmlite import binding

from bhemu.errors import Internal
from bhemu.jit import host, vectors
from bhemu.jit.machine_code import Image, image

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


def _machine(target: Target) -> Any:
    """What LLVM writes code with: position-independent, so that references need no fixing."""
    return binding.Target.from_triple(_LINUX[target.machine]).create_target_machine(
        cpu=target.processor, features=target.features, opt=3, reloc="pic", codemodel="small"
    )


def lowered(source: Source, target: Target) -> Image:
    """The image of an entry for a target."""
    machine = _machine(target)
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
