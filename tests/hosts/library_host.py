"""A host that has loaded libbhemu.so, as a program: python library_host.py LIBRARY SCENARIO.

What it prints is what the test looks at. The functions reach the chip as UMD does.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections.abc import Callable

BAR0, BAR2, BAR4 = 1 << 32, (1 << 32) + (512 << 20), 32 << 30
TABLE = BAR0 + 0x1FC00000
SOFT_RESET = 0xFFB121B0
NIU = 0xFFB20000  # of NoC 0, initiator 0
# brisc: count the word at 0x200 up for ever
COUNT = (0x20000293, 0x0002A303, 0x00130313, 0x0062A023, 0xFF5FF06F)
READER = ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint32)


class Card:
    """The library, with windows."""

    def __init__(self, library: str, *, memory: bytearray | None = None) -> None:
        self.lib = ctypes.CDLL(library)
        self.touched: list[tuple[str, int, int]] = []
        self.chip = 0
        if memory is not None:
            room = (ctypes.c_char * len(memory)).from_buffer(memory)
            start = ctypes.addressof(room)

            def read(address: int, to: int, n: int) -> None:
                self.touched.append(("read", address, n))
                ctypes.memmove(to, start + address, n)

            def write(address: int, source: int, n: int) -> None:
                self.touched.append(("write", address, n))
                ctypes.memmove(start + address, source, n)

            self.callbacks = READER(read), READER(write)
            self.lib.libttsim_set_pci_dma_mem_callbacks(*self.callbacks)
        self.lib.libttsim_init()

    def read(self, address: int, n: int) -> bytes:
        room = ctypes.create_string_buffer(n)
        self.lib.libttsim_pci_mem_rd_bytes(
            ctypes.c_uint64(self.at(address)), room, ctypes.c_uint32(n)
        )
        return room.raw

    def write(self, address: int, data: bytes) -> None:
        size = ctypes.c_uint32(len(data))
        self.lib.libttsim_pci_mem_wr_bytes(ctypes.c_uint64(self.at(address)), data, size)

    def at(self, address: int) -> int:
        """Where the chip that is at work has what the first one has here."""
        return address + (self.chip << 36)

    def word(self, address: int, value: int) -> None:
        self.write(address, value.to_bytes(4, "little"))

    def window(self, number: int, xy: tuple[int, int], address: int, flags: int = 0) -> int:
        """Lead a window of 2 MiB to an address; where the host finds it."""
        page = address >> 21
        words = page & 0xFFFFFFFF, page >> 32 | xy[0] << 11 | xy[1] << 17, flags
        for i, value in enumerate(words):
            self.word(TABLE + 12 * number + 4 * i, value)
        return BAR0 + (number << 21) + (address & (1 << 21) - 1)

    def large(self, number: int, xy: tuple[int, int], upper: int = 0) -> int:
        """Lead a window of 4 GiB; where the host finds it."""
        for i, value in enumerate((upper, xy[0] | xy[1] << 6, 0)):
            self.word(TABLE + 12 * (202 + number) + 4 * i, value)
        return BAR4 + (number << 32)

    def store(self, xy: tuple[int, int], address: int, data: bytes) -> None:
        self.write(self.window(200, xy, address), data)

    def load(self, xy: tuple[int, int], address: int, n: int = 4) -> bytes:
        return self.read(self.window(201, xy, address), n)

    def start(self, xy: tuple[int, int], code: tuple[int, ...] = COUNT) -> None:
        self.store(xy, 0, b"".join(word.to_bytes(4, "little") for word in code))
        self.store(xy, SOFT_RESET, (0x47000).to_bytes(4, "little"))

    def clock(self, n: int = 10) -> None:
        self.lib.libttsim_clock(n)

    def exit(self) -> None:
        self.lib.libttsim_exit()

    def send(self, xy: tuple[int, int], words: dict[int, int]) -> None:
        """What a core would store to the registers of an initiator, NOC_CMD_CTRL last."""
        for offset, value in {**words, 0x40: 1}.items():
            self.store(xy, NIU + offset, value.to_bytes(4, "little"))


def say(*values: object) -> None:
    print(*values, flush=True)


def memory(library: str) -> None:
    card = Card(library)
    say(f"{card.lib.libttsim_pci_config_rd32(0, 0) & 0xFFFFFFFF:#x}")
    say(card.lib.libttsim_pci_config_rd32(1 << 3, 0) & 0xFFFFFFFF == 0xFFFFFFFF)
    card.store((1, 2), 0x1FE, b"across")
    say(card.load((1, 2), 0x200, 4))
    card.store((17, 12), 0xFE000000, b"bank 0")
    say(card.load((17, 13), 0xFE000000, 6), card.load((17, 15), 0xFE000000, 6))
    large = card.large(3, (18, 12))
    card.write(large + 0x12345678, b"far")
    say(card.load((18, 14), 0x12345678, 3))
    flags = 1 << 5 | (2 >> 3)  # multicast from (1, 2) to (3, 3)
    page = 3 << 11 | 3 << 17 | 1 << 23 | (2 & 7) << 29
    for i, value in enumerate((0, page, flags)):
        card.word(TABLE + 12 * 7 + 4 * i, value)
    card.write(BAR0 + (7 << 21) + 0x3000, b"all")
    say([card.load((x, y), 0x3000, 3) for x, y in ((1, 2), (3, 3), (4, 3), (3, 4))])
    say(card.load((8, 0), 0x80030408), f"{int.from_bytes(card.read(BAR0 + 0x1FD04044, 4)):#x}")
    card.exit()


def running(library: str) -> None:
    for _ in range(2):  # one after the other, in one process
        card = Card(library)
        card.start((1, 2))
        say(card.load((1, 2), 0x200))
        card.clock()
        first = int.from_bytes(card.load((1, 2), 0x200), "little")
        again = int.from_bytes(card.load((1, 2), 0x200), "little")
        card.store((1, 2), 8, (0x00230313).to_bytes(4, "little"))  # by two from now on
        card.clock()
        say(first, again, int.from_bytes(card.load((1, 2), 0x200), "little"))
        card.exit()


def resets(library: str) -> None:
    """Soft resets that wait for the next message, each tile once, and what is read meanwhile."""
    card = Card(library)
    where, held = (1, 2), 0x47800
    tiles = [(x, y) for x in (1, 2, 16) for y in (2, 11)]
    for xy in tiles:
        card.store(xy, SOFT_RESET, held.to_bytes(4, "little"))
    say({card.load(xy, SOFT_RESET).hex() for xy in tiles})
    card.clock()  # costs nothing: no core was ever released
    card.start(where)  # what waits for a tile is held, so this is a message
    say(card.load(where, SOFT_RESET).hex(), card.load((5, 5), SOFT_RESET).hex())
    card.clock()
    counted = int.from_bytes(card.load(where, 0x200), "little")
    card.store(where, SOFT_RESET, held.to_bytes(4, "little"))
    card.clock()
    say(counted > 0, int.from_bytes(card.load(where, 0x200), "little") - counted)
    for value in (0x47000, held, 0x47000):  # held again and released: brisc begins anew
        card.store(where, SOFT_RESET, value.to_bytes(4, "little"))
        say(card.load(where, SOFT_RESET).hex())
    card.clock()
    say(int.from_bytes(card.load(where, 0x200), "little"))
    card.exit()


def dma(library: str) -> None:
    host = bytearray(1 << 16)
    host[0x5100:0x5120] = bytes(range(32))
    card = Card(library, memory=host)
    for offset, value in {0x4: 1 << 31, 0x8: 0x1000, 0x10: 0x1FFF, 0x14: 0x5000}.items():
        card.word(BAR2 + 0x1000 + offset, value)  # 0x1000 of the host's window is at 0x5000
    card.start((1, 2), (0x6F,))
    pcie, own = 19 | 24 << 6, 1 | 2 << 6
    read = {0x0: 0x1100, 0x4: 1 << 28, 0x8: pcie, 0xC: 0x800, 0x10: 0, 0x14: own, 0x20: 32}
    card.send((1, 2), {**read, 0x1C: 0 | 1 << 4})
    card.clock()
    say(card.load((1, 2), 0x800, 32) == bytes(range(32)))
    card.store((1, 2), 0x900, b"to the host's memory")
    write = {0x0: 0x900, 0x4: 0, 0x8: own, 0xC: 0x1200, 0x10: 1 << 28, 0x14: pcie, 0x20: 20}
    card.send((1, 2), {**write, 0x1C: 2 | 1 << 4})
    card.clock()
    say(bytes(host[0x5200:0x5214]), card.touched)
    host[0x100:0x108] = b"channel."
    card.window(9, (17, 12), 0)
    for offset, value in {0x11C: 8, 0x120: 0x100, 0x128: 9 << 21 | 0x40, 0x104: 1}.items():
        card.word(BAR2 + offset, value)
    say(card.load((17, 12), 0x40, 8), card.read(BAR2 + 0x11C, 4))
    own = card.window(10, (19, 24), (1 << 60) + 0x1000)  # the host's memory, as kernels see it
    card.write(own + 0x300, b"by the host")
    say(bytes(host[0x5300:0x530B]), card.read(own + 0x200, 20))
    card.exit()


def without_memory(library: str) -> None:
    """A kernel reads the host's memory, and the host gave no functions."""
    card = Card(library)
    card.start((1, 2), (0x6F,))
    pcie, own = 19 | 24 << 6, 1 | 2 << 6
    words = {0x0: 0x1100, 0x4: 1 << 28, 0x8: pcie, 0xC: 0x800, 0x10: 0, 0x14: own, 0x20: 16}
    card.send((1, 2), {**words, 0x1C: 1 << 4})
    card.clock()
    say("went on")


