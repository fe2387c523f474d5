"""Vectors of 16 words of 16 bits in emitted code: instructions that no loop becomes.

Emitters call these functions (subset.intrinsic). A vector is LLVM's `<16 x i16>`: one row of a Src
bank or of Dst. What one instruction of a processor does, such as `pmulhrsw`, is a function of its
own in the emitted code, with a body that every processor executes. It is weak: `forms` defines the
functions that a target has instructions for, and emit.py links these in their place.
"""

from collections.abc import Callable, Sequence
from typing import Any

from bhemu.jit import Later

ir: Any = Later("llvmlite.ir")

WORDS = 16
FAR = 112  # added to an index of a table: from 16 on its highest bit is set, and gives 0
PREFIX = "bhemu."  # how the names of these functions begin

Body = Callable[..., Any]  # (builder, *arguments) -> result


def _vector(bits: int, count: int) -> Any:
    return ir.VectorType(ir.IntType(bits), count)


def _number(kind: Any, value: int) -> Any:
    """One number in every element."""
    return ir.Constant(kind, [value & (1 << kind.element.width) - 1] * kind.count)


def _call(builder: Any, name: str, result: Any, arguments: Sequence[Any]) -> Any:
    """Call an intrinsic of LLVM."""
    kind = ir.FunctionType(result, [value.type for value in arguments])
    return builder.call(builder.module.declare_intrinsic(name, fnty=kind), arguments)


def _defined(module: Any, name: str, result: Any, kinds: Sequence[Any], body: Body) -> Any:
    """A function of vectors without effects."""
    function = ir.Function(module, ir.FunctionType(result, kinds), PREFIX + name)
    for attribute in ("nounwind", "readnone"):
        function.attributes.add(attribute)
    builder = ir.IRBuilder(function.append_basic_block())
    builder.ret(body(builder, *function.args))
    return function


