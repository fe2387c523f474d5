"""Random programs on tt-metal's kernel API, on the simulator that TT_METAL_SIMULATOR names.

python random_kernels.py run KIND FOLDER FIRST LAST  outputs of the seeds from FIRST to before LAST
python random_kernels.py compare FOLDER FOLDER       what two simulators gave

KIND is matrix (compute kernels without the vector unit), vector (with it: needs sfpi's compiler) or
dataflow. Run by ttnn's own Python, which has no bhemu. A program that fails ends the process with
3, because the device is of no use then; called again it goes on behind that seed.
"""

import os
import sys
from pathlib import Path

import numpy as np

SIZES = {"bf16": 2048, "f32": 4096, "s32": 4096, "bfp8": 1088, "bfp4": 576}  # bytes of a tile
FAILED = 3
KINDS = ("matrix", "vector", "dataflow")

READER = """#include "api/dataflow/dataflow_api.h"
template <class A> void get(A args, uint32_t at, uint32_t cb, uint32_t n) {
  const auto s = TensorAccessor(args, at);
  for (uint32_t i = 0; i < n; i++) {
    cb_reserve_back(cb, 1);
    noc_async_read_page(i, s, get_write_ptr(cb));
    noc_async_read_barrier();
    cb_push_back(cb, 1);
  }
}
void kernel_main() {
  constexpr auto a = TensorAccessorArgs<0>();
  constexpr auto b = TensorAccessorArgs<a.next_compile_time_args_offset()>();
  constexpr auto c = TensorAccessorArgs<b.next_compile_time_args_offset()>();
  get(a, get_arg_val<uint32_t>(0), 0, get_arg_val<uint32_t>(3));
  get(b, get_arg_val<uint32_t>(1), 1, get_arg_val<uint32_t>(4));
  get(c, get_arg_val<uint32_t>(2), 2, 1);
}
"""
WRITER = """#include "api/dataflow/dataflow_api.h"
void kernel_main() {
  constexpr auto a = TensorAccessorArgs<0>();
  const auto s = TensorAccessor(a, get_arg_val<uint32_t>(0));
  for (uint32_t i = 0; i < get_arg_val<uint32_t>(1); i++) {
    cb_wait_front(16, 1);
    noc_async_write_page(i, s, get_read_ptr(16));
    noc_async_write_barrier();
    cb_pop_front(16, 1);
  }
}
"""


def dtypes(ttnn):
    """ttnn's names of ours."""
    names = {"bf16": "bfloat16", "f32": "float32", "s32": "int32"}
    names |= {"bfp8": "bfloat8_b", "bfp4": "bfloat4_b"}
    return {ours: getattr(ttnn, theirs) for ours, theirs in names.items()}


def kernel(ttnn, source, cores, config, constants=(), arguments=()):
    """A kernel given as text; `arguments`: of each tile."""
    inline = ttnn.KernelDescriptor.SourceType.SOURCE_CODE
    return ttnn.KernelDescriptor(
        kernel_source=source,
        source_type=inline,
        core_ranges=cores,
        compile_time_args=list(constants),
        runtime_args=list(arguments),
        config=config,
    )


def accessors(ttnn, *tensors):
    """Constants by which kernels find the pages of tensors."""
    return [x for t in tensors for x in ttnn.TensorAccessorArgs(t).get_compile_time_args()]


def buffer(ttnn, cores, index, dtype, page, pages):
    """A circular buffer."""
    form = ttnn.CBFormatDescriptor(buffer_index=index, data_format=dtype, page_size=page)
    return ttnn.CBDescriptor(total_size=page * pages, core_ranges=cores, format_descriptors=[form])


def tiles(ttnn, device, array, kind):
    """An array as tiles in DRAM."""
    if kind == "s32":
        return ttnn.Tensor(array.astype(np.int32)).to(ttnn.TILE_LAYOUT).to(device)
    tensor = ttnn.Tensor(array.astype(np.float32)).to(ttnn.TILE_LAYOUT)
    return (tensor if kind == "f32" else ttnn.to_dtype(tensor, dtypes(ttnn)[kind])).to(device)


