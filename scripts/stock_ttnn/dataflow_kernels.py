"""Random data movement kernels on tt-metal's kernel API: pieces of memory between tiles.

Each tile has an area of 4 KiB for its input and one for each step. In a step one kernel of every
tile reads, writes, sends to all, adds or computes from an area that is written already into the
area of the step, here or at another tile; then all kernels meet. The areas are the output.
"""

import random
from dataclasses import dataclass, field

AREA = 4096
KERNELS = ("brisc", "ncrisc")
GRIDS = ((1, 1), (2, 1), (3, 1), (2, 2), (4, 1), (3, 2))

BEGIN = """#include "api/dataflow/dataflow_api.h"
uint32_t base, me, n;
FORCE_INLINE uint64_t at(uint32_t who, uint32_t a) {
  return get_noc_addr(get_arg_val<uint32_t>(8 + 2 * who), get_arg_val<uint32_t>(9 + 2 * who), a);
}
FORCE_INLINE uint64_t all(uint32_t a) {
  uint32_t x0 = get_arg_val<uint32_t>(2), y0 = get_arg_val<uint32_t>(3);
  uint32_t x1 = get_arg_val<uint32_t>(4), y1 = get_arg_val<uint32_t>(5);
  return noc_index == 0 ? get_noc_multicast_addr(x0, y0, x1, y1, a)
                        : get_noc_multicast_addr(x1, y1, x0, y0, a);
}
// Both kernels of all tiles meet.
void step(uint32_t s) {
  auto go = (volatile tt_l1_ptr uint32_t*)get_semaphore(1);
  auto come = (volatile tt_l1_ptr uint32_t*)get_semaphore(0);
  noc_semaphore_inc(at(0, get_semaphore(0)), 1);
  noc_async_atomic_barrier();
  if (me == 0 && LEADS) {
    noc_semaphore_wait_min(come, 2 * n * s);
    for (uint32_t i = 0; i < n; i++) noc_semaphore_inc(at(i, get_semaphore(1)), 1);
    noc_async_atomic_barrier();
  }
  noc_semaphore_wait_min(go, s);
}
void kernel_main() {
  constexpr auto from = TensorAccessorArgs<0>();
  constexpr auto to = TensorAccessorArgs<from.next_compile_time_args_offset()>();
  me = get_arg_val<uint32_t>(0);
  n = get_arg_val<uint32_t>(1);
  base = get_write_ptr(0);
  const auto input = TensorAccessor(from, get_arg_val<uint32_t>(6));
  const auto output = TensorAccessor(to, get_arg_val<uint32_t>(7));
"""


@dataclass
class Program:
    """The grid of tiles and the statements of their two kernels."""

    width: int
    height: int
    areas: int
    lines: dict = field(default_factory=lambda: {kernel: [] for kernel in KERNELS})

    @property
    def tiles(self):
        return self.width * self.height

    def source(self, kernel):
        """The kernel; brisc moves the areas from and to DRAM."""
        leads, page = kernel == "brisc", f"me * {self.areas} + i"
        every = f"for (uint32_t i = 0; i < {self.areas}; i++)"
        lines = list(self.lines[kernel])
        if leads:
            load = f"{every} noc_async_read_page({page}, input, base + i * {AREA});"
            save = f"{every} noc_async_write_page({page}, output, base + i * {AREA});"
            lines = [load, "noc_async_read_barrier();", "step(1);", *lines]
            lines += [save, "noc_async_write_barrier();"]
        else:
            lines.insert(0, "step(1);")
        body = "".join(f"  {line}\n" for line in lines)
        return f"#define LEADS {int(leads)}\n{BEGIN}{body}}}\n"


