"""Vectors of 16 words of 16 bits in emitted code: instructions of x86-64 that no loop becomes.

Emitters call these functions (subset.intrinsic). A vector is LLVM's `<16 x i16>`: one row of a Src
bank or of Dst. Each instruction has its names here, for registers of 32 and of 16 bytes.
"""

from typing import Any

from bhemu.jit import host

WORDS = 16
FAR = 112  # added to an index of a table: from 16 on its highest bit is set, and gives 0


def _width() -> int:
    """Bytes of the registers that these functions use; 0: the processor lacks the instructions."""
    features = host.features()
    if "avx2" in features:
        return 32
    return 16 if {"ssse3", "sse4_1"} <= features else 0


WIDTH = _width()


def _call(builder: Any, name: str, result: Any, arguments: Any) -> Any:
    from llvmlite import ir

    kind = ir.FunctionType(result, [value.type for value in arguments])
    return builder.call(builder.module.declare_intrinsic(name, fnty=kind), arguments)


def _each(builder: Any, wide: str, narrow: str, bits: int, *arguments: Any) -> Any:
    """An instruction on whole vectors; the result has elements of `bits`."""
    from llvmlite import ir

    count = 8 * 32 // bits
    if WIDTH == 32:
        return _call(builder, f"llvm.x86.{wide}", ir.VectorType(ir.IntType(bits), count), arguments)
    kind = ir.VectorType(ir.IntType(bits), count // 2)
    parts = []
    for half in (0, 1):
        taken = []
        for value in arguments:
            n = value.type.count // 2
            taken.append(shuffled(builder, value, value, range(half * n, half * n + n)))
        parts.append(_call(builder, f"llvm.x86.{narrow}", kind, taken))
    return shuffled(builder, parts[0], parts[1], range(count))


def shuffled(builder: Any, a: Any, b: Any, order: Any) -> Any:
    """Elements of `a` and `b` in an order."""
    from llvmlite import ir

    chosen = [*order]
    mask = ir.Constant(ir.VectorType(ir.IntType(32), len(chosen)), chosen)
    return builder.shuffle_vector(a, b, mask)


def constant(value: int) -> Any:
    """One number in every word."""
    from llvmlite import ir

    return ir.Constant(ir.VectorType(ir.IntType(16), WORDS), [value & 0xFFFF] * WORDS)


def spread(builder: Any, word: Any) -> Any:
    """An `i16` in every word, or an `i32` as two words eight times."""
    from llvmlite import ir

    count = WORDS * 16 // word.type.width
    kind = ir.VectorType(word.type, count)
    first = builder.insert_element(
        ir.Constant(kind, ir.Undefined), word, ir.Constant(ir.IntType(32), 0)
    )
    whole = shuffled(builder, first, first, [0] * count)
    return builder.bitcast(whole, ir.VectorType(ir.IntType(16), WORDS))


def load(builder: Any, address: Any) -> Any:
    """The 16 words at a pointer to `i16`."""
    from llvmlite import ir

    kind = ir.VectorType(ir.IntType(16), WORDS).as_pointer()
    return builder.load(builder.bitcast(address, kind), align=2)


def store(builder: Any, value: Any, address: Any) -> None:
    """Store 16 words at a pointer to `i16`."""
    builder.store(value, builder.bitcast(address, value.type.as_pointer()), align=2)


def larger(builder: Any, a: Any, b: Any) -> Any:
    """The larger of signed words."""
    return builder.select(builder.icmp_signed(">", a, b), a, b)


def saturated(builder: Any, a: Any, b: Any) -> Any:
    """Sum of signed words, -32768 or 32767 where it does not fit."""
    return _call(builder, "llvm.sadd.sat.v16i16", a.type, (a, b))


def rounded(builder: Any, a: Any, b: Any) -> Any:
    """(a * b + 2**14) >> 15 of signed words."""
    return _each(builder, "avx2.pmul.hr.sw", "ssse3.pmul.hr.sw.128", 16, a, b)


def signed_by(builder: Any, a: Any, b: Any) -> Any:
    """`a`, its negative where b < 0, 0 where b is 0."""
    return _each(builder, "avx2.psign.w", "ssse3.psign.w.128", 16, a, b)


def products_of_bytes(builder: Any, a: Any, b: Any) -> Any:
    """The products of both bytes of each word, of `a` unsigned and of `b` signed, added."""
    a, b = as_bytes(builder, a), as_bytes(builder, b)
    return _each(builder, "avx2.pmadd.ub.sw", "ssse3.pmadd.ub.sw.128", 16, a, b)


def as_bytes(builder: Any, value: Any) -> Any:
    """The 32 bytes of 16 words."""
    from llvmlite import ir

    return builder.bitcast(value, ir.VectorType(ir.IntType(8), 2 * WORDS))


def looked_up(builder: Any, tables: Any, i: Any, j: Any) -> Any:
    """Entries of tables of 16 words at indexes: for each table a vector for `i` and one for `j`.

    FAR is added to the indexes; from 16 on they give 0. An index is below 2**14.
    """
    packed = _each(builder, "avx2.packuswb", "sse2.packuswb.128", 8, i, j)
    found = []
    for table in tables:
        low, high = (
            _entries(builder, [word >> shift & 0xFF for word in table], packed) for shift in (0, 8)
        )
        found += [_interleaved(builder, low, high, side) for side in (0, 8)]
    return found


def _entries(builder: Any, table: Any, packed: Any) -> Any:
    """Bytes of a table of 16 bytes, found by bytes."""
    from llvmlite import ir

    whole = ir.Constant(packed.type, [*table, *table])
    if not any(table):
        return whole
    return _each(builder, "avx2.pshuf.b", "ssse3.pshuf.b.128", 8, whole, packed)


def _interleaved(builder: Any, low: Any, high: Any, side: int) -> Any:
    """Words of the low and high bytes that stand from byte `side` on in each half."""
    from llvmlite import ir

    at = [half + side + i for half in (0, 16) for i in range(8)]
    order = [place for i in at for place in (i, 32 + i)]
    mixed = shuffled(builder, low, high, order)
    return builder.bitcast(mixed, ir.VectorType(ir.IntType(16), WORDS))


def widened(builder: Any, value: Any) -> Any:
    """Unsigned words as two vectors of eight numbers of 32 bits, for `narrowed`."""
    from llvmlite import ir

    kind = ir.VectorType(ir.IntType(32), WORDS // 2)
    zero = constant(0)
    both = []
    for side in (0, 4):
        at = [half + side + i for half in (0, 8) for i in range(4)]
        order = [place for i in at for place in (i, WORDS + i)]
        both.append(builder.bitcast(shuffled(builder, value, zero, order), kind))
    return both


def halved(builder: Any, value: Any, kind: Any) -> Any:
    """The first words of `value` as numbers of a vector with fewer, wider elements."""
    half = shuffled(builder, value, value, range(kind.count))
    return builder.zext(half, kind)


def narrowed(builder: Any, a: Any, b: Any) -> Any:
    """The words of two vectors that `widened` made: numbers from 0 to 65535."""
    return _each(builder, "avx2.packusdw", "sse41.packusdw", 16, a, b)


def doubled(builder: Any, value: Any) -> Any:
    """Each word twice, as two vectors; word k is pair `doubled_at(k)` of both."""
    sides = []
    for side in (0, 4):
        at = [half + side + i for half in (0, 8) for i in range(4)]
        sides.append(shuffled(builder, value, value, [place for i in at for place in (i, i)]))
    return sides


def doubled_at(k: int) -> int:
    """Where among 16 pairs `doubled` leaves the word k."""
    return (k & 4) * 2 + (k & 8) // 2 + (k & 3)
