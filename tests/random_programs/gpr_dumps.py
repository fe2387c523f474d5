"""Programs whose results are dumps of the 64 GPRs of all three threads, taken every few steps."""

from random_programs.datapath import OUTPUT

ROOM = 0x10000  # bytes of dumps of a thread


def place(thread: int) -> int:
    """L1 address of a thread's dumps."""
    return OUTPUT + ROOM * thread


def where(at: int, every: int) -> str:
    """Thread, GPR and step of an address, a dump being taken after `every` steps."""
    thread, rest = divmod(at - OUTPUT, ROOM)
    dump, register = divmod(rest // 4, 64)
    return f"T{thread} GPR {register} after {(dump + 1) * every} steps"
