"""Operations of stock ttnn over linked chips, compared with NumPy; run by ttnn's own Python.

python mesh.py [FABRIC [CHIPS]]     one line each: the name and "equal", else "differ"

CHIPS: how many there are, default: 2.

FABRIC: a name of ttnn.FabricConfig, as FABRIC_2D; default: FABRIC_1D. FABRIC_2D goes without
point_to_point: its kernels in ttnn 0.81.1 write a packet's route as a one-dimensional fabric reads
it (fabric_set_unicast_route of LowLatencyPacketHeader), and a router of two dimensions drops such a
packet, so that both ends wait for ever.
"""

import sys

import numpy as np
import ttnn

RNG = np.random.default_rng(1)
ROWS, COLUMNS = 64, 128  # of each chip's part


def put(mesh, parts):
    """One array for each chip, in tiles, in DRAM."""
    tiles = [ttnn.Tensor(np.ascontiguousarray(part)).to(ttnn.TILE_LAYOUT) for part in parts]
    shards = [ttnn.to_dtype(tile, ttnn.bfloat16) for tile in tiles]
    return ttnn.from_host_shards(shards, mesh.shape).to(mesh)


def get(tensor):
    """What each chip has, as float32 on the host."""
    for one in ttnn.get_device_tensors(tensor):
        rows = one.cpu().to(ttnn.ROW_MAJOR_LAYOUT)
        yield ttnn.to_dtype(rows, ttnn.float32).to_numpy()


def copied(tensor, parts):
    return tensor, parts


def add(tensor, parts):
    return ttnn.add(tensor, tensor), [2 * part for part in parts]


def all_gather(tensor, parts):
    return ttnn.all_gather(tensor, 3), [np.concatenate(parts, axis=3)] * len(parts)


def point_to_point(tensor, parts):
    """From the last chip to the first; what the others have then is not defined."""
    places = ttnn.MeshCoordinate(0, len(parts) - 1), ttnn.MeshCoordinate(0, 0)
    return ttnn.point_to_point(tensor, *places, topology=ttnn.Topology.Linear), [parts[-1]]


def reduce_scatter(tensor, parts):
    scattered = np.split(sum(parts), len(parts), axis=3)
    return ttnn.reduce_scatter(tensor, 3, topology=ttnn.Topology.Linear), scattered


def all_reduce(tensor, parts):
    return ttnn.all_reduce(tensor, topology=ttnn.Topology.Linear), [sum(parts)] * len(parts)


OPERATIONS = (copied, add, all_gather, point_to_point, reduce_scatter, all_reduce)


def main(fabric="FABRIC_1D", chips="2"):
    """Every operation on one mesh; 1 when one differs."""
    count = int(chips)
    ttnn.set_fabric_config(getattr(ttnn.FabricConfig, fabric))
    mesh = ttnn.open_mesh_device(ttnn.MeshShape(1, count))
    wrong = 0
    for operation in OPERATIONS:
        if operation is point_to_point and fabric == "FABRIC_2D":
            continue
        values = RNG.integers(-4, 5, (1, 1, ROWS, count * COLUMNS)).astype(np.float32)
        parts = np.split(values, count, axis=3)
        result, wanted = operation(put(mesh, parts), parts)
        got = list(get(result))[: len(wanted)]
        equal = len(got) == len(wanted) and all(map(np.array_equal, got, wanted))
        wrong += not equal
        print(f"{operation.__name__}: {'equal' if equal else 'differ'}", flush=True)
    ttnn.close_mesh_device(mesh)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
