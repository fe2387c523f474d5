"""Writes docs/models.md: what is modelled, inert, refused and unverified, and every rule."""

import ast
import importlib
import inspect
import itertools
import pkgutil
import sys
from collections import Counter
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "scripts")]

from models_text import SHORT  # noqa: E402

import bhemu.devices  # noqa: E402
import bhemu.tensix  # noqa: E402
from bhemu.cli.isa import modes_of, row  # noqa: E402
from bhemu.devices.bus.address_map import BLOCKS, INERT, NAMED, find  # noqa: E402
from bhemu.devices.bus.window import EVERYONE, WORD, Window  # noqa: E402
from bhemu.memmap import CORE_NAMES  # noqa: E402
from bhemu.tensix import units  # noqa: E402
from bhemu.tensix.insn import REGISTRY  # noqa: E402
from bhemu.tensix.status import RULES  # noqa: E402
from random_programs.divergences import TABLE  # noqa: E402

TARGET = ROOT / "docs" / "models.md"
assert units.MODULES

CONFLICTS = [
    (
        "SFPLOADMACRO: a sequence byte that schedules nothing (choice 0)",
        "first forgets what is due in the sub-unit after the byte's delay, a byte of 0 what is due"
        " in the next cycle; then schedules nothing",
        "nothing is forgotten: tt-llk's reciprocals (but the approximate one) and conversions of"
        " uint32 have other macros under way in the sub-units for which a byte is 0",
        "the kernels, always",
    ),
    (
        "SFPLOADMACRO: operands of a scheduled SFPSWAP",
        "the loaded LReg replaces VD, and VC unless bit 7 of the byte is set; SFPSWAP reads VD and"
        " VC: without bit 7 it compares the loaded LReg with itself",
        "SFPSWAP reads and writes VB and VC, VB in the place of VD: with bit 7 the loaded LReg and"
        " the template's VC (reciprocal, maxima), without it the template's VD and the loaded LReg"
        " (clamped exponential)",
        "the kernels, always; without bit 7 the template's VD must be a constant"
        " (VECTOR-MACRO-SWAP-OTHER), LReg[16] as destination is refused (VECTOR-MACRO-OPERAND)."
        " SFPAND and SFPOR in mode 0, which no kernel schedules without bit 7, follow the text",
    ),
    (
        "16-bit writes to Dst with bit 11 of DBG_FEATURE_DISABLE set: the low halves",
        "something, generally garbage, is left there",
        "sums of rows with enforced fp32 accumulation (layernorm) write high halves first and read"
        " the low halves of the same rows afterwards. Comments beside tt-llk's broadcasts and"
        " transpositions say that such moves leave zeros; those kernels need neither reading",
        'with reference = "llk" low halves of rows that were valid keep what they hold'
        " (DST-LOW-KEPT); else they are unpredictable (PACR-UNWRITTEN where they are packed)",
    ),
    (
        "MOVD2B with dest_32b_lo and ALU_ACC_CTRL_Fp32_enabled 0",
        "undefined",
        "the same sums, and broadcasts of 32-bit datums unpacked to Dst, read the low halves of"
        " 32-bit datums so, with bit 11 of DBG_FEATURE_DISABLE set",
        'with reference = "llk" and that bit the kernels (MOV-LOW-READ); else refused'
        " (MOV-LOW-OF-16)",
    ),
    (
        "Products with ALU_ACC_CTRL_Zero_Flag_disabled_src set",
        "denormals are flushed in any case; ttsim refuses MVMUL and GAPOOL then, and does not flush"
        " those of SrcB in ELWMUL",
        "sums of rows with enforced fp32 accumulation set the bit and leave it set",
        "the text; a result that a denormal of SrcB could change is in doubt (FPU-DENORMALS)."
        " ELWMUL follows ttsim",
    ),
    (
        "SFPLOADMACRO: SFPLOAD in the second cycle of a scheduled SFPSWAP of the same LReg",
        "gives no order of two writes",
        "tt-llk's maximum and minimum of columns need what was loaded",
        'with reference = "llk" the kernels (VECTOR-MACRO-LOAD-WINS); else refused'
        " (VECTOR-MACRO-SWAP-LOAD)",
    ),
    (
        "MOP template 1: outer and inner count",
        "low seven bits",
        "tt-llk's test of tensix_sync() and MOP has 1000 by 1000: fields of 10 bits",
        'with reference = "llk" up to 1023, else up to 127 (MOP-COUNT)',
    ),
    (
        "UNPACR_NOP that clears both banks (bank_clr_ctrl)",
        "unsupported: waits for one bank and clears both",
        "tt-llk's custom matmul: waits for both banks, then clears both",
        'with reference = "llk" the kernels, for zeros without handing over; else refused'
        " (UNPACR-NOP-BANKS)",
    ),
]


