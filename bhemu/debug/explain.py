"""What anything with a name is: words, instructions, fields, addresses, registers, rules, state.

Nothing is written here: the text comes from the declarations, and which part uses a field or raises
a rule from the sources, whose first lines name the chapter.
"""

import importlib
import inspect
import pkgutil
import re
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from bhemu import devices, errors, memmap, riscv, tensix
from bhemu.arguments import did_you_mean
from bhemu.devices.bus import address_map
from bhemu.devices.bus.window import TENSIX_CORES, TRISCS
from bhemu.errors import InputError
from bhemu.machine.resolve import registers
from bhemu.machine.sentences import RULES
from bhemu.machine.word_text import GPRS, meaning
from bhemu.riscv import csr
from bhemu.riscv.assembly import ABI_NAMES
from bhemu.riscv.assembly import disassemble as riscv_text
from bhemu.tensix import config_fields, formats, thread_fields, views
from bhemu.tensix.config import CONFIG_WORDS, SHARED
from bhemu.tensix.insn import BLOCKS, CONDITIONS, SEMAPHORE_NAMES, decode, disassemble, instructions
from bhemu.tensix.state import LREG_CONSTANTS

# Names of the C library of kernels, as its headers declare and comment them.

_FOLDER = Path(__file__).parents[1] / "kernel"
_LIBRARY = _FOLDER / "c"
_HEADERS = ("lib/*.h", "kernel/kernel.h")
_NEW = (_FOLDER / "template" / "args.h", "args.h of a new kernel")
_DEFINE = re.compile(r"#define (?P<name>\w+)(?P<rest>.*)")
_FUNCTION = re.compile(r"static inline [\w ]+?[ *](?P<name>\w+)\(.*")
_STRUCT = re.compile(r"struct (?P<name>\w+) \{.*")
_COMMENT = re.compile(r"/\*\s*(.*?)\s*\*/", re.DOTALL)


class KernelName(NamedTuple):
    """A macro, function or struct of a header: where it stands, how it is declared, its comment."""

    name: str
    header: str
    line: int
    declared: str
    about: str


@cache
def kernel_names() -> Mapping[str, tuple[KernelName, ...]]:
    """All of them by name: several where two headers, or two kinds of cores, have one."""
    found: dict[str, tuple[KernelName, ...]] = {}
    headers = [path for pattern in _HEADERS for path in sorted(_LIBRARY.glob(pattern))]
    named = [*((path, str(path.relative_to(_LIBRARY))) for path in headers), _NEW]
    for path, header in named:
        for one in _declared(path.read_text().splitlines(), header):
            found[one.name] = (*found.get(one.name, ()), one)
    return found


def _declared(lines: list[str], header: str) -> list[KernelName]:
    """What a header declares, with the comment in its line, or above it or its group."""
    found, above, comment, conditions = list[KernelName](), "", list[str](), list[str]()
    first = ""  # of all comments: what the header holds
    for number, line in enumerate(lines, 1):
        if comment or line.startswith("/*"):
            comment.append(line.strip().removeprefix("*" if line[:1] == " " else ""))
            if line.rstrip().endswith("*/"):
                above, comment = _text(" ".join(comment)), []
                first = first or above
            continue
        conditions = _conditions(line, conditions)
        match = _DEFINE.match(line) or _FUNCTION.match(line) or _STRUCT.match(line)
        if match is None:
            above = above if line.strip() else ""
            continue
        declared = [line]
        while not _is_whole(declared) and number + len(declared) <= len(lines):
            declared.append(lines[number + len(declared) - 1])
        text = " ".join(part.strip().removesuffix("\\").strip() for part in declared)
        beside = _COMMENT.search(line)
        about = _text(beside[0]) if beside else above or first
        shown = _COMMENT.sub("", text).removesuffix("{").strip()
        cores = " and ".join(one for one in conditions if "CORE_" in one)
        where = f" (for {cores})" if cores else ""
        found.append(KernelName(match["name"], header, number, shown + where, about))
        if not line.startswith("#define"):
            above = ""
    return found


def _conditions(line: str, before: list[str]) -> list[str]:
    """The conditions of the preprocessor after a line, given those before it."""
    word, _, text = line.partition(" ")
    if word.startswith("#if"):
        return [*before, re.sub(r"defined\((\w+)\)", r"\1", text).replace("||", "or")]
    if word == "#else":
        return [*before[:-1], f"all but {before[-1]}"]
    return before[:-1] if word == "#endif" else before


