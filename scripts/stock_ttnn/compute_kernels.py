"""Random compute kernels on tt-metal's kernel API: tiles of three buffers to a fourth.

Each of up to four rounds fills up to four tiles of Dst (copied, transposed, added, multiplied,
broadcast, reduced, matmul), changes them with the vector unit, and packs them into the output or an
intermediate buffer, with ReLU, out of order or added to what is there. Left out is what ttsim and
bhemu are known to do differently (docs/models.md, MOVB2D-WIDE).
"""

import random
from dataclasses import dataclass, field

IN0, IN1, SCALER, OUT, MID = 0, 1, 2, 16, 24  # circular buffers
MOST = 4  # tiles of Dst
HEADERS = (
    "compute_kernel_hw_startup eltwise_binary tile_move_copy bcast matmul reduce transpose pack"
    " reg_api reconfig_data_format cb_api"
).split()
VECTOR_HEADERS = (
    "eltwise_binary_sfpu binary_max_min copy_dest_values compute_kernel_api add_int_sfpu"
    " sub_int_sfpu mul_int_sfpu binary_bitwise_sfpu binary_shift transpose_dest"
).split()
UNARY_HEADERS = (
    "exp recip sqrt rsqrt relu negative fill binop_with_scalar rounding comp isinf_isnan clamp"
    " hardtanh threshold prelu identity bitwise bitwise_not shift logical_not"
).split()

# What follows {d} in the call; the function's initialisation is its name with _init.
UNARY = {
    "exp_tile": "",
    "recip_tile": "",
    "sqrt_tile": "",
    "rsqrt_tile": "",
    "relu_tile": "",
    "relu_max_tile": ", 0x40000000u",
    "leaky_relu_tile": ", 0x3dcccccdu",
    "abs_tile": "",
    "sign_tile": "",
    "square_tile": "",
    "log_tile": "",
    "sigmoid_tile": "",
    "signbit_tile": "",
    "heaviside_tile": ", 0x3f000000u",
    "power_iterative_tile": ", 3",
    "negative_tile": "",
    "fill_tile": ", 1.5f",
    "gtz_tile": "",
    "eqz_tile": "",
    "isinf_tile": "",
    "isfinite_tile": "",
    "clamp_tile": ", 0xbf000000u, 0x3f400000u",
    "hardtanh_tile": ", 0xbf000000u, 0x3f400000u",
    "threshold_tile": ", 0x3f000000u, 0x40000000u",
    "prelu_tile": ", 0x3e800000u",
    "identity_tile": "",
    "transpose_dest": "",
    "binop_with_scalar_tile_init();mul_unary_tile": ", 0x3fa00000u",
    "binop_with_scalar_tile_init();add_unary_tile": ", 0x3e200000u",
    "binop_with_scalar_tile_init();rsub_unary_tile": ", 0x3f800000u",
    "rounding_op_tile_init();floor_tile": "",
    "rounding_op_tile_init();ceil_tile": "",
    "rounding_op_tile_init();trunc_tile": "",
}
BINARY = ("add_binary", "sub_binary", "mul_binary", "rsub_binary", "binary_max", "binary_min")
INT_UNARY = {
    "negative_tile_init();negative_tile_int32": "",
    "abs_tile_init();abs_tile_int32": "",
    "bitwise_and_tile_init();bitwise_and_tile<DataFormat::Int32>": ", 0x0ff0ff0fu",
    "bitwise_or_tile_init();bitwise_or_tile<DataFormat::Int32>": ", 0x00f000f0u",
    "bitwise_xor_tile_init();bitwise_xor_tile<DataFormat::Int32>": ", 0x00f012f0u",
    "bitwise_not_tile": "",
    "left_shift_tile_init();left_shift_tile<DataFormat::Int32>": ", 3",
    "right_shift_tile_init();right_shift_tile<DataFormat::Int32>": ", 5",
    "relu_tile_init();relu_tile_int32": "",
    "gtz_tile_init();gtz_tile_int32": "",
    "eqz_tile_init();eqz_tile_int32": "",
    "ltz_tile_init();ltz_tile_int32": "",
}
INT_BINARY = {
    "add_int_tile_init();add_int_tile<DataFormat::Int32>",
    "sub_int_tile_init();sub_int_tile<DataFormat::Int32>",
    "mul_int_tile_init<DataFormat::Int32>();mul_int_tile<DataFormat::Int32>",
    "binary_bitwise_tile_init();bitwise_and_binary_tile<DataFormat::Int32>",
    "binary_bitwise_tile_init();bitwise_xor_binary_tile<DataFormat::Int32>",
    "binary_max_int32_tile_init();binary_max_int32_tile",
    "binary_min_int32_tile_init();binary_min_int32_tile",
    "binary_shift_tile_init();binary_left_shift_tile<DataFormat::Int32>",
}


def call(name, arguments):
    """The call, behind the initialisation that the name brings or that is named after it."""
    if ";" not in name:
        name = f"{name}_init();{name}"
    return f"{name}({arguments});"