REACHED = [
    (
        "unpackers, matrix unit, packer: StochRndType other than None",
        "FPU-STOCHASTIC, PACR-ALU_ROUNDING_MODE_Gasket_srnd_en, .._Packer_srnd_en",
        "refused; stochastic = SEED, up or down models it, not bit-exact",
    ),
    (
        "broadcasts of 32-bit datums unpacked to Dst (llk_math_eltwise_unary_datacopy.h)",
        "SETDVALID, MOV-LOW-OF-16",
        'executed with reference = "llk": the bank has no format, which the moves do not need'
        " (SETDVALID-FORMAT, MOV-LOW-READ noted); refused otherwise",
    ),
    (
        "sums of rows with enforced fp32 accumulation (llk_math_reduce.h, the reduce_custom files)",
        "FPU-DENORMALS, MOV-LOW-OF-16",
        'executed with reference = "llk" (DST-LOW-KEPT noted); a result that a denormal of SrcB'
        " could change is in doubt, see above",
    ),
    (
        "sums of rows of int8 (llk_math_reduce.h, is_int_fpu_en): FP16A_FORCE_Enable",
        "none",
        "executed after the ISA text",
    ),
    (
        "transposition of fp32 in Dst (llk_math_transpose_dest.h, is_32bit)",
        "MOV-LOW-OF-16",
        "refused: the kernel leaves bit 11 of DBG_FEATURE_DISABLE clear, and tt-llk's own tests say"
        " that it fails on Blackhole; int32 works",
    ),
    (
        "untilizing packs, strided (llk_pack.h, llk_pack_untilize.h): one or two interfaces",
        "PACR-STRIDED, PACR-INTERFACES",
        "executed with remap_addrs and swizzle_32b set, as llk_math_reconfig_remap sets them; else"
        " refused, because the order of rows is not followed",
    ),
    (
        "tiles of few rows and narrow tiles after other formats: rows that earlier kernels left",
        "FPU-EXPONENT, PACR-UNWRITTEN",
        "refused only where such a datum reaches an output",
    ),
    (
        "maxima with an index, L1 as source of the packer, row_pad_zero, INT_DESCALE, MVMUL with"
        " broadcast, ZEROSRC with minus infinity",
        "POOL-MODE, PACR-*, MVMUL-MODE, ZEROSRC-VALUE",
        "refused; no kernel of the checkout issues them (INDEX_DIS, NO_ROW_PAD_ZERO, instr_mod19 0,"
        " zero_val 0 in all of them)",
    ),
    (
        "sdpa_custom_mm: SEMPOST of a semaphore whose maximum nobody set",
        "SEM-POST-FULL",
        'noted with reference = "llk": by the ISA text the maximum is for SEMWAIT alone',
    ),
    (
        "matmul_custom_compressed: ZEROACC of block 255",
        "ZEROACC-WHERE",
        'noted with reference = "llk": by the ISA text nothing is cleared there',
    ),
    (
        "matmul_custom_compressed: MVMUL of bfp2",
        "none",
        "executed after the ISA text, as bf16; ttsim takes bfp2 in element-wise operations only",
    ),
    (
        "dest_copy: a core stores to rows of Dst that ZEROACC cleared",
        "DST-WINDOW-CLEARED",
        'noted with reference = "llk" (DST-WINDOW-STORED): the row counts from the first store on,'
        " as with SFPSTORE, and its other datums are what it held; loads stay refused",
    ),
    (
        "dbg_get_array_row of SrcA: CLEARDVALID of a bank that is not valid, MOVDBGA2D from one",
        "SRCA-NOT-VALID, MOVDBGA2D-FORMAT",
        'noted with reference = "llk", the format being SFPU_DEST_FMT_Base as the ISA text says',
    ),
    (
        "dbg_thread_unhalt: a store to SOFT_RESET_0 that resets a packer and releases NCRISC, for"
        " which there is no code",
        "MMIO-FIELD",
        'noted with reference = "llk" (DEBUG-PACKER-RESET): nothing that an idle packer loses is'
        " modelled; the stand-in for tt-exalens holds NCRISC again",
    ),
    (
        "topk_xl, top32_rm: SFPCONFIG of a LaneConfig that differs from lane to lane",
        "VECTOR-CONFIG-LANES",
        "EXCHANGE_SRCB_SRCC (bit 8) is executed, after the ISA text; other bits are refused, no"
        " kernel makes them differ",
    ),
    (
        "conversions to uint16 (ckernel_sfpu_typecast.h): SFPSWAP mode 15",
        "VECTOR-SWAP-MODE",
        'noted with reference = "llk": by the ISA text silicon does what mode 9 does',
    ),
    (
        "fast tilize with whatever RWC.Dst holds (MOVA2D), sdpa_custom_mm (MOVB2D of row 1)",
        "MOV-DST-ROW, MOV-SRC-ROW",
        'noted with reference = "llk": the ISA text leaves out the low bits; ttsim stops',
    ),
    (
        "ckernel_debug.h: dumps of SrcA, SrcB and Dst through the debug port",
        "SETDVALID",
        'executed with reference = "llk" as far as the array read port goes; other ports are'
        " refused",
    ),
]


