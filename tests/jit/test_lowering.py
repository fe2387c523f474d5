"""One front end, code for every processor: what the linker makes of it, and vectors of words."""

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bhemu.errors import Internal
from bhemu.jit import emit, host, machine_code, vectors
from bhemu.jit.emit import front_end, lowered, target
from bhemu.jit.host import ARM, CARRIED
from bhemu.jit.subset import JIT, External, intrinsic, signature

pytestmark = pytest.mark.skipif(not JIT, reason="nothing is compiled in the interpreted mode")

ONE = signature("int64", "int64")
TABLE = np.arange(100, dtype=np.int64) ** 3
_sysconf: Any = External("sysconf", ONE)
ADRP, LOW = 0x90000000, 0x91000000  # adrp; add, with 12 bits of an address


def from_table(i):  # type: ignore[no-untyped-def]
    return TABLE[i]


def from_library(x):  # type: ignore[no-untyped-def]
    return _sysconf(x) + 1


def words(content: bytes) -> list[int]:
    return [int.from_bytes(content[i : i + 4], "little") for i in range(0, len(content) - 3, 4)]


def addresses(content: bytes) -> list[int]:
    """What pairs of adrp and add of AArch64 code give, in an image that begins at 0."""
    found, pages = [], {}
    for i, word in enumerate(words(content)):
        if word & 0x9F000000 == ADRP:
            pages[word & 31] = (word >> 5 & 0x7FFFF) << 2 | word >> 29 & 3
            pages[word & 31] += i * 4 >> 12
        elif word & 0xFFC00000 == LOW and word >> 5 & 31 in pages:
            found.append((pages[word >> 5 & 31] << 12) + (word >> 10 & 0xFFF))
    return found


def test_code_for_arm_refers_to_its_constants() -> None:
    image = lowered(front_end(ONE, from_table), target(ARM))
    at = addresses(image.content)
    assert image.align == 4096 and at
    assert any(image.content[a : a + TABLE.nbytes] == TABLE.tobytes() for a in at)


def test_code_for_arm_calls_through_a_table() -> None:
    image = lowered(front_end(ONE, from_library), target(ARM))
    (fix,) = [fix for fix in image.fixes if fix.symbol == "sysconf"]
    code = words(image.content)
    jumps = [i for i, word in enumerate(code) if word == 0xD61F0200]  # br x16
    loads = [4 * (i - 1) + 4 * (code[i - 1] >> 5 & 0x7FFFF) for i in jumps]
    assert fix.place in loads
    jump = jumps[loads.index(fix.place)] - 1
    calls = [i + (w & 0x3FFFFFF) for i, w in enumerate(code) if w >> 26 in (0x05, 0x25)]
    assert jump in calls


def test_an_unknown_relocation_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_code._Arm, "_LOW", {})
    with pytest.raises(Internal, match="relocation of type 277 to"):
        lowered(front_end(ONE, from_table), target(ARM))


def of_words(emitter: Callable[..., Any], count: int) -> Callable[..., None]:
    """A function (out, a, b) -> 0 of host addresses, where emitter(builder, a, b) is `out`."""

    @intrinsic
    def run(typing: Any, out: Any, a: Any, b: Any) -> Any:
        from llvmlite import ir
        from numba import types

        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            words = ir.IntType(16).as_pointer()
            out, *taken = (builder.inttoptr(value, words) for value in args)
            made = emitter(builder, *(vectors.load(builder, value) for value in taken))
            for i in range(count):
                at = builder.gep(out, [ir.Constant(ir.IntType(64), 16 * i)])
                vectors.store(builder, made[i] if count > 1 else made, at)
            return args[0]

        return types.int64(types.int64, types.int64, types.int64), emit

    return lambda out, a, b: run(out, a, b)


TABLES = tuple(range(1000, 17000, 1000)), (0,) * 14 + (7, 65535)
FORMS: dict[str, tuple[Callable[..., Any], int]] = {
    "rounded": (vectors.rounded, 1),
    "signed_by": (vectors.signed_by, 1),
    "products_of_bytes": (vectors.products_of_bytes, 1),
    "looked_up": (lambda builder, i, j: vectors.looked_up(builder, TABLES, i, j), 4),
    "narrowed": (lambda b, x, y: vectors.narrowed(b, *vectors.widened(b, b.add(x, y))), 1),
}


def expected(name: str, a: Any, b: Any) -> Any:
    """The same in NumPy."""
    wide = a.astype(np.int64), b.astype(np.int64)
    if name == "rounded":
        return (wide[0] * wide[1] + (1 << 14)) >> 15
    if name == "signed_by":
        return wide[0] * np.sign(wide[1])
    if name == "products_of_bytes":
        low = (wide[0] & 0xFF) * b.view(np.int8)[::2]
        return np.clip(low + (wide[0] >> 8 & 0xFF) * b.view(np.int8)[1::2], -32768, 32767)
    if name == "narrowed":
        return wide[0] + wide[1]
    found = []
    for table in TABLES:
        entries = np.array([*table, *(0,) * 20000])
        found += [entries[each - vectors.FAR] for each in wide]
    return np.concatenate(found)


LEVELS = ("", *(name for name in CARRIED if name in host.executed()))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", FORMS)
def test_vectors_of_words(name: str, level: str) -> None:
    """In the form that every processor executes ("") and in those of levels."""
    emitter, count = FORMS[name]
    kind = signature("int64", "int64", "int64", "int64")
    image = lowered(front_end(kind, of_words(emitter, count)), target(level))
    call = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 3)(machine_code.load(image))
    r = np.random.default_rng(3)
    for _ in range(200):
        a, b = r.integers(-32767, 32768, (2, 16)).astype(np.int16)
        a[:6], b[:6] = (0, -32767, 32767, 1, -1, 255), r.choice([0, -1, 1, -32768, 32767], 6)
        if name == "looked_up":
            a, b = (
                vectors.FAR + r.integers(0, (20, 16000)[i], 16).astype(np.int16) for i in (0, 1)
            )
        out = np.zeros(16 * count, np.int16)
        call(*(each.ctypes.data for each in (out, a, b)))
        want = expected(name, a, b).astype(np.int16)
        assert (out == want).all(), (a, b, out, want)


def test_forms_of_arm_have_its_instructions() -> None:
    emitter, count = FORMS["rounded"]
    kind = signature("int64", "int64", "int64", "int64")
    image = lowered(front_end(kind, of_words(emitter, count)), target(ARM))
    sqrdmulh = [word for word in words(image.content) if word & 0xFFE0FC00 == 0x6E60B400]
    assert len(sqrdmulh) == 2


def test_a_level_has_the_forms_that_its_processors_execute() -> None:
    assert emit.target("x86-64-v4").forms == "avx2"
    assert emit.target("x86-64-v2").forms == "sse4_1"
    assert emit.target(ARM).forms == "neon"


def test_an_instruction_of_another_processor_is_refused_by_name() -> None:
    pair = "<8 x i32>"
    text = f"""
declare <16 x i16> @llvm.x86.avx2.packusdw({pair}, {pair})
define <16 x i16> @entry({pair} %a, {pair} %b) {{
  %both = call <16 x i16> @llvm.x86.avx2.packusdw({pair} %a, {pair} %b)
  ret <16 x i16> %both
}}
"""
    with pytest.raises(Internal, match=r"entry needs llvm\.x86\.avx2\.packusdw"):
        lowered(emit.Source(text, "entry"), target(ARM))
