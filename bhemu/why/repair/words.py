"""Edits of what a site gives away: fields of Tensix words and of Config words, the whole store."""

from collections.abc import Iterator
from itertools import combinations, permutations

from bhemu.devices.bus.naming import device_name
from bhemu.memmap import (
    GPR_BASE,
    GPR_END,
    MOP_CFG_BASE,
    MOP_CFG_END,
    TENSIX_CFG_BASE,
    TENSIX_CFG_END,
)
from bhemu.tensix import config_fields, thread_fields
from bhemu.tensix.config import CONFIG_WORDS
from bhemu.tensix.config_fields import Field
from bhemu.tensix.insn import REGISTRY, Instruction, decode, disassemble
from bhemu.why.repair.edits import (
    NOP,
    Code,
    Edit,
    Site,
    alternatives,
    moves,
    pushes,
    pushing,
    storing,
    xoring,
)

Known = dict[tuple[str, str], frozenset[int]]
_MODES, _SECTIONS = ("", "addr_mode"), 8  # of all instructions


def _by_word(fields: object) -> dict[int, list[tuple[str, Field]]]:
    found: dict[int, list[tuple[str, Field]]] = {}
    for name, field in vars(fields).items():
        if isinstance(field, Field):
            found.setdefault(field.word, []).append((name, field))
    return found


_RS2 = 31 << 20
_CLEARED = 0.02  # how much less likely it is that a size or stride was meant to be 0
_SAME = 0.01  # how much likelier it is that a field was meant to be as another of its word
_COUNTS = 0.85  # how much less likely values are exchanged that a count takes
_LATER = 0.5  # of values taken in turn, that the first should be a later one
_UNUSED = 0.02  # how much less likely it is that a field matters that is 0 all over the program
_SPARE = 0.02  # how much likelier an address mode is that is set up and that no word names
_AGAIN = 1.19  # cost of a word once more behind one of the next lines
_EXCHANGED = 0.04  # how far away it is that two operands were meant the other way round
_MADE = 0.75  # another instruction is rather chosen where the word is made
_FAR = 0.015  # of numbers without fields, others are tried in a few bits only
_TWO = 0.06  # how far away two fields are that belong together
_UPPER, _SPECIAL = (0, 8), 0x7F80  # modes that load the upper half of an LReg; infinity or NaN
_USUAL = (0x3F80, 0x0000, 0x3F00, 0x4000, 0xBF80)  # 1, 0, 0.5, 2, -1
_NO_NUMBER = -0.1  # how much likelier it is that another number was meant than another operand
_DST_FORMAT = "ALU_FORMAT_SPEC_REG2_Dstacc", "ALU_ACC_CTRL_Fp32_enabled"
_CONFIG = _by_word(config_fields)
_THREAD = _by_word(thread_fields)


Change = tuple[int, str, float]  # the other value, what is different, how far away it is


def _parts(fields: list[tuple[str, Field]], value: int) -> Iterator[Change]:
    """A configuration word with one field changed."""
    for name, field in fields:
        now = value >> field.shift & field.mask
        for other, far in alternatives(now, field.mask.bit_length()):
            changed = value & ~(field.mask << field.shift) | other << field.shift
            cleared = _CLEARED if other == 0 and field.mask > 1 else 0.0
            if other > 1 and any(value >> f.shift & f.mask == other for _, f in fields):
                cleared -= _SAME
            yield changed, f"{name} = {other:#x} instead of {now:#x}", far + cleared


def _pairs(fields: list[tuple[str, Field]], value: int) -> Iterator[Change]:
    """A configuration word with two fields changed that are easily taken for each other."""
    flags = [(name, field) for name, field in fields if field.mask == 1]
    for (one, here), (instead, there) in permutations(flags, 2):
        if value >> here.shift & 1 and not value >> there.shift & 1:
            changed = value ^ 1 << here.shift ^ 1 << there.shift
            yield changed, f"{instead} instead of {one}", _TWO
    named = dict(fields)
    if all(name in named for name in _DST_FORMAT):
        fmt, wide = (named[name] for name in _DST_FORMAT)
        for other in range(fmt.mask + 1):
            changed = value & ~(fmt.mask << fmt.shift) | other << fmt.shift
            text = f"{_DST_FORMAT[0]} = {other:#x} and the other {_DST_FORMAT[1]}"
            yield changed ^ 1 << wide.shift, text, _TWO


def sisters(cls: type[Instruction], word: int) -> Iterator[int]:
    """The same fields under the opcode of another instruction of the unit."""
    names = tuple((f.name, f.hi, f.lo) for f in cls.fields)
    for opcode, other in REGISTRY.items():
        same = names == tuple((f.name, f.hi, f.lo) for f in other.fields)
        if other is not cls and other.unit == cls.unit and same and other.execute is not None:
            yield word & 0xFFFFFF | opcode << 24


