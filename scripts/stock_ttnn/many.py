"""Some 200 small operations of stock ttnn in one session; run by ttnn's own Python, without bhemu.

    python many.py [PART PARTS]

It prints a line for each: the name and "equal", "ran" (not compared), "differs", or what ttnn said.
It is for `bhemu simulator FOLDER --check`, which looks at what kernels do: many rather than large.
PART of PARTS, from 0, runs every PARTS-th operation. Exit code 1: one differs.
"""

import functools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import ttnn

RNG = np.random.default_rng(1)
TOLERANCE = 0.04  # relative and absolute: bf16 has 8 bits
CASES: dict[str, Callable[[Any], tuple[Any, Any]]] = {}

# By the names that ttnn has; where NumPy has the same name, or one here, the result is compared.
UNARY = """abs neg square exp exp2 expm1 sin cos sign floor ceil trunc round signbit isnan isinf
    isfinite logical_not sinh cosh cbrt deg2rad rad2deg identity relu relu6 sigmoid silu eqz nez gtz
    gez ltz lez frac softsign hardsigmoid tanhshrink hardtanh mish erf erfc hardshrink softshrink
    alt_complex_rotate90 swish"""
POSITIVE = "sqrt rsqrt reciprocal log log2 log10 log1p digamma"
NUMBER = """add subtract multiply divide gt lt ge le eq ne pow rsub maximum minimum leaky_relu
    heaviside relu_max relu_min fill"""
BINARY = """add subtract multiply divide gt lt ge le eq ne rsub maximum minimum logical_and
    logical_or logical_xor hypot squared_difference div_no_nan"""
WHOLE = """add subtract multiply eq gt maximum minimum bitwise_and bitwise_or bitwise_xor
    logical_and logical_or"""
ALIAS = {"gt": "greater", "ge": "greater_equal", "lt": "less", "le": "less_equal", "eq": "equal"}
ALIAS |= {"ne": "not_equal", "neg": "negative", "identity": "copy"}
BFLOAT16, FLOAT32, BLOCKS, INT32 = ttnn.bfloat16, ttnn.float32, ttnn.bfloat8_b, ttnn.int32
TILES, ROWS = ttnn.TILE_LAYOUT, ttnn.ROW_MAJOR_LAYOUT


def integers(*shape: int, most: int = 3, least: int | None = None) -> Any:
    """Small whole numbers."""
    low = -most if least is None else least
    return RNG.integers(low, most + 1, shape).astype(np.float32)


def put(device: Any, array: Any, dtype: Any = BFLOAT16, layout: Any = TILES) -> Any:
    """The array on the device, in DRAM."""
    whole = np.ascontiguousarray(array)
    if dtype == INT32:
        return ttnn.Tensor(whole.astype(np.int32), INT32).to(layout).to(device)
    return ttnn.to_dtype(ttnn.Tensor(whole).to(layout), dtype).to(device)


def get(tensor: Any) -> Any:
    """The tensor on the host."""
    rows = tensor.cpu().to(ROWS)
    if tensor.dtype in (BFLOAT16, BLOCKS, ttnn.bfloat4_b):
        rows = ttnn.to_dtype(rows, FLOAT32)
    return rows.to_numpy()


def case(name: str, call: Callable[..., Any], wanted: Any, *arrays: Any, **how: Any) -> None:
    """An operation `call` of tensors of the arrays; `wanted`: NumPy's function, or None."""

    def run(device: Any) -> tuple[Any, Any]:
        got = call(*(put(device, array, **how) for array in arrays))
        with np.errstate(all="ignore"):
            return get(got), None if wanted is None else wanted(*arrays)

    CASES[name] = run