def waiting(library: str) -> None:
    """A core and the host wait for each other."""
    card = Card(library)
    card.start((1, 2), (0x20000293, 0x0002A303, 0xFE030EE3, 0x6F))
    window = card.window(0, (1, 2), 0x200)
    for _ in range(6000):
        card.read(window, 4)
        card.clock()
    say("went on")


def arc(library: str) -> None:
    card = Card(library)
    control = int.from_bytes(card.load((8, 0), 0x8003042C), "little")
    queue = int.from_bytes(card.load((8, 0), control), "little")
    card.store((8, 0), queue + 32, (0x34).to_bytes(4, "little"))
    card.store((8, 0), queue, (1).to_bytes(4, "little"))
    card.store((8, 0), 0x80030100, (1 << 16).to_bytes(4, "little"))
    say(card.load((8, 0), queue + 0x10), card.load((8, 0), queue + 0x14))
    say(card.load((8, 0), queue + 32 + 8 * 32, 8), card.load((8, 0), 0x80030100))
    card.exit()


def pid(card: Card) -> int:
    """The emulator's, which is the parent of nobody: found by the socket it holds."""
    card.load((1, 2), 0)
    for folder in os.listdir("/proc"):
        if folder.isdigit():
            try:
                with open(f"/proc/{folder}/environ", "rb") as file:
                    if f"BHEMU_TEST={os.getpid()}".encode() in file.read().split(b"\0"):
                        return int(folder)
            except OSError:
                continue
    return 0


