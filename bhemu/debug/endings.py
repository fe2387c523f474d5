"""How a run ends by an error that no declaration in the code describes: by rule, what and why.

Rules of instructions, devices and the NoC say themselves what breaks them (tensix/rules.py).
"""

from bhemu import errors


def _coded(kind: type[errors.BhemuError], text: str) -> str:
    return f"{kind.__name__}, exit code {kind.EXIT_CODE}: {text}"


_WAITS = "bhemu why PROGRAM says which agent waits for which, and what could have ended the waits"
_LLK = "is it the brisc.elf of tt-llk's tests, for BRISC boot mode, without coverage?"

ENDINGS = {
    "DEADLOCK": (
        _coded(
            errors.NoProgress,
            "every core and thread waits, is parked or in reset, so that nothing can happen any"
            " more",
        ),
        _WAITS,
    ),
    "LIVELOCK": (
        _coded(
            errors.NoProgress,
            "the cores that run are in loops that they can never leave, whatever time passes; all"
            " others wait",
        ),
        _WAITS,
        "where a host is to answer, --livelock 0 lets them go on",
    ),
    "IDLE": (
        _coded(errors.NoProgress, "everything is idle or parked, and [run] until does not hold"),
        "bhemu run PROGRAM shows how many instructions each core has retired",
    ),
    "LIMIT": (
        _coded(errors.Limit, "the clock has come to [run] limit before the end"),
        "bhemu why PROGRAM says whether the program is right and needs more time",
    ),
    "TIMEOUT": (_coded(errors.Limit, "[run] timeout_s, in seconds, came before the end"),),
    "EBREAK": (
        _coded(errors.Assert, "a core has executed ebreak, the device assert"),
        "look at the condition that failed, at the source line of the error and of its caller",
    ),
    "RV-FETCH": (
        _coded(errors.GuestFault, "a core jumps out of L1: code executes from L1 only"),
        "check the function pointer or the return address; bhemu step PROGRAM: bt",
    ),
    "RV-UNMAPPED": (
        _coded(errors.GuestFault, "a load or store of an address at which the core has nothing"),
        "check the pointer; bhemu explain ADDRESS says what lies at one",
    ),
    "NOC-LINKED-OPEN": (
        _coded(
            errors.Undefined,
            "the run is over, and a linked transaction of the NoC still holds its path",
        ),
        "the last request of a linked transaction has NOC_CMD_VC_LINKED clear",
    ),
    "NOC-WAITS": (
        _coded(errors.NotModelled, "a request reaches a device that would have to wait"),
        "let it come when the device is free, or let the device's own core make the access",
    ),
    "METAL-BOOT": (
        _coded(errors.Limit, "the firmware of a tile did not boot in time"),
        "are the ELFs of one build of tt-metal, for this chip?",
    ),
    "LLK-BOOT": (
        _coded(errors.Limit, "brisc does not listen to the harness of tt-llk's tests"),
        _LLK,
    ),
    "LLK-COMMAND": (
        _coded(errors.Limit, "brisc has not carried out a command of tt-llk's harness in time"),
        _LLK,
    ),
    "LLK-START": (
        _coded(errors.GuestFault, "a kernel of tt-llk's tests began elsewhere than its ELF does"),
        "the reset PC registers are set by load_elf, or by BRISC before START",
    ),
    "LLK-UMD": (
        _coded(errors.NotModelled, "tt-llk's tests want a device of UMD, and run on a tile alone"),
        "leave out the options of the suite that start a simulator of its own",
    ),
    "ARC-MESSAGE": (
        _coded(errors.NotModelled, "a host asks the chip's ARC firmware what bhemu does not know"),
        "leave out the call of the host that sends it; power and clock messages are answered",
    ),
    "ETH-MAILBOX": (
        _coded(errors.NotModelled, "a host calls the firmware of an Ethernet tile"),
        "that firmware is not modelled: use the links by their registers, or leave the call out",
    ),
    "ETH-REMOTE": (
        _coded(errors.NotModelled, "the other end of an Ethernet link refuses a packet"),
        "the error says why: check the address that the packet goes to",
    ),
    "HOST-MEMORY": (
        _coded(errors.NotModelled, "a kernel wants the host's memory, which no host shares here"),
        "with fast dispatch set TT_METAL_DRAM_BACKED_CQ=1, else TT_METAL_SLOW_DISPATCH_MODE=1",
    ),
    "STOPPED": (
        _coded(errors.NoProgress, "a host goes on reading from a chip that an error has stopped"),
        "mend what the first error says, and start the host again",
    ),
    "REFUSED": (
        _coded(errors.NoProgress, "a host waits for what a write of its own, refused, would give"),
        "the error repeats why the write was refused: mend that",
    ),
    "MEMORY": (
        _coded(errors.Limit, "the system gives bhemu no more memory"),
        "a tile takes about 500 MB of address space (ulimit -v): raise that, or run less at once",
    ),
}
"""By rule: what breaks it, with the class of the error and its exit code; what to do."""