def elementwise() -> None:
    """Of one, two and three tensors, of a tensor and a number, with broadcast, of other types."""

    def add(name: str, kind: str, *arrays: Any, number: tuple[float, ...] = (), **how: Any) -> None:
        found, operation = getattr(np, ALIAS.get(name, name), None), getattr(ttnn, name)
        wanted = found and (lambda *x: found(*x, *number))
        case(f"{name} {kind}", lambda *x: operation(*x, *number), wanted, *arrays, **how)

    for name in UNARY.split():
        add(name, "one", integers(32, 64))
    for name in POSITIVE.split():
        add(name, "one", integers(32, 64, most=9, least=1))
    for name in NUMBER.split():
        add(name, "number", integers(32, 64), number=(2.0,))
    for name in BINARY.split():
        add(name, "two", integers(32, 64), integers(32, 64, most=4, least=1))
    for name in ("add", "subtract", "multiply", "gt"):
        for kind, shape in {"row": (1, 64), "column": (32, 1), "scalar": (1, 1)}.items():
            add(name, kind, integers(32, 64), integers(*shape))
        for kind, dtype in {"fp32": FLOAT32, "bfp8": BLOCKS}.items():
            add(name, kind, integers(32, 64), integers(32, 64), dtype=dtype)
    for name in WHOLE.split():
        x, y = (integers(32, 64, most=99).astype(np.int32) for _ in "xy")
        add(name, "int32", x, y, dtype=INT32)
    x, y, z = integers(32, 64), integers(32, 64), integers(32, 64)
    case("where", ttnn.where, lambda x, y, z: np.where(x, y, z), np.abs(x), y, z)
    case("addcmul", ttnn.addcmul, lambda x, y, z: x + y * z, x, y, z)
    case("lerp", lambda x, y: ttnn.lerp(x, y, 0.5), lambda x, y: (x + y) / 2, x, y)
    case("clamp", lambda x: ttnn.clamp(x, -1, 2), lambda x: np.clip(x, -1, 2), x)
    for to in (FLOAT32, BLOCKS, INT32, ttnn.uint16, ttnn.uint32):
        positive = integers(32, 64, least=0)
        case(f"typecast {to}", lambda x, to=to: ttnn.typecast(x, to), lambda x: x, positive)


def reductions() -> None:
    """Over columns, rows and both; what orders or scans; normalisation."""
    for name in ("sum", "mean", "max", "min", "var", "std"):
        more = {"ddof": 1} if name in ("var", "std") else {}
        for axis in (-1, -2) if more else (-1, -2, None):
            call = functools.partial(getattr(ttnn, name), dim=axis, keepdim=True)
            wanted = functools.partial(getattr(np, name), axis=axis, keepdims=True, **more)
            case(f"{name} over {axis}", call, wanted, integers(64, 64))
    x = integers(1, 1, 64, 64)
    case("cumsum", lambda x: ttnn.cumsum(x, dim=2), lambda x: np.cumsum(x, 2), x, dtype=FLOAT32)
    case("cumprod", lambda x: ttnn.cumprod(x, dim=2), lambda x: np.cumprod(x, 2), np.sign(x))
    case("topk", lambda x: ttnn.topk(x, 32)[0], lambda x: -np.sort(-x)[..., :32], x)
    case("sort", lambda x: ttnn.sort(x)[0], np.sort, x)

    def last(x):
        return x.argmax(-1)

    case(
        "argmax",
        lambda x: ttnn.argmax(x, dim=-1),
        last,
        RNG.permuted(np.tile(np.arange(64.0, dtype=np.float32), (1, 1, 32, 1)), axis=-1),
        layout=ROWS,
    )

    def e(x):
        return np.exp(x) / np.exp(x).sum(-1, keepdims=True)

    case("softmax", lambda x: ttnn.softmax(x, dim=-1), e, x)
    case("softmax in place", ttnn.softmax_in_place, e, x)
    case(
        "layer_norm",
        ttnn.layer_norm,
        lambda x: (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-12),
        x,
    )
    case("rms_norm", ttnn.rms_norm, lambda x: x / np.sqrt((x * x).mean(-1, keepdims=True)), x)


