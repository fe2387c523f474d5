"""Products and their accumulation a row of 16 columns at a time, in words of 16 bits.

What arithmetic.py says of one datum, with the instructions that jit/vectors.py names.

A product is shifted and rounded by one multiplication.  With `a` doubled, p = a * b and s its sign
(0 or -1), (p + s + 2**d) >> (d + 1) is half of p shifted right by d, half away from zero; that is
`rounded(p + s, 2**(14 - d))`.  p + s is one instruction too: the bytes of the word `a` are its low
part and its sign, so that the bytes |b| and 1 give |b| * a + s.  The sign of `b` comes last.

For a 16-bit Dst everything is counted in units of 2**13.  Then sums of products have 16 bits, Dst
has 11, and the roundings of a term that is shifted by d (to an integer, then to 2**13) are one:
half towards +infinity, `rounded(-v, -2**(15 - d))`, where v is greater by 1 for d = 14 and by 2 for
d = 15, and nothing remains from 16 on.  The sum of three terms has 17 bits with its sign: the sign
comes from a sum that saturates, the magnitude from one that wraps.
"""

from typing import Any

import numpy as np

from bhemu.jit import Later, vectors
from bhemu.jit.subset import JIT, intrinsic
from bhemu.tensix.banks import SRCA, SRCB

ir: Any = Later("llvmlite.ir")
types: Any = Later("numba.types")
cgutils: Any = Later("numba.core.cgutils")
arrayobj: Any = Later("numba.np.arrayobj")

_GROUP = 8  # products of a sum
_SHIFTS = (*(1 << 14 >> d for d in range(15)), 0)
_TERM_SHIFTS = tuple(-(1 << 15 >> d) & 0xFFFF for d in range(16))
_TWICE_ROUNDED = (0,) * 14 + (1, 2)


def _data(context: Any, builder: Any, kind: Any, array: Any) -> Any:
    """Pointer to the first element of an array of the subset, as words."""
    data = arrayobj.make_array(kind)(context, builder, array).data
    return builder.bitcast(data, ir.IntType(16).as_pointer())


def _row(builder: Any, data: Any, row: Any) -> Any:
    """Pointer to a row of 16 elements."""
    return builder.gep(data, [builder.shl(row, ir.Constant(row.type, 4))])


def _doubled_row(builder: Any, exponents: Any, slices: Any, scratch: Any) -> None:
    """One row of SrcB with each word twice: exponents, magnitudes and 1 as bytes, slices."""
    x, y = vectors.load(builder, exponents), vectors.load(builder, slices)
    magnitude = vectors.signed_by(builder, y, y)
    ones = builder.or_(magnitude, vectors.constant(0x100))
    at = 0
    for value in (x, ones, y):
        for side in vectors.doubled(builder, value):
            place = builder.gep(scratch, [ir.Constant(ir.IntType(64), at)])
            vectors.store(builder, side, builder.bitcast(place, ir.IntType(16).as_pointer()))
            at += 8


def _group_sum(builder: Any, ea: Any, pa: Any, scratch: Any, group: int) -> Any:
    """(exponent, sum) of eight products for 16 columns."""

    def of(array: int, k: int) -> Any:
        at = 16 * array + vectors.doubled_at(group + k)
        word = builder.load(builder.gep(scratch, [ir.Constant(ir.IntType(64), at)]))
        return vectors.spread(builder, word)

    def row(data: Any, k: int) -> Any:
        return vectors.load(builder, _row(builder, data, ir.Constant(ir.IntType(64), group + k)))

    exponents = [builder.add(row(ea, k), of(0, k)) for k in range(_GROUP)]
    most = exponents
    while len(most) > 1:
        most = [vectors.larger(builder, *most[i : i + 2]) for i in range(0, len(most), 2)]
    far = builder.add(most[0], vectors.constant(vectors.FAR))
    distance = [builder.sub(far, e) for e in exponents]
    total = vectors.constant(0)
    for k in range(0, _GROUP, 2):
        shifts = vectors.looked_up(builder, (_SHIFTS,), distance[k], distance[k + 1])
        for i, shift in zip((k, k + 1), shifts, strict=True):
            product = vectors.products_of_bytes(builder, of(1, i), row(pa, i))
            aligned = vectors.rounded(builder, product, shift)
            total = builder.add(total, vectors.signed_by(builder, aligned, of(2, i)))
    return most[0], total


def _words(builder: Any, value: Any) -> Any:
    """A number in every word."""
    return vectors.spread(builder, builder.trunc(value, ir.IntType(16)))


def _term(builder: Any, found: Any, bias: Any) -> Any:
    """Exponent and sum of products as a term: arithmetic.group in units of 2**13, signed."""
    zero, (exponent, total) = vectors.constant(0), found
    x = builder.add(exponent, bias)
    x = vectors.larger(builder, x, vectors.larger(builder, bias, zero))
    return x, builder.select(builder.icmp_signed(">", x, zero), total, zero)