_FIRST_VALUE, _FIRST = ("SEMINIT", "init_value"), 1.0  # with a smaller one fewer go on at first
_GENEROUS = {_FIRST_VALUE: _FIRST, ("SEMINIT", "max_value"): 0.45,
             ("STALLWAIT", "wait_res"): 0.2, ("STALLWAIT", "stall_res"): 0.2,
             ("PACR", "last"): 1.0, ("UNPACR", "addr_mode"): 0.8,
             ("SETDMAREG", "reg_index_16b"): 0.03}  # fmt: skip
"""Fields that cure by giving, waiting for or going on by more than was meant, or to another GPR."""


def word_changes(word: int, known: Known) -> Iterator[Change]:
    """What else a Tensix word may have been meant to be."""
    cls = decode(word)
    if cls is None:
        return
    if cls.name == "SETC16":
        values = cls.operands(word)
        fields, value = _THREAD.get(values["setc16_reg"], []), values["setc16_value"]
        for other, text, far in (*_parts(fields, value), *_pairs(fields, value)):
            yield word & ~0xFFFF | other & 0xFFFF, text, far
    for field in cls.fields:
        if field.name == "setc16_value" and cls.operands(word)["setc16_reg"] in _THREAD:
            continue
        now, kept = field.get(word), known.get((cls.name, field.name), frozenset())
        more = _GENEROUS.get((cls.name, field.name), 0.0) + _UNUSED * (kept == {0})
        if field.width < 4:
            kept = frozenset()  # any value is known there
        spare = known.get(_MODES, frozenset()) if field.name == _MODES[1] else frozenset()
        for other, far in alternatives(now, field.width, kept):
            text = f"{cls.name} {field.name}={other:#x} instead of {now:#x}"
            fewer = _FIRST if (cls.name, field.name) == _FIRST_VALUE and other < now else 0.0
            yield field.put(word, other), text, far + more - fewer - _SPARE * (other in spare)
    yield from _finite(cls, word)
    for one, two in combinations(cls.fields, 2):
        a, b = one.get(word), two.get(word)
        if a != b and max(a, b) < 1 << min(one.width, two.width) and min(one.width, two.width) > 2:
            text = f"{cls.name} {one.name}={b:#x} {two.name}={a:#x}: exchanged"
            yield two.put(one.put(word, b), a), text, _EXCHANGED
    for other in sisters(cls, word):
        yield other, f"{disassemble(other)} instead of {disassemble(word)}", 0.0


def _finite(cls: type[Instruction], word: int) -> Iterator[Change]:
    """Usual numbers instead of an infinity or NaN that SFPLOADI loads: nobody means that."""
    if cls.name != "SFPLOADI":
        return
    values = cls.operands(word)
    if values["instr_mod0"] in _UPPER and values["imm16"] & _SPECIAL == _SPECIAL:
        for half in _USUAL:
            text = f"SFPLOADI imm16={half:#x} instead of {values['imm16']:#x}, which is no number"
            yield word & ~0xFFFF | half, text, _NO_NUMBER


def _stored(address: int, value: int, known: Known) -> Iterator[Change]:
    """What else may have been meant to be stored to a device."""
    if MOP_CFG_BASE + 8 <= address < MOP_CFG_END:
        yield from word_changes(value, known)
        return
    fields: list[tuple[str, Field]] = []
    if TENSIX_CFG_BASE <= address < TENSIX_CFG_END:
        fields = _CONFIG.get(((address - TENSIX_CFG_BASE) >> 2) % CONFIG_WORDS, [])
    if fields:
        yield from _parts(fields, value)
        yield from _pairs(fields, value)
        return
    name = device_name(address, 0)
    for other, far in alternatives(value, 32):
        near = far < _FAR or other ^ value < 256 or other < value
        if near or GPR_BASE <= address < GPR_END:
            yield other, f"{other:#x} in {name} instead of {value:#x}", far


def is_template(site: Site) -> bool:
    """Whether it stores a Tensix word of a MOP."""
    return site.address is not None and MOP_CFG_BASE + 8 <= site.address < MOP_CFG_END


def places(site: Site) -> set[object]:
    """What a site writes for others to use later: Config words, slots, GPRs, MOP words."""
    if not pushes(site):
        return {site.address}
    found: set[object] = set()
    for word in site.values:
        cls = decode(word)
        fields = {} if cls is None else cls.operands(word)
        name = "" if cls is None else cls.name
        if name == "REPLAY" and fields["load_mode"]:
            first = fields["start_idx"]
            found |= {(site.core, "slot", n % 32) for n in range(first, first + fields["len"])}
        elif name == "SETC16":
            found.add((site.core, "thread", fields["setc16_reg"]))
        elif name in ("WRCFG", "CFGSHIFTMASK"):
            found.add(TENSIX_CFG_BASE + 4 * fields["cfg_reg"])
        elif name.startswith("RMWCIB"):
            found.add(TENSIX_CFG_BASE + 4 * fields["cfg_reg_addr"])
    return found