def inputs(program):
    """Random numbers for both input buffers, and the scaler of reductions."""
    rng, found = np.random.default_rng(program.seed), []
    for index in (0, 1):
        shape = (32, 32 * program.tiles[index])
        if program.whole:
            found.append(rng.integers(-program.scale, program.scale, shape))
        else:
            found.append(rng.standard_normal(shape) * program.scale)
    one = program.pools or program.whole or program.seed % 2
    return [*found, np.full((32, 32), 1.0 if one else 0.125)]


def settings(ttnn, program):
    """How the compute kernel is built."""
    level = ("LoFi", "", "HiFi2", "HiFi3", "HiFi4")[program.fidelity]
    config = ttnn.ComputeConfigDescriptor(
        math_fidelity=getattr(ttnn.MathFidelity, level),
        math_approx_mode=program.approximate,
        fp32_dest_acc_en=program.wide,
        dst_full_sync_en=program.full,
        bfp8_pack_precise=program.precise,
    )
    if program.direct:
        modes = [ttnn.UnpackToDestMode.Default] * 64
        for index in program.direct:
            modes[index] = ttnn.UnpackToDestMode.UnpackToDestFp32
        config.unpack_to_dest_mode = modes
    return config


def host(ttnn, tensor, kind):
    """The values, which float32 or int32 holds exactly."""
    tensor = tensor.cpu()
    if kind in ("bfp8", "bf16"):
        tensor = ttnn.to_dtype(tensor, ttnn.float32)
    return np.ascontiguousarray(tensor.to(ttnn.ROW_MAJOR_LAYOUT).to_numpy())


def run_compute(ttnn, device, program):
    """The output of a compute program."""
    import compute_kernels as programs

    types = dtypes(ttnn)
    order = (programs.IN0, programs.IN1, programs.SCALER)
    kinds = program.formats
    given = [
        tiles(ttnn, device, array, kinds[index])
        for index, array in zip(order, inputs(program), strict=True)
    ]
    shape, place = ttnn.Shape([32, 32 * program.made]), ttnn.DRAM_MEMORY_CONFIG
    kind = kinds[programs.OUT]
    made = ttnn.allocate_tensor_on_device(shape, types[kind], ttnn.TILE_LAYOUT, device, place)
    first = ttnn.CoreCoord(0, 0)
    cores = ttnn.CoreRangeSet([ttnn.CoreRange(first, first)])
    counts = {**program.tiles, programs.OUT: program.made, programs.MID: programs.MOST}
    buffers = [
        buffer(ttnn, cores, index, types[kinds[index]], SIZES[kinds[index]], count)
        for index, count in counts.items()
    ]
    reads = [t.buffer_address() for t in given] + [program.tiles[i] for i in order[:2]]
    reader = ttnn.ReaderConfigDescriptor(), accessors(ttnn, *given), [(first, reads)]
    writes = [made.buffer_address(), program.made]
    writer = ttnn.WriterConfigDescriptor(), accessors(ttnn, made), [(first, writes)]
    kernels = [
        kernel(ttnn, READER, cores, *reader),
        kernel(ttnn, WRITER, cores, *writer),
        kernel(ttnn, program.source(), cores, settings(ttnn, program)),
    ]
    whole = ttnn.ProgramDescriptor(kernels=kernels, semaphores=[], cbs=buffers)
    ttnn.generic_op([*given, made], whole)
    return host(ttnn, made, kind)