def _own(builder: Any, name: str, bits: int, body: Body, *arguments: Any) -> Any:
    """Call a function that targets may have a form of; its result is 32 bytes of `bits` each."""
    function = builder.module.globals.get(PREFIX + name)
    if function is None:
        kinds = [value.type for value in arguments]
        function = _defined(builder.module, name, _vector(bits, 256 // bits), kinds, body)
        function.linkage = "weak"
    return builder.call(function, arguments)


def shuffled(builder: Any, a: Any, b: Any, order: Any) -> Any:
    """Elements of `a` and `b` in an order."""
    chosen = [*order]
    mask = ir.Constant(_vector(32, len(chosen)), chosen)
    return builder.shuffle_vector(a, b, mask)


def constant(value: int) -> Any:
    """One number in every word."""
    return _number(_vector(16, WORDS), value)


def spread(builder: Any, word: Any) -> Any:
    """An `i16` in every word, or an `i32` as two words eight times."""
    count = WORDS * 16 // word.type.width
    kind = ir.VectorType(word.type, count)
    first = builder.insert_element(
        ir.Constant(kind, ir.Undefined), word, ir.Constant(ir.IntType(32), 0)
    )
    whole = shuffled(builder, first, first, [0] * count)
    return builder.bitcast(whole, _vector(16, WORDS))


def load(builder: Any, address: Any) -> Any:
    """The 16 words at a pointer to `i16`."""
    kind = _vector(16, WORDS).as_pointer()
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
    """(a * b + 2**14) >> 15 of signed words, which are not both -32768."""

    def body(builder: Any, a: Any, b: Any) -> Any:
        wide = _vector(32, WORDS)
        product = builder.mul(builder.sext(a, wide), builder.sext(b, wide))
        half = builder.add(product, _number(wide, 1 << 14))
        return builder.trunc(builder.ashr(half, _number(wide, 15)), a.type)

    return _own(builder, "rounded", 16, body, a, b)


def signed_by(builder: Any, a: Any, b: Any) -> Any:
    """`a`, its negative where b < 0, 0 where b is 0."""

    def body(builder: Any, a: Any, b: Any) -> Any:
        zero = constant(0)
        some = builder.select(builder.icmp_signed("==", b, zero), zero, a)
        return builder.select(builder.icmp_signed("<", b, zero), builder.neg(a), some)

    return _own(builder, "signed_by", 16, body, a, b)


def products_of_bytes(builder: Any, a: Any, b: Any) -> Any:
    """The products of both bytes of each word, of `a` unsigned and of `b` signed, added."""

    def body(builder: Any, a: Any, b: Any) -> Any:
        eight, low = constant(8), constant(0xFF)
        first = builder.ashr(builder.shl(b, eight), eight)
        first = builder.mul(builder.and_(a, low), first)
        second = builder.mul(builder.lshr(a, eight), builder.ashr(b, eight))
        return saturated(builder, first, second)

    return _own(builder, "products_of_bytes", 16, body, a, b)


def looked_up(builder: Any, tables: Any, i: Any, j: Any) -> Any:
    """Entries of tables of 16 words at indexes: for each table a vector for `i` and one for `j`.

    FAR is added to the indexes; from 16 on they give 0. An index is below 2**14.
    """

    def packed(builder: Any, i: Any, j: Any) -> Any:
        most = constant(255)
        i, j = (builder.select(builder.icmp_signed("<", n, most), n, most) for n in (i, j))
        narrow = [builder.trunc(n, _vector(8, WORDS)) for n in (i, j)]
        return shuffled(builder, narrow[0], narrow[1], _by_halves(WORDS))

    packed_indexes = _own(builder, "packed", 8, packed, i, j)
    found = []
    for table in tables:
        low, high = (
            _entries(builder, [word >> shift & 0xFF for word in table], packed_indexes)
            for shift in (0, 8)
        )
        found += [_interleaved(builder, low, high, side) for side in (0, 8)]
    return found


def _by_halves(count: int) -> list[int]:
    """The order: first halves of two vectors of `count` elements, then their second halves."""
    first, second = range(count // 2), range(count // 2, count)
    return [n + at for part in (first, second) for at in (0, count) for n in part]


def _entries(builder: Any, table: Any, indexes: Any) -> Any:
    """Bytes of a table of 16 bytes, found by bytes: their low four bits, 0 from 128 on."""

    def body(builder: Any, table: Any, indexes: Any) -> Any:
        word = ir.IntType(32)
        found = _number(table.type, 0)
        for n in range(2 * WORDS):
            at = ir.Constant(word, n)
            index = builder.extract_element(indexes, at)
            near = builder.and_(index, ir.Constant(index.type, 15))
            value = builder.extract_element(table, builder.zext(near, word))
            none = ir.Constant(index.type, 0)
            value = builder.select(builder.icmp_signed("<", index, none), none, value)
            found = builder.insert_element(found, value, at)
        return found

    whole = ir.Constant(indexes.type, [*table, *table])
    return _own(builder, "entries", 8, body, whole, indexes) if any(table) else whole


def _interleaved(builder: Any, low: Any, high: Any, side: int) -> Any:
    """Words of the low and high bytes that stand from byte `side` on in each half."""
    at = [half + side + i for half in (0, 16) for i in range(8)]
    order = [place for i in at for place in (i, 32 + i)]
    mixed = shuffled(builder, low, high, order)
    return builder.bitcast(mixed, _vector(16, WORDS))


def widened(builder: Any, value: Any) -> Any:
    """Unsigned words as two vectors of eight numbers of 32 bits, for `narrowed`."""
    kind = _vector(32, WORDS // 2)
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

    def body(builder: Any, a: Any, b: Any) -> Any:
        narrow = [builder.trunc(n, _vector(16, WORDS // 2)) for n in (a, b)]
        return shuffled(builder, narrow[0], narrow[1], _by_halves(WORDS // 2))

    return _own(builder, "narrowed", 16, body, a, b)


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


# What targets have instructions for. A register has 32 bytes (AVX2) or 16 (SSE4.1, Neon).

_X86 = {  # name: (AVX2, SSE4.1, bits of the result and of the operands)
    "rounded": ("avx2.pmul.hr.sw", "ssse3.pmul.hr.sw.128", 16, 16),
    "signed_by": ("avx2.psign.w", "ssse3.psign.w.128", 16, 16),
    "products_of_bytes": ("avx2.pmadd.ub.sw", "ssse3.pmadd.ub.sw.128", 16, 8),
    "packed": ("avx2.packuswb", "sse2.packuswb.128", 8, 16),
    "entries": ("avx2.pshuf.b", "ssse3.pshuf.b.128", 8, 8),
    "narrowed": ("avx2.packusdw", "sse41.packusdw", 16, 32),
}
FORMS = ("avx2", "sse4_1", "neon")


def _halves(builder: Any, name: str, bits: int, arguments: Sequence[Any]) -> Any:
    """An instruction on both halves of vectors of 32 bytes; the result has elements of `bits`."""
    count = 256 // bits
    parts = []
    for half in (0, 1):
        taken = []
        for value in arguments:
            n = value.type.count // 2
            taken.append(shuffled(builder, value, value, range(half * n, half * n + n)))
        parts.append(_call(builder, name, _vector(bits, count // 2), taken))
    return shuffled(builder, parts[0], parts[1], range(count))


def _x86_form(name: str, whole: bool) -> Body:
    wide, narrow, bits, _ = _X86[name]

    def body(builder: Any, *arguments: Any) -> Any:
        if name == "products_of_bytes":
            kind = _vector(8, 2 * WORDS)
            arguments = tuple(builder.bitcast(value, kind) for value in arguments)
        if whole:
            return _call(builder, f"llvm.x86.{wide}", _vector(bits, 256 // bits), arguments)
        return _halves(builder, f"llvm.x86.{narrow}", bits, arguments)

    return body


def _sqrdmulh(builder: Any, a: Any, b: Any) -> Any:
    return _halves(builder, "llvm.aarch64.neon.sqrdmulh.v8i16", 16, (a, b))


def _tbl(builder: Any, table: Any, indexes: Any) -> Any:
    near = builder.and_(indexes, _number(indexes.type, 0x8F))
    return _halves(builder, "llvm.aarch64.neon.tbl1.v16i8", 8, (table, near))


def forms(kind: str) -> str:
    """LLVM's text of the functions that processors with these instructions have a form of."""
    if kind == "neon":
        bodies = {"rounded": _sqrdmulh, "entries": _tbl}
    else:
        bodies = {name: _x86_form(name, kind == "avx2") for name in _X86}
    module = ir.Module(name=kind)
    for name, body in bodies.items():
        _, _, bits, taken = _X86[name]
        taken = 16 if name == "products_of_bytes" else taken  # bytes of words
        kinds = [_vector(taken, 256 // taken)] * 2
        _defined(module, name, _vector(bits, 256 // bits), kinds, body)
    return str(module)