class _Steps:
    """Writes one step: from the area `source` to the area `target`."""

    def __init__(self, rng, tiles):
        self.rng, self.tiles = rng, tiles
        self.source = self.target = 0
        self.peer = ""

    def write_step(self, source, target):
        self.source, self.target = source, target
        self.peer = f"(me + {self.rng.randrange(self.tiles)}) % n"
        kinds = [name for name in sorted(dir(self)) if name.startswith("step_")]
        lines = getattr(self, self.rng.choice(kinds))()
        if self.rng.random() < 0.3:
            wait = f"for (volatile uint32_t i = 0; i < me * {self.rng.randrange(1, 400)}; i++);"
            lines.insert(0, wait)
        return lines

    def _from(self, offset):
        return f"base + {self.source * AREA + offset}"

    def _to(self, offset):
        return f"base + {self.target * AREA + offset}"

    def _there(self, address):
        return f"at({self.peer}, {address})"

    def _pieces(self, *, odd):
        """Offsets in both areas and lengths; in the same place of 16 bytes, as NoC requests ask."""
        rng, at, found = self.rng, 0, []
        for _ in range(rng.randrange(1, 6)):
            size = (
                rng.randrange(1, 400) if odd and rng.random() < 0.5 else 16 * rng.randrange(1, 20)
            )
            shift = rng.randrange(16) if odd and rng.random() < 0.4 else 0
            found.append((16 * rng.randrange(200) + shift, at + shift, size))
            at += (size + 31) // 16 * 16 + 16 * rng.randrange(3)
        return found

    def step_write(self):
        ends = ("noc_async_write_barrier();", "noc_async_full_barrier();")
        lines = [
            f"noc_async_write({self._from(a)}, {self._there(self._to(b))}, {size});"
            for a, b, size in self._pieces(odd=True)
        ]
        return [*lines, self.rng.choice(ends)]

    def step_read(self):
        lines = [
            f"noc_async_read({self._there(self._from(a))}, {self._to(b)}, {size});"
            for a, b, size in self._pieces(odd=True)
        ]
        return [*lines, "noc_async_read_barrier();"]

    def step_read_all(self):
        whole = f"noc_async_read({self._there(self._from(0))}, {self._to(0)}, {AREA});"
        return [whole, "noc_async_read_barrier();"]

    def step_write_with_state(self):
        size = 16 * self.rng.randrange(1, 20)
        lines = [f"noc_async_write_one_packet_set_state({self._there('0')}, {size});"]
        for i in range(self.rng.randrange(1, 6)):
            a, b = self._from(16 * self.rng.randrange(200)), self._to(i * size)
            lines.append(f"noc_async_write_one_packet_with_state({a}, {b});")
        return [*lines, "noc_async_write_barrier();"]

    def step_read_with_state(self):
        size = 16 * self.rng.randrange(1, 20)
        lines = [f"noc_async_read_one_packet_set_state({self._there('0')}, {size});"]
        for i in range(self.rng.randrange(1, 6)):
            a, b = self._from(16 * self.rng.randrange(200)), self._to(i * size)
            lines.append(f"noc_async_read_one_packet_with_state({a}, {b});")
        return [*lines, "noc_async_read_barrier();"]

    def step_write_by_id(self):
        lines = []
        for i, (a, b, size) in enumerate(self._pieces(odd=False)):
            there = self._there(self._to(b))
            request = f"{self._from(a)}, {there}, {size}, {1 + i % 3}"
            lines.append(f"noc_async_write_one_packet_with_trid({request});")
        lines += [f"noc_async_write_barrier_with_trid({i});" for i in (1, 2, 3)]
        return [*lines, "noc_async_write_set_trid(0);"]

    def step_read_by_id(self):
        lines = []
        for i in (1, 2, 3):
            there = self._there(self._from(16 * self.rng.randrange(200)))
            lines.append(f"noc_async_read_set_trid({i});")
            size = 16 * self.rng.randrange(1, 30)
            lines.append(f"noc_async_read({there}, {self._to(512 * i)}, {size});")
        lines += [f"noc_async_read_barrier_with_trid({i});" for i in self.rng.sample((1, 2, 3), 3)]
        return [*lines, "noc_async_read_set_trid(0);"]

    def step_multicast(self):
        rng, here = self.rng, self.rng.random() < 0.5
        to = self.tiles if here else self.tiles - 1
        if not to:
            return []
        name = "noc_async_write_multicast" + ("_loopback_src" if here else "")
        lines = []
        for at in (0, 2048)[: rng.randrange(1, 3)]:
            size, a = 16 * rng.randrange(1, 60), self._from(16 * rng.randrange(100))
            lines.append(f"{name}({a}, all({self._to(at)}), {size}, {to});")
        sender = rng.randrange(self.tiles)
        return [f"if (me == {sender}) {{ {' '.join(lines)} noc_async_write_barrier(); }}"]

    def step_increment(self):
        lines = []
        for _ in range(self.rng.randrange(1, 6)):
            there = self._there(self._to(16 * self.rng.randrange(8)))
            lines.append(f"noc_semaphore_inc({there}, {self.rng.randrange(1, 1000)});")
        return [*lines, "noc_async_atomic_barrier();"]

    def step_inline(self):
        lines = []
        for i in range(self.rng.randrange(1, 6)):
            there = self._there(self._to(4 * i + 64 * self.rng.randrange(4)))
            lines.append(f"noc_inline_dw_write({there}, {self.rng.getrandbits(24)} + me);")
        return [*lines, "noc_async_write_barrier();"]

    def step_set_remote(self):
        a, b = self._from(16 * self.rng.randrange(4)), self._to(16 * self.rng.randrange(20))
        send = f"noc_semaphore_set_remote({a}, {self._there(b)});"
        return [send, "noc_async_write_barrier();"]

    def step_compute(self):
        words, factor = self.rng.randrange(1, 200), self.rng.getrandbits(31) | 1
        a, b = (f"((volatile tt_l1_ptr uint32_t*)({x}))[i]" for x in (self._from(0), self._to(0)))
        return [f"for (uint32_t i = 0; i < {words}; i++) {b} = {a} * {factor}u + me;"]


def make(seed):
    """The program of a seed."""
    rng = random.Random(seed)
    steps = rng.randrange(1, 7)
    program = Program(*rng.choice(GRIDS), steps + 1)
    writer = _Steps(rng, program.tiles)
    for number in range(steps):
        works = rng.choice(KERNELS)
        program.lines[works] += writer.write_step(rng.randrange(number + 1), number + 1)
        for kernel in KERNELS:
            program.lines[kernel].append(f"step({number + 2});")
    return program