def _text(comment: str) -> str:
    match = _COMMENT.search(comment)
    return " ".join((match[1] if match else comment).split())


def _is_whole(lines: list[str]) -> bool:
    """Whether the lines hold a macro, or what stands before the body of a function or struct."""
    if lines[0].startswith("#define"):
        return not lines[-1].endswith("\\")
    return any("{" in line for line in lines)


_NUMBER = re.compile(r"0[xX][0-9a-fA-F]{1,16}|\d{1,20}")
_SOURCE = re.compile(r"Sources?:?\s+(.+?)\s*(?:\n\n|\Z)", re.DOTALL)
_NUMBERED = re.compile(r"(\w*[a-zA-Z])(?:\d+|(?::\d+)+|\[\d+\])")  # LREG3, sem:1, LReg[3]
_MACRO = re.compile(
    r"(?:TTI|TT_OP|TT|TTO)_(?P<name>\w+?)|TTF_(?P<of>[A-Z0-9]+)_(?P<operand>\w+)", re.IGNORECASE
)
_MOST_USERS = 6
_MOST_NEAR = 8
_SEMAPHORE = ("P_", "SEMAPHORE_", "SEMAPHORE::", "P_SEMAPHORE_", "P_SEMAPHORE::")
_GPR_THREADS = ("unpack", "math", "pack")


@dataclass(frozen=True)
class Explanation:
    """One thing that the name stands for: its kind, and lines about it."""

    kind: str
    name: str
    lines: tuple[str, ...]

    def as_dict(self) -> dict[str, object]:
        """JSON-ready values."""
        return {"kind": self.kind, "name": self.name, "lines": list(self.lines)}


def explain(text: str) -> list[Explanation]:
    """Everything that `text` stands for; InputError with near names for nothing."""
    wanted = text.strip()
    if _NUMBER.fullmatch(wanted):
        return list(_number(int(wanted, 16 if wanted[:2] in ("0x", "0X") else 10)))
    found = [one for look in _LOOKS for one in look(wanted)]
    if not found and (numbered := _NUMBERED.fullmatch(wanted)):
        found = [one for one in _other(numbered[1]) if one.kind == "state"]
    if found:
        return found
    raise InputError(f"nothing is called {wanted!r}", hint=_near(wanted))


def names_that_begin(text: str) -> list[str]:
    """Names that begin with `text`, whatever its case."""
    wanted = text.lower()
    return [name for name in _all_names() if name.lower().startswith(wanted)]


def near_names(text: str) -> list[str]:
    """Names that hold `text`, whatever its case; first those that begin so."""
    wanted = text.lower()
    found = [name for name in _all_names() if wanted in name.lower()]
    return sorted(found, key=lambda name: not name.lower().startswith(wanted))[:_MOST_NEAR]


def _near(text: str) -> str:
    held = near_names(text) if len(text) > 2 else []
    mean = did_you_mean(text, _all_names())
    if held:
        alike = mean.lower().startswith(f"did you mean {text[0].lower()}")
        known = f"there are {', '.join(held)}"
        return f"{mean} {known}" if alike and not any(name in mean for name in held) else known
    return mean or "an instruction, field, register, rule or number"


@cache
def _all_names() -> tuple[str, ...]:
    _sources()
    rules = [rule.rule for rule in list(RULES.values())]
    fields = (*address_map.fields_of(config_fields), *address_map.fields_of(thread_fields))
    named = [cls.name for cls in instructions().values()]
    state = [one.name for one in views.NAMED]
    streams = address_map.STREAM_REGISTERS.values()
    known = (*named, *fields, *registers(), *rules, *state, *streams, *csr.NAMES.values())
    known = (*known, *SEMAPHORE_NAMES, *memmap.CORE_NAMES, *_ENDINGS, *kernel_names())
    return tuple(dict.fromkeys(known))


# Numbers