def _total(builder: Any, old: Any, sums: Any, bias: Any, c: Any) -> Any:
    """(exponent, saturated sum, magnitude of the sum) of a row, its sign relative to Dst."""
    zero = vectors.constant(0)
    x = builder.and_(old, c.exponent_mask)
    m = builder.and_(builder.lshr(old, c.exponent_bits), c.fraction_mask)
    m = builder.shl(builder.or_(m, c.hidden), builder.sub(c.point, vectors.constant(13)))
    m = builder.select(builder.icmp_signed("==", x, zero), zero, m)
    (x0, v0), (x1, v1) = (_term(builder, each, bias) for each in sums)
    most = vectors.larger(builder, vectors.larger(builder, x0, x1), x)
    far = builder.add(most, vectors.constant(vectors.FAR))
    distances = [builder.sub(far, each) for each in (x0, x1, x)]
    tables = _TERM_SHIFTS, _TWICE_ROUNDED
    shift0, shift1, more0, more1 = vectors.looked_up(builder, tables, *distances[:2])
    shift = vectors.looked_up(builder, tables[:1], distances[2], distances[2])[0]
    q0 = vectors.rounded(builder, builder.sub(builder.neg(v0), more0), shift0)
    q1 = vectors.rounded(builder, builder.sub(builder.neg(v1), more1), shift1)
    q = vectors.rounded(builder, builder.neg(m), shift)
    sign = builder.or_(old, vectors.constant(1))
    wrapped = vectors.signed_by(builder, builder.add(q0, q1), sign)
    limited = vectors.larger(builder, vectors.saturated(builder, q0, q1), vectors.constant(-32767))
    limited = vectors.saturated(builder, q, vectors.signed_by(builder, limited, sign))
    return most, limited, vectors.signed_by(builder, builder.add(q, wrapped), limited)


def _assembled(builder: Any, sign: Any, x: Any, total: Any, magnitude: Any, c: Any) -> Any:
    """Cells of sums: a float32 of the magnitude has the leading bit, and rounds with a carry."""
    zero, parts = vectors.constant(0), []
    for part in vectors.widened(builder, magnitude):
        kind = part.type
        number = builder.sitofp(part, ir.VectorType(ir.FloatType(), kind.count))
        number = builder.bitcast(number, kind)
        number = builder.sub(number, ir.Constant(kind, [127 << 23] * kind.count))
        point = vectors.halved(builder, c.point, kind)
        half = ir.Constant(kind, [1] * kind.count)
        half = builder.shl(half, builder.sub(point, half))
        parts.append(builder.lshr(builder.add(number, half), point))
    number = vectors.narrowed(builder, *parts)
    fraction = builder.and_(number, c.fraction_mask)
    leading = builder.lshr(number, builder.sub(vectors.constant(23), c.point))
    e = builder.add(builder.add(x, leading), vectors.constant(-10))
    cell = builder.shl(fraction, c.exponent_bits)
    cell = builder.or_(cell, builder.and_(e, c.exponent_mask))
    cell = builder.select(builder.icmp_signed(">=", e, c.limit), c.huge, cell)
    cell = builder.or_(cell, builder.and_(sign, vectors.constant(0x8000)))
    some = builder.icmp_signed("!=", total, zero)
    for each in (e, x):
        some = builder.and_(some, builder.icmp_signed(">", each, zero))
    return builder.select(some, cell, zero)


def _loop(builder: Any, count: Any, body: Any) -> None:
    """body(i) for i below `count`."""
    with cgutils.for_range(builder, count) as each:
        body(each.index)