def killed(library: str) -> None:
    """The host waits to be killed; or, with KILL=server, its emulator is."""
    libc = ctypes.CDLL(None)
    libc.setenv(b"BHEMU_TEST", str(os.getpid()).encode(), 1)
    card = Card(library)
    server = pid(card)
    say(server)
    if os.environ.get("KILL") == "server":
        os.kill(server, 9)
        card.start((1, 2))
        card.clock()
    time.sleep(60)


def second(library: str) -> None:
    Card(library).lib.libttsim_init()


def early(library: str) -> None:
    ctypes.CDLL(library).libttsim_clock(1)


def number(card: Card) -> int:
    return int.from_bytes(card.load((1, 2), 0x200), "little")


def counting(library: str) -> Card:
    """A chip whose brisc at (1, 2) has counted, and DRAM that holds a word."""
    card = Card(library)
    card.start((1, 2))
    card.store((17, 12), 0x40, b"parent")
    card.clock()
    return card


def of_child(work: Callable[[], None]) -> int:
    """The exit code of a forked child that does `work`."""
    if os.fork() == 0:
        work()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.wait()[1])


def child(library: str) -> None:
    """A child and its child go on with chips of their own, and the parent with its own."""
    card = counting(library)
    then = number(card)

    def works() -> None:
        card.clock()
        say(number(card) > then, card.load((17, 12), 0x40, 6))
        card.store((17, 12), 0x40, b"child!")
        of_child(lambda: say(number(card) > then, card.load((17, 12), 0x40, 6)))
        card.exit()
        again = counting(library)  # a new chip, no copy
        say(number(again) == then)
        again.exit()

    say(of_child(works))
    say(number(card) == then, card.load((17, 12), 0x40, 6))
    say(of_child(card.exit), of_child(lambda: card.start((3, 4), (0x6B,)) or card.clock()))
    card.clock()
    say(number(card) > then)
    card.exit()