def _number(value: int) -> Iterator[Explanation]:
    if value >= 1 << 32:
        raise InputError(f"{value:#x} has more than 32 bits")
    local = 0 <= value - memmap.LOCAL_BASE < max(memmap.LOCAL_SIZES)
    if address_map.find(value) is not None or value < memmap.L1_SIZE or local:
        yield _address(value)
    if decode(value) is not None:
        yield Explanation("a Tensix word", f"{value:#010x}", tuple(_word(value)))
    text = riscv_text(value, 0, None, disassemble)
    pushed = value >> 2 | (value & 3) << 30
    if value & 3 != 3 and decode(pushed) is not None:
        about = (f"pushes {pushed:#010x}", *_word(pushed))
        yield Explanation("a .ttinsn word of a core", f"{value:#010x}", about)
    elif value & 3 == 3 and not text.startswith((".word", "unknown")):
        yield Explanation("a RISC-V instruction", f"{value:#010x}", (text,))


def _word(word: int) -> Iterator[str]:
    cls = decode(word)
    assert cls is not None
    yield disassemble(word)
    if told := meaning(word):
        yield told
    yield f"{cls.unit} unit: {cls.summary()}"
    for field in cls.fields:
        value = field.get(word)
        told = "" if field.operand is None else field.operand.text(value)
        shown = f"  [{field.hi:>2}:{field.lo:>2}] {field.name} = {value:#x}"
        yield shown + (f"  {told}" if told else "")


def _address(address: int) -> Explanation:
    if (window := address_map.find(address)) is None:
        what = "L1" if address < memmap.L1_SIZE else "local data RAM, each core its own"
        end = f"0 to {memmap.L1_SIZE:#x}" if address < memmap.L1_SIZE else "0xFFB00000 on"
        return Explanation("an address", f"{address:#010x}", (f"{what} ({end})",))
    lines = [address_map.device_name(address)]
    lines.append(f"block {window.name} ({window.low:#010x}..{window.high:#010x})")
    agents = [
        memmap.CORE_NAMES[c] if c < 5 else "the host" for c in window.agents if c <= memmap.HOST
    ]
    lines.append(f"accessed by {', '.join(agents)}")
    if (register := window.register(address - window.low)) is not None:
        lines.append(f"access: {register.access}")
        if register.inert:
            lines.append(f"inert: {register.inert}")
    index = (address - memmap.TENSIX_CFG_BASE) >> 2
    of_config = 0 <= index < 3 * CONFIG_WORDS
    for name in address_map.config_fields_at(index % CONFIG_WORDS) if of_config else ():
        field = getattr(config_fields, name)
        last = field.shift + field.mask.bit_length() - 1
        lines.append(f"  bits {field.shift}..{last}: {name}")
    lines += _documented(address_map.MODULE_OF[window])
    return Explanation("an address", f"{address:#010x}", tuple(lines))


# Names


def _instruction(name: str) -> Iterator[Explanation]:
    """By its mnemonic, or by a macro of the C header: TTI_NAME, TT_OP_NAME, TTF_NAME_operand."""
    wanted, _, operand = name.partition(".")
    if macro := _MACRO.fullmatch(name):
        wanted, operand = macro["name"] or macro["of"], macro["operand"] or ""
    for cls in instructions().values():
        if cls.name != wanted.upper():
            continue
        for field in cls.fields:
            if field.name == operand.lower():
                about = (*field.about(), *_documented(cls.__module__))
                yield Explanation("an operand", f"{cls.name}.{field.name}", tuple(about))
        if not operand:
            lines = [f"opcode {cls.opcode:#04x}, {cls.unit} unit, held by {cls.stall}"]
            lines += [line.strip() for line in (cls.__doc__ or "").strip().splitlines()]
            lines += [line for f in reversed(cls.fields) for line in f.about()]
            lines += [f"refused: {cls.refused}"] if cls.refused else []
            lines += _documented(cls.__module__)
            yield Explanation("a Tensix instruction", cls.name, tuple(lines))


def _field(name: str) -> Iterator[Explanation]:
    for kind, module in (("Config", config_fields), ("ThreadConfig", thread_fields)):
        for known, field in address_map.fields_of(module).items():
            if known.lower() == name.lower():
                yield Explanation(f"a {kind} field", known, tuple(_field_lines(kind, known, field)))


def _field_lines(kind: str, name: str, field: config_fields.Field) -> Iterator[str]:
    width = field.mask.bit_length()
    yield f"word {field.word}, bits {field.shift}..{field.shift + width - 1} ({width})"
    if kind == "Config":
        base = memmap.TENSIX_CFG_BASE + 4 * field.word
        other = "" if field.word >= SHARED else f", bank 1 {base + 4 * CONFIG_WORDS:#010x}"
        yield f"at {base:#010x}{other}"
        beside = [n for n in address_map.config_fields_at(field.word) if n != name]
    else:
        yield f"one per thread; written by SETC16 {field.word}"
        beside = [n for n in address_map.thread_fields_at(field.word) if n != name]
    if beside:
        yield f"in the same word: {', '.join(beside)}"
    yield from _used_by(name, re.sub(r"SEC1|UNP1", "SEC0", name))


