"""Where a C variable is: location expressions of DWARF over registers and memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from bhemu.program import values
from bhemu.program.dwarf import Block, Debug, name_of, origin
from bhemu.program.dwarf import Gone as Gone
from bhemu.program.values import CType

Read = Callable[[int, int], bytes]
_MASK = 0xFFFF_FFFF
_MOST_STEPS = 1000
_LONGEST = 4096  # bytes of an expression
_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "DW_OP_plus": lambda a, b: a + b,
    "DW_OP_minus": lambda a, b: a - b,
    "DW_OP_mul": lambda a, b: a * b,
    "DW_OP_and": lambda a, b: a & b,
    "DW_OP_or": lambda a, b: a | b,
    "DW_OP_xor": lambda a, b: a ^ b,
    "DW_OP_shl": lambda a, b: a << (b & 31),
    "DW_OP_shr": lambda a, b: a >> (b & 31),
    "DW_OP_shra": lambda a, b: (a - ((a & 1 << 31) << 1)) >> (b & 31),
}


@dataclass(frozen=True)
class Location:
    """In memory at `address`, or in register `register`, or nowhere: `value` alone is known."""

    address: int | None = None
    register: int | None = None
    value: int | None = None


@dataclass(frozen=True)
class Frame:
    """The registers and the memory of a core that stands at `pc`, an address of linking."""

    debug: Debug
    pc: int
    registers: Sequence[int]
    read: Read
    symbol: Callable[[str], int | None] = lambda name: None  # the address of an ELF's symbol


def visible(debug: Debug, pc: int, depth: int = 0) -> Iterator[tuple[str, Any, Block]]:
    """(name, entry, block) of the variables in scope; `depth` leaves inlined functions out."""
    debug.renew()
    seen = set()
    left = depth
    for block in debug.at(pc):
        if left == 0:
            for entry in block.variables:
                name = name_of(entry)
                if name and name not in seen:
                    seen.add(name)
                    yield name, entry, block
        if block.kind != "DW_TAG_lexical_block":
            if left == 0:
                return
            left -= 1


def find(debug: Debug, pc: int, name: str, depth: int = 0) -> tuple[Any, Block | None] | None:
    """The variable of that name that is seen at `pc`."""
    for known, entry, block in visible(debug, pc, depth):
        if known == name:
            return entry, block
    entry = debug.globals.get(name)
    return None if entry is None else (entry, None)


def type_of(entry: Any) -> CType:
    """The type of a variable; InputError where it cannot be read."""
    return values.of(entry)


def locate(frame: Frame, entry: Any, block: Block | None) -> Location:
    """Where the variable is; Gone where it is nowhere, InputError where that cannot be read."""
    with entry.dwarfinfo.reading():
        return _locate(frame, entry, block)


def _locate(frame: Frame, entry: Any, block: Block | None) -> Location:
    for one in origin(entry):
        constant = one.attributes.get("DW_AT_const_value")
        if constant is not None:
            return Location(value=_constant(constant.value))
        place = one.attributes.get("DW_AT_location")
        if place is not None:
            expression = _expression(frame, one, place)
            return evaluate(frame, one, block, expression)
    address = frame.symbol(name_of(entry)) if block is None else None
    if address is None:
        raise Gone("optimized out")
    return Location(address=address)


def _constant(value: Any) -> int:
    return value if isinstance(value, int) else int.from_bytes(bytes(value), "little")


def _expression(frame: Frame, entry: Any, attribute: Any) -> Any:
    """The location expression that holds at the frame's pc."""
    from elftools.dwarf.locationlists import LocationParser

    info = frame.debug.info
    assert info is not None
    parser = LocationParser(info.location_lists())
    version = entry.cu["version"]
    if not parser.attribute_has_location(attribute, version):
        raise Gone("its location is of a form that is not read")
    found: Any = parser.parse_from_attribute(attribute, version, entry)
    if hasattr(found, "loc_expr"):
        return found.loc_expr
    base = _base(entry)
    for one in found:
        if hasattr(one, "base_address"):
            base = one.base_address
            continue
        start = 0 if one.is_absolute else base
        if start + one.begin_offset <= frame.pc < start + one.end_offset:
            return one.loc_expr
    raise Gone("optimized out here")


def _base(entry: Any) -> int:
    low = entry.cu.get_top_DIE().attributes.get("DW_AT_low_pc")
    return 0 if low is None else int(low.value)