def movement() -> None:
    """What moves data and computes nothing, on tiles and on rows."""

    def same(x):
        return x

    edge = [(0, 0), (0, 32), (0, 32)]
    for kind, how in {"tiles": {}, "rows": {"dtype": FLOAT32, "layout": ROWS}}.items():
        x, y = integers(2, 64, 96, most=99), integers(2, 64, 96, most=99)
        one = {
            "clone": (ttnn.clone, same),
            "L1": (lambda x: ttnn.to_memory_config(x, ttnn.L1_MEMORY_CONFIG), same),
            "transpose": (lambda x: ttnn.transpose(x, -2, -1), lambda x: x.swapaxes(1, 2)),
            "permute": (lambda x: ttnn.permute(x, (1, 0, 2)), lambda x: x.transpose(1, 0, 2)),
            "slice": (lambda x: ttnn.slice(x, [0, 32, 32], [2, 64, 96]), lambda x: x[:, 32:, 32:]),
            "reshape": (lambda x: ttnn.reshape(x, (2, 96, 64)), lambda x: x.reshape(2, 96, 64)),
            "repeat": (lambda x: ttnn.repeat(x, (1, 2, 1)), lambda x: np.tile(x, (1, 2, 1))),
            "split": (lambda x: ttnn.split(x, 32, 1)[1], lambda x: x[:, 32:]),
            "pad": (lambda x: ttnn.pad(x, edge, 0.0), lambda x: np.pad(x, edge)),
            "roll": (lambda x: ttnn.roll(x, 1, 1), lambda x: np.roll(x, 1, 1)),
        }
        for name, (call, wanted) in one.items():
            case(f"{name} {kind}", call, wanted, x, **how)
        for axis in (0, 1, 2):

            def joined(x, y, a=axis):
                return np.concatenate([x, y], axis=a)

            def call(x, y, a=axis):
                return ttnn.concat([x, y], dim=a)

            case(f"concat {axis} {kind}", call, joined, x, y, **how)

        def stacked(x, y):
            return np.stack([x, y])

        case(f"stack {kind}", lambda x, y: ttnn.stack([x, y], 0), stacked, x, y, **how)
    x, y = integers(64, 128, most=99), integers(64, 128, most=99)
    case("tilize", lambda x: ttnn.to_layout(x, TILES), same, x, dtype=FLOAT32, layout=ROWS)
    case("untilize", lambda x: ttnn.to_layout(x, ROWS), same, x)
    for name, (rows, columns) in {"HEIGHT": (2, 1), "WIDTH": (1, 2), "BLOCK": (2, 2)}.items():
        grid, plan = ttnn.CoreGrid(y=rows, x=columns), getattr(ttnn.ShardStrategy, name)
        config = ttnn.create_sharded_memory_config(x.shape, core_grid=grid, strategy=plan)
        there = functools.partial(ttnn.to_memory_config, memory_config=config)
        case(f"shard {name}", there, same, x)
        case(f"add sharded {name}", lambda x, y, f=there: ttnn.add(f(x), f(y)), np.add, x, y)


def products() -> None:
    """matmul and linear: shapes, types, fidelities, transposed operands."""
    for m, k, n in ((32, 32, 32), (64, 64, 64), (64, 96, 32), (32, 256, 64), (128, 64, 128)):
        x, y = integers(m, k, most=1), integers(k, n, most=1)
        case(f"matmul {m} {k} {n}", ttnn.matmul, np.matmul, x, y)
    x, y = integers(64, 96, most=1), integers(96, 64, most=1)
    case("matmul fp32", ttnn.matmul, np.matmul, x, y, dtype=FLOAT32)
    case("matmul bfp8", ttnn.matmul, np.matmul, x, y, dtype=BLOCKS)
    case(
        "matmul transposed",
        lambda x, y: ttnn.matmul(x, y, transpose_b=True),
        lambda x, y: x @ y.T,
        x,
        x.copy(),
    )
    case(
        "matmul batch",
        ttnn.matmul,
        np.matmul,
        integers(2, 32, 64, most=1),
        integers(2, 64, 32, most=1),
    )
    for name in ("LoFi", "HiFi2", "HiFi3", "HiFi4"):
        config = ttnn.WormholeComputeKernelConfig(math_fidelity=getattr(ttnn.MathFidelity, name))

        def call(x, y, c=config):
            return ttnn.matmul(x, y, compute_kernel_config=c)

        case(f"matmul {name}", call, np.matmul, x, y)
    case(
        "linear bias",
        lambda x, y, b: ttnn.linear(x, y, bias=b),
        lambda x, y, b: x @ y + b,
        x,
        y,
        integers(1, 64),
    )
    case(
        "linear relu",
        lambda x, y: ttnn.linear(x, y, activation="relu"),
        lambda x, y: np.maximum(x @ y, 0),
        x,
        y,
    )


def told(name: str, device: Any) -> str:
    """What an operation did."""
    try:
        got, wanted = CASES[name](device)
    except Exception as problem:
        return f"none: {str(problem).strip().splitlines()[0][:90]}"
    if wanted is None:
        return "ran"
    wanted = np.asarray(wanted, np.float32)
    equal = got.size == wanted.size and np.allclose(
        got.reshape(wanted.shape).astype(np.float32), wanted, TOLERANCE, TOLERANCE
    )
    return "equal" if equal else "differs"


def main(part: int = 0, parts: int = 1) -> int:
    """Every operation on one device; 1 when one differs."""
    for family in (elementwise, reductions, movement, products):
        family()
    device, results = ttnn.open_device(device_id=0), []
    for name in list(CASES)[part::parts]:
        results.append(told(name, device))
        print(f"{name}: {results[-1]}", flush=True)
    ttnn.close_device(device)
    counts = {
        word: sum(r.startswith(word) for r in results)
        for word in ("equal", "ran", "differs", "none")
    }
    print(f"{len(results)} operations: {counts}")
    return int(counts["differs"] > 0)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