def _register(name: str) -> Iterator[Explanation]:
    for known, address in registers().items():
        if known.lower() == name.lower():
            yield _address(address)
            return


def _rule(name: str) -> Iterator[Explanation]:
    _sources()  # importing them registers the rules
    for rule in list(RULES.values()):
        if rule.rule.lower() == name.lower():
            lines = [f"{rule.category}: {rule.pattern()}"]
            names = dict.fromkeys(re.findall(r"<\w+>", lines[0]))
            lines += [f"{', '.join(names)}: numbers of the run that breaks it"] if names else []
            lines += [f"hint: {rule.hint}"] if rule.hint else []
            lines += _used_by(f'"{rule.rule}"', "", "declared in")
            yield Explanation("a rule", rule.rule, tuple(lines))


_LREG = re.compile(r"lreg:?\[?(\d{1,2})\]?", re.IGNORECASE)
_GENERAL = "instructions write and read it"
_FIXED = range(8, 11)  # those that SFPCONFIG does not set
_LANES = 15


def _role(n: int) -> str:
    """What instructions do with an LReg."""
    if n < 7:
        return _GENERAL
    if n == 7:
        return f"{_GENERAL}; where a mode says so, its low four bits name another LReg of each lane"
    if n == _LANES:
        return "a constant: twice the number of the lane, as an integer"
    bits = LREG_CONSTANTS[n - _FIXED.start]
    (value,) = struct.unpack("<f", struct.pack("<I", bits))
    set_ = "" if n in _FIXED else "SFPCONFIG sets it, at power-up it is "
    return f"a constant for instructions: {set_}{float(f'{value:.6g}')} ({bits:#010x})"


def _lreg(name: str) -> Iterator[Explanation]:
    """A register of the vector unit: LREG3, LReg[3], lreg:3."""
    if (found := _LREG.fullmatch(name)) is not None and (n := int(found[1])) <= _LANES:
        about = "a register of the vector unit: 32 lanes of 32 bits"
        shown = f"bhemu step PROGRAM: lreg {n}, watch lreg:{n}; bhemu dump PROGRAM lreg"
        yield Explanation(about, f"LReg[{n}]", (_role(n), shown))


def _listed() -> Iterator[tuple[str, str, tuple[str, ...], tuple[str, ...]]]:
    """What has one name, or a few: its kind, its name, others of it in capitals, lines about it."""
    for number, known in address_map.STREAM_REGISTERS.items():
        place = f"0xFFB40000 + 0x1000 * stream + {4 * number:#x}"
        yield "a stream register", known, (), (f"register {number}, at {place}",)
    for number, known in csr.NAMES.items():
        yield "a CSR", known, (), (f"number {number:#x} (CSRs, Blackhole ISA)",)
    for one in views.NAMED:
        shown = f"shown by bhemu dump PROGRAM {one.name}; in step: dump {one.name}"
        yield "state", one.name, (), (one.doc, shown)
    for c, known in enumerate(memmap.CORE_NAMES):
        yield "a RISC-V core", known, (), tuple(_core(c))
    for t in range(3):
        about = f"executes the words that trisc{t} pushes (TensixCoprocessor, Blackhole ISA)"
        shown = f"bhemu step PROGRAM: where; break PACR on T{t}; tstep T{t}"
        yield "a thread of the coprocessor", f"T{t}", (), (about, shown)
    for i, abi in enumerate(ABI_NAMES):
        about = f"{abi} in the calling convention"
        yield "a register of a core", f"x{i}", (abi.upper(),), (about,)
    for i, known in enumerate(SEMAPHORE_NAMES):  # as tt-llk calls them
        about = f"semaphore {i} of a tile, as tt-llk uses it; sem_sel = {1 << i:#x} in SEMINIT,"
        about += " SEMPOST, SEMGET and SEMWAIT"
        also = tuple(f"{before}{known}" for before in _SEMAPHORE)
        yield "a semaphore", known, also, (about, f"watch sem:{i} in step; bhemu dump PROGRAM sem")
    for code, known in formats.NAMES.items():
        yield "a data format", known, (), (f"code {code}",)
    for i, block in enumerate(BLOCKS.names):
        held = [cls.name for cls in instructions().values() if cls.stall_mask >> i & 1][:10]
        about = f"bit {i} of stall_res, {1 << i:#x}: holds {', '.join(held)} ..."
        kind, also = "a class of instructions that STALLWAIT holds", (f"STALL_{block}", f"B{i}")
        yield kind, block, also, (f"{about} (STALLWAIT, Blackhole ISA)",)
    for i, condition in enumerate(CONDITIONS.names):
        short = condition.upper().removesuffix(" IDLE")
        about = f"bit {i} of wait_res, {1 << i:#x} (STALLWAIT, Blackhole ISA)"
        yield "a condition of STALLWAIT", condition, (short, f"WAIT_{short}", f"C{i}"), (about,)
    for thread, names in enumerate(GPRS):
        for index, known in names.items():
            about = f"GPR {index} of T{thread} in tt-llk's p_gpr_{_GPR_THREADS[thread]}"
            yield "a Tensix GPR", known, (), (about,)
    for rule, lines in _ENDINGS.items():
        yield "how a run ends", rule, (), lines