def run_dataflow(ttnn, device, program, seed):
    """The areas of all tiles after a data movement program."""
    import dataflow_kernels as programs

    rng = np.random.default_rng(seed)
    x, y = (int(i) for i in rng.integers(0, 4, 2))
    last = ttnn.CoreCoord(x + program.width - 1, y + program.height - 1)
    cores = ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(x, y), last)])
    rows = program.tiles * program.areas
    words = programs.AREA // 4
    data = ttnn.Tensor(rng.integers(0, 1 << 20, (rows, words)).astype(np.int32)).to(device)
    shape, place = ttnn.Shape([rows, words]), ttnn.DRAM_MEMORY_CONFIG
    layout = ttnn.ROW_MAJOR_LAYOUT
    made = ttnn.allocate_tensor_on_device(shape, ttnn.int32, layout, device, place)
    names = [
        ttnn.CoreCoord(x + i % program.width, y + i // program.width) for i in range(program.tiles)
    ]
    there = [device.worker_core_from_logical_core(name) for name in names]
    corners = [there[0].x, there[0].y, there[-1].x, there[-1].y]
    addresses = [data.buffer_address(), made.buffer_address()]
    peers = [number for at in there for number in (at.x, at.y)]
    given = [
        (name, [i, program.tiles, *corners, *addresses, *peers]) for i, name in enumerate(names)
    ]
    constants = accessors(ttnn, data, made)
    configs = ttnn.WriterConfigDescriptor(), ttnn.ReaderConfigDescriptor()
    kernels = [
        kernel(ttnn, program.source(name), cores, config, constants, given)
        for name, config in zip(programs.KERNELS, configs, strict=True)
    ]
    semaphores = [
        ttnn.SemaphoreDescriptor(id=i, core_ranges=cores, initial_value=0) for i in (0, 1)
    ]
    areas = buffer(ttnn, cores, 0, ttnn.int32, programs.AREA, program.areas)
    whole = ttnn.ProgramDescriptor(kernels=kernels, semaphores=semaphores, cbs=[areas])
    ttnn.generic_op([data, made], whole)
    return host(ttnn, made, "s32")


def output(ttnn, device, kind, seed):
    """What the program of a seed leaves."""
    import compute_kernels
    import dataflow_kernels

    if kind == "dataflow":
        return run_dataflow(ttnn, device, dataflow_kernels.make(seed), seed)
    return run_compute(ttnn, device, compute_kernels.make(seed, vector=kind == "vector"))


def run(kind, folder, first, last):
    """Every seed that has no file yet; FAILED when one fails."""
    import ttnn

    folder.mkdir(parents=True, exist_ok=True)
    names = {seed: folder / f"{kind}-{seed}" for seed in range(first, last)}
    left = [s for s, path in names.items() if not {*folder.glob(f"{path.name}.*")}]
    if not left:
        return 0
    device = ttnn.open_device(device_id=0)
    for seed in left:
        failed = names[seed].with_suffix(".txt")
        failed.write_text("the process ended")  # as a simulator in this process may do
        try:
            array = output(ttnn, device, kind, seed)
        except RuntimeError as problem:
            failed.write_text(str(problem))
            print(f"{seed}: {str(problem).splitlines()[0]}", flush=True)
            os._exit(FAILED)  # the library's destructors may wait for ever
        failed.unlink()
        np.save(names[seed].with_suffix(".npy"), array)
        print(f"{seed}: {array.size} values", flush=True)
    ttnn.close_device(device)
    return 0


def compare(here, there):
    """1 when an output of both folders differs."""
    differ, equal = 0, 0
    for path in sorted(here.glob("*.npy")):
        if not (there / path.name).exists():
            continue
        a, b = np.load(path), np.load(there / path.name)
        same = a.view(np.uint32) == b.view(np.uint32)
        if a.dtype == np.float32:
            same |= np.isnan(a) & np.isnan(b)
        equal += bool(same.all())
        if not same.all():
            differ += 1
            at = tuple(int(i) for i in np.argwhere(~same)[0])
            print(f"{path.stem}: {(~same).sum()} of {a.size}, first {at}: {a[at]}, {b[at]}")
    only = len([*here.glob("*.npy")]), len([*there.glob("*.npy")])
    print(f"{equal} equal, {differ} differ; outputs {only[0]}, {only[1]}")
    return 1 if differ else 0


def main(words):
    """The exit code."""
    if words[:1] == ["compare"] and len(words) == 3:
        return compare(Path(words[1]), Path(words[2]))
    if words[:1] == ["run"] and len(words) == 5 and words[1] in KINDS:
        return run(words[1], Path(words[2]).resolve(), int(words[3]), int(words[4]))
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