@dataclass
class Program:
    """Formats and tiles of the buffers, settings of the compute kernel, its statements."""

    seed: int
    vector: bool  # the vector unit is used
    formats: dict
    tiles: dict
    whole: bool  # integers
    wide: bool  # 32-bit Dst
    fidelity: int
    approximate: bool
    full: bool  # the two halves of Dst as one
    precise: bool  # bfp8 packed precisely
    scale: float
    direct: set = field(default_factory=set)  # buffers that go to Dst without Src
    lines: list = field(default_factory=list)
    made: int = 0  # tiles of OUT
    pools: bool = False  # a maximum is taken, for which scalers must be 1

    def source(self):
        """The kernel."""
        heads = [f"api/compute/{name}.h" for name in HEADERS]
        if self.vector:
            heads += [f"api/compute/{name}.h" for name in VECTOR_HEADERS]
            heads += [f"api/compute/eltwise_unary/{name}.h" for name in UNARY_HEADERS]
        text = "".join(f'#include "{head}"\n' for head in heads)
        return text + "void kernel_main() {\n" + "".join(f"  {x}\n" for x in self.lines) + "}\n"


class _Rounds:
    """Writes the rounds of one program."""

    def __init__(self, program, rng):
        self.p, self.rng, self.into = program, rng, OUT

    def write(self):
        p, rng = self.p, self.rng
        waits = "".join(f"cb_wait_front({b}, {p.tiles[b]});" for b in (IN0, IN1, SCALER))
        p.lines += [f"compute_kernel_hw_startup({IN0}, {IN1}, {OUT});", waits]
        rounds = rng.randrange(1, 5)
        for number in range(rounds):
            fits = not p.whole and MID not in p.tiles and number < rounds - 1
            self.into = MID if fits and rng.random() < 0.5 else OUT
            n = rng.randrange(1, MOST + 1)
            p.lines += ["tile_regs_acquire();"]
            for d in range(n):
                p.lines += self._fill(d)
            changes = rng.choice((0, 0, 1, 1, 2, 3)) + p.whole if p.vector else 0
            p.lines += [self._change(n) for _ in range(changes)]
            p.lines += ["tile_regs_commit();", "tile_regs_wait();", *self._pack(n)]
        return p

    def _buffer(self, *, fpu):
        known = [b for b in (IN0, IN1, MID) if b in self.p.tiles]
        known = [b for b in known if not (fpu and b in self.p.direct)]
        return self.rng.choice(known) if known else None

    def _tile(self, buffer):
        return self.rng.randrange(self.p.tiles[buffer])

    def _fill(self, d):
        x, y = self._buffer(fpu=True), self._buffer(fpu=True)
        kinds = ["copy", "binary", "binary", "bcast", "matmul", "transpose", "reuse"]
        if SCALER not in self.p.direct:
            kinds.append("reduce")
        if not self.p.wide:
            kinds.append("unary_bcast")
        kind = "copy" if x is None else self.rng.choice(kinds)
        if kind == "copy":
            return self._copy(self._buffer(fpu=False), d)
        return getattr(self, f"_{kind}")(x, y, d)

    def _copy(self, x, d):
        then = f"copy_tile({x}, {self._tile(x)}, {d});"
        return [f"reconfig_data_format_srca({x});", f"copy_init({x});", then]

    def _transpose(self, x, y, d):
        then = f"transpose_tile({x}, {self._tile(x)}, {d});"
        return [f"reconfig_data_format_srca({x});", f"transpose_init({x});", then]

    def _binary(self, x, y, d):
        op = self.rng.choice(("add", "sub", "mul"))
        lines = [f"reconfig_data_format({x}, {y});"]
        for more in ("false", "true")[: self.rng.choice((1, 1, 2))]:
            lines.append(f"{op}_init({x}, {y}, {more});")
            lines.append(f"{op}_tiles({x}, {y}, {self._tile(x)}, {self._tile(y)}, {d});")
        return lines

    def _bcast(self, x, y, d):
        op, how = (
            self.rng.choice(("add", "sub", "mul")),
            self.rng.choice(("rows", "cols", "scalar")),
        )
        then = f"{op}_tiles_bcast_{how}({x}, {y}, {self._tile(x)}, {self._tile(y)}, {d});"
        return [f"reconfig_data_format({x}, {y});", f"{op}_bcast_{how}_init({x}, {y});", then]

    def _unary_bcast(self, x, y, d):
        how = f"<BroadcastType::{self.rng.choice(('ROW', 'COL', 'SCALAR'))}>"
        begin = [f"reconfig_data_format({x}, {x});", f"unary_bcast_init{how}({x});"]
        then = f"unary_bcast{how}({x}, {self._tile(x)}, {d});"
        return [*begin, then, f"unary_bcast_uninit{how}({x});"]

    def _matmul(self, x, y, d):
        turned = self.rng.choice((0, 0, 1))
        lines = [f"reconfig_data_format({y}, {x});", f"matmul_init({x}, {y}, {turned});"]
        for _ in range(self.rng.randrange(1, 4)):
            lines.append(f"matmul_tiles({x}, {y}, {self._tile(x)}, {self._tile(y)}, {d});")
        return lines

    def _reduce(self, x, y, d):
        pool, along = (
            self.rng.choice(("SUM", "AVG", "MAX")),
            self.rng.choice(("ROW", "COL", "SCALAR")),
        )
        self.p.pools |= pool == "MAX"
        order = (SCALER, x) if along == "ROW" and pool != "MAX" else (x, SCALER)
        what = f"<PoolType::{pool}, ReduceDim::REDUCE_{along}>"
        lines = [f"reconfig_data_format({order[0]}, {order[1]});"]
        lines.append(f"reduce_init{what}({x}, {SCALER}, {self.into});")
        for _ in range(self.rng.randrange(1, 3)):
            lines.append(f"reduce_tile{what}({x}, {SCALER}, {self._tile(x)}, 0, {d});")
        return [*lines, "reduce_uninit();"]

    def _reuse(self, x, y, d):
        op, to = self.rng.choice(("add", "sub", "mul")), self.rng.choice("AB")
        how = f"<EltwiseBinaryReuseDestType::DEST_TO_SRC{to}>"
        lines = [*self._copy(x, d), f"reconfig_data_format({y}, {y});"]
        lines.append(f"{op}_reuse_dest_init{how}({y});")
        return [*lines, f"{op}_reuse_dest_tiles{how}({y}, {self._tile(y)}, {d});"]

    def _change(self, n):
        p, rng = self.p, self.rng
        if n > 1 and rng.random() < (0.5 if p.whole else 0.3):
            d, e = rng.sample(range(n), 2)
            if p.whole:
                return call(rng.choice(sorted(INT_BINARY)), f"{d}, {e}, {d}")
            name = rng.choice((*BINARY, "copy"))
            if name == "copy":
                kind = "Float32" if p.wide else "Float16_b"
                return f"copy_dest_values_init();copy_dest_values<DataFormat::{kind}>({e}, {d});"
            return call(f"{name}_tile", f"{d}, {e}, {d}")
        name, more = rng.choice(sorted((INT_UNARY if p.whole else UNARY).items()))
        if name == "transpose_dest" and p.wide:  # with the faces, of 32-bit datums
            name = "transpose_dest_init<true, true>();transpose_dest<true, true>"
        return call(name, f"{rng.randrange(n)}{more}")

    def _pack(self, n):
        p, rng, to = self.p, self.rng, self.into
        threshold = rng.choice(
            (None, None, "zero()", "min_threshold(0x3f00)", "max_threshold(0x3f00)")
        )
        relu = [] if threshold is None or p.whole else [threshold]
        order = list(range(n))
        lines = [f"pack_reconfig_data_format({to});"]
        lines += [f"pack_relu_config(ReluConfig::{r});" for r in relu]
        lines.append(f"cb_reserve_back({to}, {n});")
        if rng.random() < 0.4 and not p.whole:
            rng.shuffle(order)
            lines += [f"pack_tile<true>({d}, {to}, {i});" for i, d in enumerate(order)]
            if rng.random() < 0.4 and p.formats[to] != "bfp8":
                again = [f"pack_tile<true>({d}, {to}, {i});" for i, d in enumerate(order[::-1])]
                lines += ["pack_reconfig_l1_acc(1);", *again, "pack_reconfig_l1_acc(0);"]
        else:
            lines += [f"pack_tile({d}, {to});" for d in order]
        lines += [f"cb_push_back({to}, {n});"]
        lines += ["pack_relu_config(ReluConfig::none());" for _ in relu] + ["tile_regs_release();"]
        if to == MID:
            p.tiles[MID] = n
            return [*lines, f"cb_wait_front({MID}, {n});"]
        p.made += n
        return lines