def _core(c: int) -> Iterator[str]:
    name = memmap.CORE_NAMES[c]
    pushes = f"thread T{c - 1}" if c in TRISCS else "threads T0 to T2"
    other = "" if c == 0 else f", or where {name.upper()}_RESET_PC says"
    yield f"pushes Tensix words to {pushes if c in TENSIX_CORES else 'no thread'}"
    yield f"local data RAM: {memmap.LOCAL_SIZES[c]:#x} bytes at {memmap.LOCAL_BASE:#x}"
    yield f"starts at {memmap.RESET_PCS[c]:#x}{other}"
    yield f"held in reset by bit {memmap.SOFT_RESET_BITS[c]} of SOFT_RESET_0"
    yield f"bhemu step PROGRAM: regs {name}, break PLACE {name}"


def _other(name: str) -> Iterator[Explanation]:
    for kind, known, also, lines in _listed():
        if name.upper() in (known.upper(), *also):
            yield Explanation(kind, known, lines)
    for one in kernel_names().get(name, ()):
        told = (f"{one.header}:{one.line}: {one.declared}", *([one.about] if one.about else []))
        yield Explanation("a name of bhemu's C library", one.name, told)


_LOOKS = (_instruction, _field, _register, _rule, _lreg, _other)


# Sources


@cache
def _sources() -> Mapping[str, str]:
    """The text of each module by its name."""
    found = {}
    for package in (tensix, devices, riscv):
        for about in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not about.ispkg and not about.name.endswith(("config_fields", "thread_fields")):
                found[about.name] = inspect.getsource(importlib.import_module(about.name))
    return found


def _used_by(name: str, default: str = "", verb: str = "used by") -> Iterator[str]:
    """The modules whose code holds a word, with the chapters they name."""
    for wanted in filter(None, (name, default)):
        word = re.compile(rf"(?<!\w){re.escape(wanted)}(?!\w)")
        users = [m for m, text in _sources().items() if wanted in text and word.search(text)]
        for module in users[:_MOST_USERS]:
            lines = list(_documented(module))
            yield f"{verb} {lines[0]}"
            yield from lines[1:]
        if users:
            return
    if verb == "used by":
        yield "used by nothing that bhemu models: storage"


def _documented(module: str) -> Iterable[str]:
    """The module's name and first sentence, and the chapters it is written after."""
    document = inspect.getdoc(importlib.import_module(module)) or ""
    first = document.partition("\n\n")[0].replace("\n", " ")
    yield f"{module.removeprefix('bhemu.')}: {first}"
    if source := _SOURCE.search(document):
        yield f"source: {' '.join(source[1].split())}"


# How a run ends by an error that no declaration in the code describes: by rule, what breaks it with
# the class of the error and its exit code, and what to do.  Instructions, devices and the NoC
# declare theirs (tensix/rules.py).


def _coded(kind: type[errors.BhemuError], text: str) -> str:
    return f"{kind.__name__}, exit code {kind.EXIT_CODE}: {text}"


_WAITS = "bhemu why PROGRAM says which agent waits for which, and what could have ended the waits"
_LLK = "is it the brisc.elf of tt-llk's tests, for BRISC boot mode, without coverage?"

_ENDINGS = {
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