if JIT:

    @intrinsic
    def sums(typing: Any, a: Any, b: Any, row_a: Any, row_b: Any, rows: Any, out: Any) -> Any:
        """Sums of products of `rows` <= 8 rows of SrcB from `row_b` and 16 rows of SrcA.

        `a`, `b`: (exponents, slices) of a bank, each (64, 16) of int16; `out`: (exponents, sums),
        each (2, 128), of k = 0-7 and of k = 8-15.
        """

        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            kinds = signature.args
            word = ir.IntType(64)
            (ea, pa), (eb, pb), (oe, os) = (
                [
                    _data(context, builder, kinds[i].types[j], builder.extract_value(args[i], j))
                    for j in (0, 1)
                ]
                for i in (0, 1, 5)
            )
            first = builder.and_(args[2], ir.Constant(word, 48))
            ea, pa = _row(builder, ea, first), _row(builder, pa, first)
            pairs = cgutils.alloca_once(builder, ir.ArrayType(ir.IntType(32), 8 * 48))
            scratch = builder.bitcast(pairs, ir.IntType(32).as_pointer())
            size = ir.Constant(word, 48)

            def prepare(r: Any) -> None:
                row = builder.and_(builder.add(args[3], r), ir.Constant(word, 63))
                place = builder.gep(scratch, [builder.mul(r, size)])
                exponents, slices = _row(builder, eb, row), _row(builder, pb, row)
                _doubled_row(builder, exponents, slices, place)

            def multiply(r: Any) -> None:
                place = builder.gep(scratch, [builder.mul(r, size)])
                for group in (0, 1):
                    found = _group_sum(builder, ea, pa, place, group * _GROUP)
                    at = builder.add(r, ir.Constant(word, 8 * group))
                    for value, data in zip(found, (oe, os), strict=True):
                        vectors.store(builder, value, _row(builder, data, at))

            _loop(builder, args[4], prepare)
            _loop(builder, args[4], multiply)
            return context.get_dummy_value()

        return types.void(a, b, types.int64, types.int64, types.int64, out), emit

    @intrinsic
    def accumulate(
        typing: Any, cells: Any, keep: Any, terms: Any, at: Any, bias: Any, c: Any
    ) -> Any:
        """Add both sums of products to a row of 16-bit cells.

        `cells`: (16,) uint16, and-ed with `keep` first; `terms`: (exponents, sums), each (2, 128),
        whose row begins at `at`; `bias` is added to the exponents; `c`: the kind of cells, an
        arithmetic.Cell.
        """

        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            kinds = signature.args
            data = _data(context, builder, kinds[0], args[0])
            exponents, totals = (
                _data(context, builder, kinds[2].types[j], builder.extract_value(args[2], j))
                for j in (0, 1)
            )
            parts = [
                _words(builder, builder.extract_value(args[5], i)) for i in range(len(kinds[5]))
            ]
            shape = kinds[5].instance_class(*parts)
            old = builder.and_(vectors.load(builder, data), _words(builder, args[1]))
            sums = []
            for g in (0, 128):
                at = builder.add(args[3], ir.Constant(args[3].type, g))
                both = (builder.gep(source, [at]) for source in (exponents, totals))
                sums.append([vectors.load(builder, place) for place in both])
            x, total, magnitude = _total(builder, old, sums, _words(builder, args[4]), shape)
            sign = builder.xor(old, total)
            vectors.store(builder, _assembled(builder, sign, x, total, magnitude, shape), data)
            return context.get_dummy_value()

        return types.void(cells, types.int64, terms, types.int64, types.int64, c), emit

# The same in NumPy, without what makes it fit into 16 bits.


def plain_sums(s: Any, a: Any, row_a: Any, b: Any, row_b: Any, phase: Any, rows: Any) -> None:
    """What `sums` does, with the banks of a record; its terms are the result."""
    first, taken = int(row_a) & 48, (int(row_b) + np.arange(rows)) & 63
    ea, eb = s.src_exponent[SRCA, a].astype(np.int32), s.src_exponent[SRCB, b].astype(np.int32)
    pa = s.src_slice[SRCA, a, phase & 1].astype(np.int32)
    pb = s.src_slice[SRCB, b, phase >> 1 & 1].astype(np.int32)
    shape = (len(taken), 2, _GROUP, 16)
    e = (ea[first : first + 16] + eb[taken][:, :, None]).reshape(shape)
    p = (pa[first : first + 16] * pb[taken][:, :, None]).reshape(shape)
    most = e.max(axis=2)
    d = np.minimum(most[:, :, None] - e, 14)
    total = ((p + (1 << d) + (p >> 31)) >> (d + 1)).sum(axis=2)
    for data, value in ((s.term_exponent, most), (s.term_sum, total)):
        data[:, : 16 * len(taken)] = value.swapaxes(0, 1).reshape(2, -1)


def _shifted(value: Any, distance: Any) -> Any:
    """Signed values shifted right by 0-31, half towards +infinity."""
    d = np.clip(distance, 0, 31)
    return (value + (1 << d >> 1)) >> d


def _term_at(value: Any, distance: Any) -> Any:
    """A signed term aligned, and then rounded to what a 16-bit Dst keeps of it."""
    return _shifted(_shifted(value, distance), 13) << 13


def plain_accumulate(cells: Any, keep: Any, terms: Any, at: Any, bias: Any, c: Any) -> None:
    """What `accumulate` does."""
    old, columns = cells.astype(np.int64) & int(keep), slice(int(at), int(at) + len(cells))
    exponents, totals = (each[:, columns].astype(np.int64) for each in terms)
    x = np.maximum(exponents + int(bias), max(int(bias), 0))
    xd = old & c.exponent_mask
    md = (((old >> c.exponent_bits) & c.fraction_mask) | c.hidden) << c.point
    most = np.maximum(x.max(axis=0), xd)
    negative = np.where(old >> 15, -1, 1)
    total = _term_at(np.where(xd != 0, md, 0), most - xd)
    total += negative * _term_at(np.where(x > 0, totals << 13, 0), most - x).sum(axis=0)
    magnitude = abs(total)
    leading = np.frexp(magnitude.astype(np.float64))[1] - 1
    m = _shifted(magnitude, leading - (23 - c.point))
    e = most + leading - 23 + (m >> (24 - c.point))
    bits = (m & c.fraction_mask) << c.exponent_bits | e & c.exponent_mask
    sign = (old >> 15) ^ (total < 0)
    some = (total != 0) & (e > 0) & (most > 0)
    cells[:] = np.where(some, sign << 15 | np.where(e >= c.limit, c.huge, bits), 0)


if not JIT:
    accumulate = plain_accumulate
