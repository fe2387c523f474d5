"""The tools that compile and the processor that runs the code, known without loading the tools."""

import functools
import importlib.util
import os
import sys
from pathlib import Path

import numpy as np

_TOOLS = ("numba", "llvmlite")
_NEUTRAL = {"NUMBA_CACHE_DIR", "NUMBA_DISABLE_JIT", "NUMBA_NUM_THREADS"}
_CPU = ("vendor_id", "cpu family", "model", "stepping", "flags", "CPU part", "Features")
# Levels of x86-64 for which a wheel carries code, the best first, with what /proc/cpuinfo calls the
# features that they add.
_LEVEL_3 = "cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3 avx avx2 bmi1 bmi2 f16c fma abm movbe xsave"
_LEVEL_4 = f"{_LEVEL_3} avx512f avx512bw avx512cd avx512dq avx512vl"
LEVELS = {"x86-64-v4": _LEVEL_4, "x86-64-v3": _LEVEL_3}


def _version(tool: str) -> str:
    """What a tool's version file says, or the version it gives itself."""
    spec = importlib.util.find_spec(tool)
    if spec is None or spec.origin is None:
        return "absent"
    try:
        return Path(spec.origin).with_name("_version.py").read_text()
    except OSError:
        return str(importlib.import_module(tool).__version__)


def settings() -> list[tuple[str, str]]:
    """Variables of the environment that change what numba compiles."""
    found = os.environ.items()
    return sorted((k, v) for k, v in found if k.startswith("NUMBA_") and k not in _NEUTRAL)


@functools.cache
def _cpuinfo() -> dict[str, str]:
    """What Linux says about the first processor."""
    found: dict[str, str] = {}
    try:
        with open("/proc/cpuinfo") as lines:
            for line in lines:
                name, colon, value = line.partition(":")
                if not colon:
                    break
                found[name.strip()] = value.strip()
    except OSError:
        pass
    return found


def cpu() -> str:
    """The processor that is compiled for: all that tells one from another."""
    if chosen := os.environ.get("NUMBA_CPU_NAME"):
        return chosen
    return repr([(name, _cpuinfo().get(name)) for name in _CPU])


def level() -> str:
    """The best level of x86-64 that this machine is known to execute, or ""."""
    if sys.platform != "linux" or os.uname().machine != "x86_64":
        return ""
    flags = set(_cpuinfo().get("flags", "").split())
    return next((name for name, needed in LEVELS.items() if set(needed.split()) <= flags), "")


@functools.cache
def tools() -> str:
    """Versions of what compiles, its settings and the processor."""
    versions = [(tool, _version(tool)) for tool in _TOOLS]
    return repr((versions, np.__version__, sys.version, settings(), os.uname().machine, cpu()))