def known_values(sites: list[Site]) -> Known:
    """The values that fields of words have in this program, by (mnemonic, field)."""
    found: dict[tuple[str, str], set[int]] = {}
    for site in sites:
        for word in site.values if pushes(site) or is_template(site) else ():
            cls = decode(word)
            for field in cls.fields if cls is not None else ():
                assert cls is not None
                found.setdefault((cls.name, field.name), set()).add(field.get(word))
    written = {value >> 1 for value in found.get(("SETDMAREG", "reg_index_16b"), set())}
    stored = [site.address for site in sites if site.address is not None]
    written |= {(at - GPR_BASE) // 4 % 64 for at in stored if GPR_BASE <= at < GPR_END}
    for mnemonic, name in (("WRCFG", "gpr_address"),):
        found[mnemonic, name] = found.get((mnemonic, name), set()) | written
    semaphores = [key for key in found if key[1] == "sem_sel"]
    named = set().union(*(found[key] for key in semaphores))  # whatever is done to them
    found.update(dict.fromkeys(semaphores, named))
    found[_MODES] = _spare_modes(found)
    return {key: frozenset(sorted(values)[:8]) for key, values in found.items()}


def _spare_modes(found: dict[tuple[str, str], set[int]]) -> set[int]:
    """The address modes of the matrix and vector unit that are set up, and named by no word."""
    registers = found.get(("SETC16", "setc16_reg"), set())
    first = thread_fields.ADDR_MOD_DST_SEC0_DestIncr.word
    named = {
        value
        for (mnemonic, field), values in found.items()
        if field == _MODES[1] and mnemonic not in ("PACR", "UNPACR")
        for value in values
    }
    return {word - first for word in registers if 0 <= word - first < _SECTIONS} - named


def several(values: list[int], found: Iterator[Change]) -> Iterator[Change]:
    """Changes of a site that gives away several values: bits the other way round in all."""
    first = values[0]
    same = ~0
    for value in values:
        same &= ~(value ^ first)
    for other, text, far in found:
        if (other ^ first) & ~same == 0:
            yield other ^ first, text, far + (_MADE if (other ^ first) >> 24 else 0.01)
    for mask in dict.fromkeys(value ^ first for value in values[1:]):
        text = f"another of the values that it takes in turn: xor {mask:#x}"
        far = 0.0 if first ^ mask < first else _LATER
        alternates = all(value ^ mask in values for value in values)
        yield mask, text, far if alternates else _COUNTS


def edits(code: Code, group: list[Site], known: Known, overwrites: bool) -> Iterator[Edit]:
    """What may be changed of one line: `group` are its sites, copies of each other.

    overwrites: it replaces what another line has put there.
    """
    site, core = group[0], group[0].core
    held, free = code.words[core], code.free_registers(core)
    what = disassemble(site.values[0]) if pushes(site) else _name(site)
    left_out = tuple((one.pc, (NOP,)) for one in group)
    yield Edit(core, left_out, f"leave out {what}", 0.9 if overwrites else 1.35)
    value = site.values[0]
    found = word_changes(value, known) if pushes(site) else _stored(site.address or 0, value, known)
    if len(site.values) > 1:
        for mask, text, far in several(site.values, found):
            changed = tuple((one.pc, xoring(held[one.pc], mask, free)) for one in group)
            yield Edit(core, changed, text, 1 + far, given=True)
        if site.address is not None:
            same = tuple((one.pc, storing(held[one.pc], value, free)) for one in group)
            yield Edit(core, same, f"{what} every time", 1.02)
        return
    for other, text, far in found:
        if site.address is None:
            changed = tuple((one.pc, (pushing(other),)) for one in group)
        else:
            changed = tuple((one.pc, storing(held[one.pc], other, free)) for one in group)
            far += _MADE if pushes(site) and (other ^ value) >> 24 else 0.0
        yield Edit(core, changed, text, 1 + far)


def exchanges(code: Code, groups: list[list[Site]]) -> Iterator[Edit]:
    """Two neighbouring lines of a core that give away each other's value; the first one's again."""
    for n, group in enumerate(groups):
        near = [other for other in groups[n + 1 : n + 4] if other[0].core == group[0].core]
        for other in near:
            a, b = group[0], other[0]
            held = code.words[a.core]
            if a.values == b.values or len(group) > 1 or len(other) > 1:
                continue
            if a.address is None and b.address is None:
                changed: tuple[tuple[int, tuple[int, ...]], ...] = (
                    (a.pc, (held[b.pc],)),
                    (b.pc, (held[a.pc],)),
                )
                what = f"{disassemble(b.values[0])} and then {disassemble(a.values[0])}"
                if moves(held[b.pc]):
                    again = ((b.pc, (held[b.pc], held[a.pc])),)
                    text = f"{disassemble(a.values[0])} once more behind this"
                    yield Edit(a.core, again, text, _AGAIN)
            elif a.address is not None and b.address is not None and not pushes(a):
                first, second = held[a.pc], held[b.pc]
                changed = (
                    (a.pc, (first & ~_RS2 | second & _RS2,)),
                    (b.pc, (second & ~_RS2 | first & _RS2,)),
                )
                what = f"exchange the values of {_name(a)} and {_name(b)}"
            else:
                continue
            yield Edit(a.core, changed, what, 1.2)


def _name(site: Site) -> str:
    assert site.address is not None
    return f"the store of {site.values[0]:#x} to {device_name(site.address, site.core)}"