def evaluate(frame: Frame, entry: Any, block: Block | None, expression: Any) -> Location:
    """The location that an expression computes."""
    from elftools.dwarf.dwarf_expr import DWARFExprParser

    stack: list[int] = []
    if len(expression) > _LONGEST:
        raise Gone(f"its location is an expression of {len(expression)} bytes")
    operations = DWARFExprParser(entry.cu.structs).parse_expr(expression)
    if not operations:
        raise Gone("optimized out")
    for op in operations[:_MOST_STEPS]:
        name, args = op.op_name, op.args
        if name.startswith("DW_OP_reg") or name == "DW_OP_regx":
            if len(operations) > 1:
                raise Gone("it is in pieces")
            return Location(register=_register(name, "DW_OP_reg", args))
        if name == "DW_OP_stack_value" and stack:
            return Location(value=stack.pop() & _MASK)
        if name == "DW_OP_implicit_value":
            return Location(value=int.from_bytes(bytes(args[0]), "little"))
        _step(frame, (entry.cu, block), stack, name, args)
    if not stack:
        raise Gone("its location is damaged")
    return Location(address=stack.pop() & _MASK)


def _register(name: str, prefix: str, args: Any) -> int:
    digits = name.removeprefix(prefix)
    number = int(digits) if digits.isdecimal() else int(args[0])
    if not 0 <= number < 32:
        raise Gone(f"it is in register {number}, which these cores do not have")
    return number


def _step(
    frame: Frame, place: tuple[Any, Block | None], stack: list[int], name: str, args: Any
) -> None:
    """One operation of an expression that does not end it; `place`: its unit and block."""
    cu, block = place
    try:
        if name in _ARITHMETIC:
            b, a = stack.pop(), stack.pop()
            stack.append(_ARITHMETIC[name](a & _MASK, b & _MASK) & _MASK)
        elif name == "DW_OP_addr" or name.startswith("DW_OP_const"):
            stack.append(int(args[0]))
        elif name == "DW_OP_addrx":
            stack.append(cu.dwarfinfo.get_addr(cu, args[0]))
        elif name.startswith("DW_OP_lit"):
            stack.append(int(name.removeprefix("DW_OP_lit")))
        elif name.startswith("DW_OP_breg"):
            register = _register(name, "DW_OP_breg", args)
            offset = args[-1]
            stack.append(frame.registers[register] + offset)
        elif name == "DW_OP_fbreg":
            stack.append(_frame_base(frame, block) + args[0])
        elif name == "DW_OP_call_frame_cfa":
            stack.append(_frame_address(frame))
        elif name == "DW_OP_plus_uconst":
            stack.append(stack.pop() + args[0])
        elif name == "DW_OP_deref":
            stack.append(int.from_bytes(frame.read(stack.pop() & _MASK, 4), "little"))
        elif name == "DW_OP_neg":
            stack.append(-stack.pop() & _MASK)
        elif name == "DW_OP_not":
            stack.append(~stack.pop() & _MASK)
        elif name == "DW_OP_dup":
            stack.append(stack[-1])
        elif "entry_value" in name:
            raise Gone("optimized out (its value at the call is not kept)")
        else:
            raise Gone(f"its location uses {name}, which is not read")
    except IndexError as error:
        raise Gone("its location is damaged") from error


def _frame_base(frame: Frame, block: Block | None) -> int:
    while block is not None and block.outer is not None:
        block = block.outer
    attribute = None if block is None else block.entry.attributes.get("DW_AT_frame_base")
    if block is None or attribute is None:
        raise Gone("its function has no frame base")
    found = evaluate(frame, block.entry, None, _expression(frame, block.entry, attribute))
    if found.register is not None:
        return frame.registers[found.register]
    return (found.address if found.value is None else found.value) or 0


def _frame_address(frame: Frame) -> int:
    """The canonical frame address, from the call frame information."""
    info = frame.debug.info
    assert info is not None
    sources = ((info.has_CFI, info.CFI_entries), (info.has_EH_CFI, info.EH_CFI_entries))
    for present, entries in sources:
        for entry in entries() if present() else ():
            rule = _frame_rule(entry, frame.pc)
            if rule is not None and rule.reg is not None and 0 <= rule.reg < 32:
                return int(frame.registers[rule.reg] + rule.offset) & _MASK
    raise Gone("its frame is not described")


def _frame_rule(entry: Any, pc: int) -> Any:
    """How an entry of the call frame information computes the frame address; None elsewhere."""
    header = getattr(entry, "header", {})  # the end of .eh_frame has none
    if "initial_location" not in header:
        return None
    low = header["initial_location"]
    if not low <= pc < low + header["address_range"]:
        return None
    if len(entry.instructions) + len(entry.cie.instructions) > _MOST_STEPS:
        return None  # each may stand for a row of all registers
    return [row for row in entry.get_decoded().table if row["pc"] <= pc][-1]["cfa"]