def table(head: tuple[str, ...], rows: list[tuple[object, ...]]) -> list[str]:
    """A markdown table."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(str(c) for c in r) + " |" for r in rows]


def mode_rows() -> list[tuple[object, ...]]:
    """Number of modes of each instruction by status, and the rules that refuse some."""
    rows: list[tuple[object, ...]] = []
    for opcode in sorted(REGISTRY):
        modes = modes_of(REGISTRY[opcode])
        counts = Counter(mode["status"] for mode in modes)
        rules = sorted({mode["reason"] for mode in modes if mode["status"] == "refused"})
        numbers = [counts[status] or "" for status in ("golden", "isa-text", "refused")]
        if modes:
            rows.append((REGISTRY[opcode].name, *numbers, ", ".join(rules)))
    return rows


def block_rows() -> list[tuple[object, ...]]:
    """Range and name of each block, who may access it and in which widths."""
    rows: list[tuple[object, ...]] = []
    for low, high, name in BLOCKS:
        window = find(low)
        who, ways = "all", ("1, 2, 4", "1, 2, 4")
        if window is not None:
            who, ways = agents(window), (widths(window, False), widths(window, True))
        elif low:
            who = "each core its own"
        rows.append((f"{low:#010x}", f"{high - 1:#010x}", name, who, *ways))
    return rows


def agents(window: Window) -> str:
    """Names of those that may access a window."""
    if window.who == EVERYONE:
        return "all"
    return ", ".join((*CORE_NAMES, "host")[agent] for agent in window.who)


def widths(window: Window, store: bool) -> str:
    """Bytes that a load or store may have."""
    if all(window.refuses(store, agent) for agent in window.who):
        return "-"
    return "4" if (window.stores if store else window.loads) == WORD else "1, 2, 4"


def severity(number: int) -> str:
    """What breaking a rule does: "error", "selectable" where Tile(ub=...) may let it pass, "noted"
    where it is counted only."""
    if number in handed_to("violated") | handed_to("excused"):
        return "selectable"
    return "noted" if number in handed_to("noted") else "error"


@cache
def handed_to(function: str) -> frozenset[int]:
    """Numbers of the rules that some unit or device hands to a function of quirks.py, directly."""
    found = set()
    rooms = ((bhemu.tensix, "bhemu.tensix."), (bhemu.devices, "bhemu.devices."))
    for module in itertools.chain(*(pkgutil.walk_packages(r.__path__, name) for r, name in rooms)):
        loaded = importlib.import_module(module.name)
        for node in ast.walk(ast.parse(inspect.getsource(loaded))):
            named = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
            if named and node.func.id == function:
                names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
                values = {vars(loaded).get(name) for name in names}
                values |= {
                    getattr(vars(loaded).get(n.value.id), n.attr, None)
                    for n in ast.walk(node)
                    if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name)
                }
                found |= {v for v in values if isinstance(v, int) and v in RULES}
    return frozenset(found)


def text() -> str:
    """The whole page."""
    from bhemu.devices.bus import dispatch
    from bhemu.riscv import hooks

    assert dispatch.STORE
    assert hooks.NONE == 0
    entries = [row(REGISTRY[opcode]) for opcode in sorted(REGISTRY)]
    counts = Counter(e["status"] for e in entries)
    lines = [
        "<!-- Written by scripts/make_models.py; do not edit. -->",
        "# What is modelled",
        "",
        f"137 Tensix instructions: {counts['golden']} golden (executed by a golden case),"
        f" {counts['isa-text']} after the ISA text, {counts['refused']} refused,"
        f" {counts['unimplemented']} not implemented yet (refused by name).",
        "",
        SHORT,
        "## Instructions",
        "",
        *table(
            ("mnemonic", "opcode", "unit", "status", "what it does"),
            [
                (
                    e["mnemonic"],
                    f"{e['opcode']:#04x}",
                    e["unit"],
                    e["status"] + (f": {e['reason']}" if "reason" in e else ""),
                    e["summary"],
                )
                for e in entries
            ],
        ),
        "",
        "## Modes",
        "",
        "A mode is the value of the fields that select behaviour, with the formats in force."
        " Golden: a golden case or vector executes it. ISA text: it executes, without one of those."
        " `bhemu isa NAME --json` lists them, `bhemu isa --coverage RUN` says which ones a program"
        " uses.",
        "",
        *table(("mnemonic", "golden", "ISA text", "refused", "refused by"), mode_rows()),
        "",
        "## Address blocks",
        "",
        "Who may access a block, and in which widths (bytes); `-`: refused.",
        "",
        *table(("from", "to", "block", "who", "loads", "stores"), block_rows()),
        "",
        "## Registers by name",
        "",
        *table(
            ("address", "name", "access"),
            [
                (f"{address:#010x}", register.name, register.access)
                for address, register in NAMED.items()
                if register.modelled
            ],
        ),
        "",
        "## Inert registers",
        "",
        *table(
            ("address", "name", "why it may be inert"),
            [(f"{a:#010x}", register.name, register.inert) for a, register in INERT.items()],
        ),
        "",
        "## Known divergences from ttsim",
        "",
        "Everything else that `bhemu diff` finds counts as a difference.",
        "",
        *table(
            ("id", "when", "what", "bhemu follows", "why"),
            [(d.id, d.when, d.what, d.follows, d.why) for d in TABLE],
        ),
        "",
        "## Where production kernels and the ISA text disagree",
        "",
        "ttsim executes none of this, so nothing else decides.",
        "",
        *table(("what", "the ISA text", "production kernels", "bhemu follows"), CONFLICTS),
        "",
        "## What kernels of tt-llk reach of the refusals",
        "",
        "From the sources of tt_llk_blackhole: each place where a kernel uses what some rule"
        " refuses by default, and what is done.",
        "",
        *table(("kernel", "rule", "decision"), REACHED),
        "",
        "## Rules",
        "",
        "Severity: `error` stops the program; `selectable` does so unless `ub` is `warn` or"
        " `silicon`, which go on with what the ISA says silicon does; `noted` is counted only: the"
        " golden model's way was taken, silicon has another (PACR-COMPRESSION), or that of tt-llk's"
        " kernels, where the ISA text has none.",
        "",
        *table(
            ("rule", "category", "severity", "sentence"),
            [
                (r.rule, r.category, severity(r.number), r.text.replace("|", "\\|"))
                for r in sorted(RULES.values(), key=lambda r: r.rule)
            ],
        ),
        "",
    ]
    return "\n".join(lines)


README = ROOT / "README.md"
MARKS = ("<!-- models: scripts/make_models.py -->\n", "<!-- end of models -->\n")
STATUSES = ("golden", "isa-text", "refused", "unimplemented")


def readme() -> str:
    """README.md with its table of units renewed."""
    page = README.read_text(encoding="utf-8")
    head, rest = page.split(MARKS[0])
    tail = rest.split(MARKS[1])[1]
    units_of = Counter((row(cls)["unit"], row(cls)["status"]) for cls in REGISTRY.values())
    names = sorted({unit for unit, _ in units_of})
    rows = [(name, *(units_of[name, status] or "" for status in STATUSES)) for name in names]
    total = ("all 137", *(sum(units_of[n, status] for n in names) for status in STATUSES))
    head_row = ("unit", "golden", "ISA text", "refused", "not yet")
    lines = table(head_row, [*rows, total])
    return head + MARKS[0] + "\n".join(lines) + "\n" + MARKS[1] + tail


if __name__ == "__main__":
    pages = {TARGET: text(), README: readme()}
    if "--check" in sys.argv:
        sys.exit(any(path.read_text(encoding="utf-8") != page for path, page in pages.items()))
    for path, page in pages.items():
        path.write_text(page, encoding="utf-8")