def child_alone(library: str) -> None:
    """The parent goes on, or ends its session, before its child asks for a copy."""
    card = counting(library)
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.read(reader, 1)
        card.clock()
        os._exit(0)
    card.exit() if os.environ.get("PARENT") == "exits" else card.clock()
    os.write(writer, b"!")
    say(os.waitstatus_to_exitcode(os.wait()[1]))


def killed_child(library: str) -> None:
    """A child that uses the chip waits to be killed."""
    libc = ctypes.CDLL(None)
    libc.setenv(b"BHEMU_TEST", str(os.getpid()).encode(), 1)
    card = counting(library)
    if os.fork() == 0:
        card.clock()
        say(os.getpid())
        time.sleep(60)
    time.sleep(60)


def wild(library: str) -> None:
    card = Card(library)
    address, size = (int(word, 0) for word in os.environ["WILD"].split())
    card.window(0, (1, 2), 0)
    card.window(1, (1, 2), 0xFFB12000)
    card.window(2, (5, 0), 0)
    card.window(3, (40, 3), 0)
    card.window(4, (19, 24), 0)
    card.window(5, (19, 24), (1 << 60) + (1 << 32))
    card.read(address, size)


def send_over_link(card: Card, xy: tuple[int, int]) -> None:
    """Let erisc 1 copy 16 bytes from 0x8000 to 0x9000 of the other end, and stop."""
    words = {0x14: 0x8000, 0x18: 16, 0x1C: 0x9000, 0x04: 2}  # TX queue 0: copy to 0x9000
    code: list[int] = []
    for offset, value in words.items():
        upper, lower = (value + 0x800) >> 12, value & 0xFFF
        code += (0xFFB90537, upper << 12 | 0x5B7, lower << 20 | 0x58593)  # a0, a1
        code += ((offset >> 5) << 25 | 0xB52023 | (offset & 31) << 7,)  # sw a1, offset(a0)
    card.store(xy, 0x1000, b"".join(w.to_bytes(4, "little") for w in (*code, 0x6F)))
    card.store(xy, 0xFFB14008, (0x1000).to_bytes(4, "little"))
    card.store(xy, SOFT_RESET, (0).to_bytes(4, "little"))


def every_link(library: str) -> None:
    """Each end of a link of LINKS sends its name; what the other end then has."""
    ends = [tuple(map(int, one.split("."))) for one in os.environ["LINKS"].split()]
    card = Card(library)
    for card.chip, channel in ends:
        card.store((20 + channel, 25), 0x8000, f"{card.chip}.{channel}".encode().ljust(16))
        send_over_link(card, (20 + channel, 25))
    card.chip = 0
    card.clock()
    for card.chip, channel in ends:
        say(f"{card.chip}.{channel}", card.load((20 + channel, 25), 0x9000, 16).decode().strip())


def two(library: str) -> None:
    """Two chips: devices, memory of their own, a copy and a register over a link."""
    for _ in range(2):  # one after the other, in one process
        card = Card(library)
        config = card.lib.libttsim_pci_config_rd32
        say(*(f"{config(n << 3, 0) & 0xFFFFFFFF:#x}" for n in range(3)), hex(config(1 << 3, 0x14)))
        for card.chip, text in ((0, b"chip 0"), (1, b"chip 1")):
            card.store((1, 2), 0x200, text)
            card.store((17, 12), 0x40, text)
            card.start((1, 2))
        channels = {0: (22, 25), 1: (29, 25)}
        card.chip = 0
        card.store(channels[0], 0x8000, b"from one to other")
        send_over_link(card, channels[0])
        card.clock()
        for card.chip in (0, 1):
            counted = card.load((1, 2), 0x200) not in (b"chip", bytes(4))
            say(counted, card.load((17, 12), 0x40, 6), card.load(channels[1], 0x9000, 16))
        first = [card.load((1, 2), 0x200) for card.chip in (0, 1)]
        say(first[0] == first[1])
        card.exit()


def devices(library: str) -> None:
    """What a host sees before it reaches any chip."""
    config = Card(library).lib.libttsim_pci_config_rd32
    say(*(f"{config(n << 3, 0) & 0xFFFFFFFF:#x}" for n in range(5)))


def refused(library: str) -> None:
    """An instruction that no core has."""
    card = Card(library)
    card.chip = int(os.environ.get("CHIP", "0"))
    card.start((3, 4), (0x0000006B,))
    card.clock()
    say("went on")


if __name__ == "__main__":
    globals()[sys.argv[2]](sys.argv[1])