def make(seed, *, vector):
    """The program of a seed, with the vector unit or without."""
    rng = random.Random(seed)
    whole, wide = vector and rng.random() < 0.2, rng.random() < 0.5
    inputs = ("s32",) if whole else ("bf16", "bf16", "f32", "bfp8", "bfp4")
    outputs = ("s32",) if whole else ("bf16", "bf16", "f32", "bfp8")
    formats = {b: rng.choice(inputs) for b in (IN0, IN1)} | {
        b: rng.choice(outputs) for b in (MID, OUT)
    }
    formats[SCALER] = "s32" if whole else rng.choice(("bf16", "bf16", "f32"))
    tiles = {IN0: rng.randrange(1, 5), IN1: rng.randrange(1, 5), SCALER: 1}
    program = Program(
        seed,
        vector,
        formats,
        tiles,
        whole,
        wide or whole,
        rng.choice((0, 2, 3, 4)),
        rng.random() < 0.3,
        rng.random() < 0.2,
        rng.random() < 0.3,
        rng.choice((10, 1000, 1 << 20, 1 << 30) if whole else (1.0, 1.0, 4.0, 0.1, 100.0)),
    )
    if whole or (wide and rng.random() < 0.5):
        program.direct = {b for b, kind in formats.items() if kind in ("f32", "s32") and b != OUT}
    return _Rounds(program, rng).write()
