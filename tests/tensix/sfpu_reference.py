"""Literal scalar model of the vector unit on Python integers, one lane at a time.

It follows the text of the arithmetic contract (SFPU state, fused multiply-add, SFPU instructions)
and shares nothing with the package.
"""

from itertools import product

from sfpu_formats import (
    LANES,
    M32,
    MAGNITUDE,
    SIGN,
    exponent,
    f32,
    float_of_integer,
    float_stochastic,
    fma,
    fraction,
    key,
    reciprocal,
    shifted,
    signed,
    step,
    stochastic,
    table8,
    table16,
)

from bhemu.tensix.state import State


class Model:
    """The vector unit's registers as lists; a method per instruction."""

    def __init__(self, s: State) -> None:
        self.reg = [[int(v) for v in row] for row in s.lreg]
        self.cc = [int(v) for v in s.cc]
        self.cc_en, self.config = int(s.cc_en[0]), int(s.lane_config[0])
        depth = range(int(s.cc_depth[0]))
        self.stack = [(int(s.cc_stack_en[i]), [int(v) for v in s.cc_stack[i]]) for i in depth]
        self.prng = [int(v) for v in s.prng]
        self.dst, self.valid = s.dst.astype(int).tolist(), [int(v) for v in s.dst_valid]

    def differences(self, s: State) -> list[str]:
        """What differs from the state, by name."""
        depth = len(self.stack)
        pairs = {
            "LReg": (s.lreg.tolist(), self.reg),
            "cc": (s.cc.tolist(), self.cc),
            "cc_en": (int(s.cc_en[0]), self.cc_en),
            "depth": (int(s.cc_depth[0]), depth),
            "stack": (s.cc_stack[:depth].tolist(), [c for _, c in self.stack]),
            "stack_en": (s.cc_stack_en[:depth].tolist(), [e for e, _ in self.stack]),
            "prng": (s.prng.tolist(), self.prng),
            "dst": (s.dst.tolist(), self.dst),
            "valid": (s.dst_valid.tolist(), self.valid),
        }
        return [name for name, (got, want) in pairs.items() if got != want]

    def on(self) -> list[int]:
        return [i for i in LANES if not self.cc_en or self.cc[i]]

    def put(self, d: int, values: list[int], flags: list[bool] | None = None) -> None:
        for i in self.on():
            self.reg[d][i] = values[i] & M32
            if flags is not None:
                self.cc[i] = int(flags[i])

    def mad(self, d: int, x: list[int], y: list[int], z: list[int], mod: int = 0) -> None:
        flip_x, flip_z = SIGN * (mod & 1), SIGN * (mod >> 1)
        self.put(d, [fma(x[i] ^ flip_x, y[i], z[i] ^ flip_z) for i in LANES])

    def SFPMAD(self, m: int, d: int, c: int, b: int, a: int) -> None:
        """Bits 2 and 3: LReg[7] names the first factor and the destination of each lane."""
        named = [v & 15 for v in self.reg[7]]
        x = [self.reg[named[i]][i] for i in LANES] if m & 4 else self.reg[a]
        if not m & 8:
            self.mad(d, x, self.reg[b], self.reg[c], m & 3)
            return
        before = list(self.reg[d])
        self.mad(d, x, self.reg[b], self.reg[c], m & 3)
        result, self.reg[d] = self.reg[d], before
        for i in self.on():
            if named[i] < 8:
                self.reg[named[i]][i] = result[i]

    SFPADD = SFPMAD

    def SFPMUL(self, m: int, d: int, c: int, b: int, a: int) -> None:
        self.mad(d, self.reg[a], self.reg[b], [0] * 32, m)

    def SFPADDI(self, m: int, d: int, imm: int) -> None:
        self.mad(d, [imm << 16] * 32, [0x3F800000] * 32, self.reg[d])

    def SFPMULI(self, m: int, d: int, imm: int) -> None:
        self.mad(d, [imm << 16] * 32, self.reg[d], [0] * 32)

    def SFPARECIP(self, m: int, d: int, c: int, imm: int) -> None:
        self.put(d, [reciprocal(x) for x in self.reg[c]])

    def SFPIADD(self, m: int, d: int, c: int, imm: int) -> None:
        imm -= (imm & 0x800) << 1
        second = [imm if m & 1 else -v if m & 2 else v for v in self.reg[d]]
        out = [x + y & M32 for x, y in zip(self.reg[c], second, strict=True)]
        flags = [signed(v) >= 0 if m & 8 else signed(v) < 0 for v in out]
        self.put(d, out, flags if m & 8 or not m & 4 else None)

    def SFPSHFT(self, m: int, d: int, c: int, imm: int) -> None:
        source = self.reg[c if m & 4 else d]
        by = [imm - ((imm & 0x800) << 1) if m & 1 else signed(v) for v in self.reg[c]]
        self.put(d, [shifted(x, n, bool(m & 2)) for x, n in zip(source, by, strict=True)])

    def bitwise(self, d: int, other: int, c: int, op: str) -> None:
        f = {"&": int.__and__, "|": int.__or__, "^": int.__xor__}[op]
        self.put(d, [f(x, y) for x, y in zip(self.reg[other], self.reg[c], strict=True)])

    def SFPAND(self, m: int, d: int, c: int, imm: int) -> None:
        self.bitwise(d, imm if m else d, c, "&")

    def SFPOR(self, m: int, d: int, c: int, imm: int) -> None:
        self.bitwise(d, imm if m else d, c, "|")

    def SFPXOR(self, d: int, c: int) -> None:
        self.bitwise(d, d, c, "^")

    def SFPNOT(self, d: int, c: int) -> None:
        self.put(d, [~x for x in self.reg[c]])

    def SFPLZ(self, m: int, d: int, c: int) -> None:
        source = [x & MAGNITUDE if m & 4 else x for x in self.reg[c]]
        flags = [(x != 0) != bool(m & 8) for x in source]
        self.put(d, [32 - x.bit_length() for x in source], flags if m & 2 else None)

    def SFPABS(self, m: int, d: int, c: int) -> None:
        def one(x: int) -> int:
            nan = x >> 31 and exponent(x) == 255 and fraction(x)
            return (x if nan else x & MAGNITUDE) if m else abs(signed(x))

        self.put(d, [one(x) for x in self.reg[c]])

    def SFPMUL24(self, m: int, d: int, c: int, b: int, a: int) -> None:
        full = [
            (x & 0x7FFFFF) * (y & 0x7FFFFF) for x, y in zip(self.reg[a], self.reg[b], strict=True)
        ]
        self.put(d, [v >> 23 if m else v & 0x7FFFFF for v in full])

    def SFPSETCC(self, m: int, d: int, c: int, imm: int) -> None:
        for i in self.on():
            v = signed(self.reg[c][i])
            self.cc[i] = int({0: v < 0, 2: v != 0, 4: v >= 0, 6: v == 0}[m])

    def SFPENCC(self, m: int, d: int, imm: int) -> None:
        self.cc = [imm >> 1 & 1 if m else 1] * 32
        self.cc_en = imm & 1 if m else self.cc_en

    def SFPPUSHC(self, m: int, d: int) -> None:
        self.stack.append((self.cc_en, list(self.cc)))

    def SFPPOPC(self, m: int, d: int) -> None:
        self.cc_en, self.cc = self.stack.pop()

    def SFPCOMPC(self, d: int) -> None:
        top = self.stack[-1][1] if self.stack else [1] * 32
        self.cc = [t & 1 - c for t, c in zip(top, self.cc, strict=True)]

    def compare(self, m: int, d: int, c: int, greater: bool) -> None:
        result = [
            (key(x) > key(y)) == greater for x, y in zip(self.reg[d], self.reg[c], strict=True)
        ]
        if m == 1:
            self.put(d, list(self.reg[d]), result)
        else:
            self.put(d, [M32 * r for r in result])

    def SFPGT(self, m: int, d: int, c: int) -> None:
        self.compare(m, d, c, True)

    def SFPLE(self, m: int, d: int, c: int) -> None:
        self.compare(m, d, c, False)

    def SFPDIVP2(self, m: int, d: int, c: int, imm: int) -> None:
        def one(x: int) -> int:
            e = exponent(x)
            e = (e if e == 255 else e + imm & 255) if m else imm & 255
            return x & 0x807FFFFF | e << 23

        self.put(d, [one(x) for x in self.reg[c]])

    def SFPEXEXP(self, m: int, d: int, c: int) -> None:
        out = [exponent(x) - (0 if m & 1 else 127) for x in self.reg[c]]
        self.put(d, out, {2: [v < 0 for v in out], 10: [v >= 0 for v in out]}.get(m))

    def SFPEXMAN(self, m: int, d: int, c: int) -> None:
        self.put(d, [fraction(x) + (0 if m else 1 << 23) for x in self.reg[c]])

    def SFPSETEXP(self, m: int, d: int, c: int, imm: int) -> None:
        e = [imm if m == 1 else exponent(y) if m == 2 else y & 255 for y in self.reg[d]]
        self.put(d, [self.reg[c][i] & 0x807FFFFF | e[i] << 23 for i in LANES])

    def SFPSETMAN(self, m: int, d: int, c: int, imm: int) -> None:
        f = [imm << 11 if m else fraction(y) for y in self.reg[d]]
        self.put(d, [self.reg[c][i] & 0xFF800000 | f[i] for i in LANES])

    def SFPSETSGN(self, m: int, d: int, c: int, imm: int) -> None:
        sign = [imm << 31 if m else y & SIGN for y in self.reg[d]]
        self.put(d, [self.reg[c][i] & MAGNITUDE | sign[i] for i in LANES])

    def random(self, i: int) -> int:
        """AdvancePRNG(Lane): the state before the step (VectorUnit)."""
        value = self.prng[i]
        self.prng[i] = step(value)
        return value

    def SFPCAST(self, m: int, d: int, c: int) -> None:
        def negated(x: int) -> int:
            return (SIGN if m == 3 else 0) | -x & (MAGNITUDE if m == 3 else M32)

        out = list(self.reg[c])
        for i in self.on():
            x = out[i]
            if m == 0:
                out[i] = float_of_integer(x)
            elif m == 1:
                out[i] = float_stochastic(x, self.random(i))
            else:
                out[i] = negated(x) if x & SIGN else x
        self.put(d, out)

    def SFP_STOCH_RND(self, m: int, d: int, c: int, b: int, imm: int, rnd: int) -> None:
        out = list(self.reg[c])
        for i in self.on():
            bits = self.random(i) & 0x7FFFFF
            bits = {0: 0x400000, 1: bits, 2: 0x7FFFFF}[rnd]
            by = imm if m >= 8 else self.reg[b][i] & 31
            out[i] = stochastic(m & 7, out[i], bits, by)
        self.put(d, out)

    def SFPMOV(self, m: int, d: int, c: int) -> None:
        lanes, source = list(LANES) if m == 2 else self.on(), list(self.reg[c])
        for i in lanes:
            self.reg[d][i] = self.prng[i] if m == 8 else source[i] ^ SIGN * (m == 1)
            self.prng[i] = step(self.prng[i]) if m == 8 else self.prng[i]

    def SFPSWAP(self, m: int, d: int, c: int) -> None:
        smaller = {0: LANES, 1: LANES, 2: range(16), 3: [i for i in LANES if not i & 8], 9: ()}[m]
        for i in self.on():
            kc, kd = key(self.reg[c][i]), key(self.reg[d][i])
            swap = kc < kd if i in smaller else kc >= kd
            if not (m == 0 or swap != bool(self.config & 0x100)):
                continue
            for off in (0, 4) if self.config & 4 else (0,):
                vc, vd = self.reg[off + c][i], self.reg[off + d][i]
                if off + c < 8:
                    self.reg[off + c][i] = vd
                if off + d < 8:
                    self.reg[off + d][i] = vc

    def SFPTRANSP(self, d: int) -> None:
        old, on = [list(r) for r in self.reg], self.on()
        for group, i, j, k in product((0, 4), range(4), range(4), range(8)):
            if 8 * j + k in on:
                self.reg[group + i][8 * j + k] = old[group + j][8 * i + k]

    def SFPSHFT2(self, m: int, d: int, c: int, imm: int) -> None:
        v = self.reg[c]
        if m == 5:
            self.put(d, [shifted(self.reg[imm][i], signed(v[i]), False) for i in LANES])
        else:
            self.put(d, [v[i - 1] if i & 7 else v[i + 7] if m == 3 else 0 for i in LANES])

    def SFPLUT(self, m: int, d: int) -> None:
        x = self.reg[3]
        size = [v & MAGNITUDE for v in x]
        entry = [self.reg[0 if v < 0x3F800000 else 1 if v < 0x40000000 else 2] for v in size]
        out = [
            fma(table8(entry[i][i] >> 8 & 255), size[i], table8(entry[i][i] & 255)) for i in LANES
        ]
        self.put(d, [out[i] & MAGNITUDE | x[i] & SIGN for i in LANES])

    def SFPLUTFP32(self, m: int, d: int) -> None:
        def one(lane: int) -> int:
            size = self.reg[3][lane] & MAGNITUDE
            x = 99.0 if exponent(size) == 255 else f32(size)
            i = 0 if x < 1 else 1 if x < 2 else 2
            high = 16 * (0.5 <= x < 1 or 1.5 <= x < 2 or x >= 3)
            a, c = self.reg[i][lane] >> high & 0xFFFF, self.reg[4 + i][lane] >> high & 0xFFFF
            return fma(table16(a), size, table16(c))

        self.put(d, [one(i) for i in LANES])
