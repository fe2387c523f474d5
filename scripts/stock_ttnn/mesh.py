"""Operations of stock ttnn over two linked chips, compared with NumPy; run by ttnn's own Python.

python mesh.py [FABRIC]     one line each: the name and "equal", else "differ"

FABRIC: a name of ttnn.FabricConfig, as FABRIC_2D; default: FABRIC_1D. FABRIC_2D goes without
point_to_point: its kernels in ttnn 0.81.1 write a packet's route as a one-dimensional fabric reads
it (fabric_set_unicast_route of LowLatencyPacketHeader), and a router of two dimensions drops such a
packet, so that both ends wait for ever.
"""

import sys

import numpy as np
import ttnn

RNG = np.random.default_rng(1)
SHAPE = (1, 1, 64, 128)


def put(mesh, halves):
    """One array for each chip, in tiles, in DRAM."""
    tiles = [ttnn.Tensor(np.ascontiguousarray(half)).to(ttnn.TILE_LAYOUT) for half in halves]
    shards = [ttnn.to_dtype(tile, ttnn.bfloat16) for tile in tiles]
    return ttnn.from_host_shards(shards, mesh.shape).to(mesh)


def get(tensor):
    """What each chip has, as float32 on the host."""
    for one in ttnn.get_device_tensors(tensor):
        rows = one.cpu().to(ttnn.ROW_MAJOR_LAYOUT)
        yield ttnn.to_dtype(rows, ttnn.float32).to_numpy()


def copied(tensor, a, b):
    return tensor, [a, b]


def add(tensor, a, b):
    return ttnn.add(tensor, tensor), [2 * a, 2 * b]


def all_gather(tensor, a, b):
    whole = np.concatenate((a, b), axis=3)
    return ttnn.all_gather(tensor, 3), [whole, whole]


def point_to_point(tensor, a, b):
    """From the second chip to the first; what the second has then nobody says."""
    places = ttnn.MeshCoordinate(0, 1), ttnn.MeshCoordinate(0, 0)
    return ttnn.point_to_point(tensor, *places, topology=ttnn.Topology.Linear), [b]


def reduce_scatter(tensor, a, b):
    return ttnn.reduce_scatter(tensor, 3, topology=ttnn.Topology.Linear), np.split(a + b, 2, axis=3)


def all_reduce(tensor, a, b):
    return ttnn.all_reduce(tensor, topology=ttnn.Topology.Linear), [a + b, a + b]


OPERATIONS = (copied, add, all_gather, point_to_point, reduce_scatter, all_reduce)


def main(fabric="FABRIC_1D"):
    """Every operation on one mesh; 1 when one differs."""
    ttnn.set_fabric_config(getattr(ttnn.FabricConfig, fabric))
    mesh = ttnn.open_mesh_device(ttnn.MeshShape(1, 2))
    wrong = 0
    for operation in OPERATIONS:
        if operation is point_to_point and fabric == "FABRIC_2D":
            continue
        halves = np.split(RNG.integers(-4, 5, SHAPE).astype(np.float32), 2, axis=3)
        result, wanted = operation(put(mesh, halves), *halves)
        got = list(get(result))[: len(wanted)]
        equal = len(got) == len(wanted) and all(map(np.array_equal, got, wanted))
        wrong += not equal
        print(f"{operation.__name__}: {'equal' if equal else 'differ'}", flush=True)
    ttnn.close_mesh_device(mesh)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
