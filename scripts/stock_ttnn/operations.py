"""Operations of stock ttnn, compared with NumPy; run by ttnn's own Python, which has no bhemu.

python operations.py NAME...     one line each: the name and "equal", else what differs
"""

import sys

import numpy as np
import ttnn

RNG = np.random.default_rng(1)


def integers(rows, columns, most=3):
    """Small whole numbers: every order of summation gives the same."""
    return RNG.integers(-most, most + 1, (rows, columns)).astype(np.float32)


def put(device, array, dtype=ttnn.bfloat16):
    """The array in tiles, in DRAM."""
    tiled = ttnn.Tensor(np.ascontiguousarray(array)).to(ttnn.TILE_LAYOUT)
    return ttnn.to_dtype(tiled, dtype).to(device)


def get(tensor):
    """The tensor as float32 on the host."""
    return ttnn.to_dtype(tensor.cpu().to(ttnn.ROW_MAJOR_LAYOUT), ttnn.float32).to_numpy()


def add(device):
    a, b = integers(64, 96, 100), integers(64, 96, 100)
    return get(ttnn.add(put(device, a), put(device, b))), a + b


def clone(device):
    a = integers(64, 96, 200)
    return get(ttnn.clone(put(device, a))), a


def matmul(device):
    """Four tiles, operands sent by multicast."""
    a, b = integers(64, 64), integers(64, 64, 1)
    return get(ttnn.matmul(put(device, a), put(device, b))), a @ b


def matmul_fp32(device):
    a, b = integers(64, 96), integers(96, 64)
    full = ttnn.float32
    return get(ttnn.matmul(put(device, a, full), put(device, b, full))), a @ b


def tilize(device):
    a = integers(64, 96, 500)
    rows = ttnn.Tensor(a).to(device)
    return get(ttnn.to_layout(rows, ttnn.TILE_LAYOUT)), a


OPERATIONS = {f.__name__: f for f in (clone, add, matmul, matmul_fp32, tilize)}


def main(names):
    """Every operation on a device opened for it; 1 when one differs."""
    wrong = 0
    for name in names:
        device = ttnn.open_device(device_id=0)
        got, wanted = OPERATIONS[name](device)
        ttnn.close_device(device)
        differ = int((got != wanted).sum())
        wrong += differ != 0
        print(f"{name}: {f'{differ} of {wanted.size} differ' if differ else 'equal'}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or OPERATIONS))
