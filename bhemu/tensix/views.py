"""Named state of the coprocessor, as arrays a user can read (Tile.tensix)."""

from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from bhemu.arguments import did_you_mean
from bhemu.errors import InputError, UnknownName
from bhemu.jit.record import plain
from bhemu.tensix import config_fields, dest, thread_fields
from bhemu.tensix.config_fields import fields_of
from bhemu.tensix.state import State

_bf16, _adj32 = plain(dest.dec_bf16), plain(dest.adj32)
_SHARED = (
    *("gpr", "cfg", "thread_cfg", "dst_valid", "lreg", "cc", "rwc", "adc", "sem", "sem_max"),
    *("mutex", "replay", "mop_cfg", "src_valid"),
)


class Named(NamedTuple):
    """State under one name: what it is, and the members of the record that hold it.

    `bulky` state is too much to be shown unasked.
    """

    name: str
    doc: str
    members: tuple[str, ...]
    bulky: bool = False

    def get(self, s: Any) -> dict[str, npt.NDArray[Any]]:
        """The arrays, by member, of a State or of anything with the same attributes."""
        return {member: getattr(s, member) for member in self.members}


_NAMED = """
cores | state, pc, retired instructions | core_state core_wait pc retired
csr | CSRs that are storage | cfg0 csr csr_offset
regs | x0-x31 of each core | regs
gpr | Tensix GPRs of each thread | gpr
cfg | Config fields of both banks | cfg
thread_cfg | ThreadConfig fields of each thread | thread_cfg
sem | semaphores: value and maximum | sem sem_max
mutex | holder of each mutex | mutex
rwc | row counters, and what a carriage return restores | rwc rwc_cr
adc | address counters, and what a carriage return restores | adc adc_cr
unpack_context | config context counters of the unpackers, and SrcRow | unpack_context unpack_row
srca | SrcA rows in the format of their bank | src src_fmt
srcb | SrcB rows in the format of their bank | src src_fmt
src_banks | owner, format and doubtful rows of the Src banks, row that SHIFTXA would shift | \
src_valid src_fmt src_doubt unpack_bank matrix_bank srca_row
dst | Dst rows decoded | dst dst_valid
dst_valid | Dst rows that ZEROACC cleared | dst_valid
lreg | LReg lanes | lreg
cc | condition codes of the lanes, and their stack | cc cc_en cc_stack cc_stack_en cc_depth
lane_config | LaneConfig of each lane | lane_config
macro | SFPLOADMACRO templates, sequences and what is scheduled | macro_template macro_sequence \
macro_misc macro_slot
prng | pseudo-random generator of each lane | prng
packer | position within the tile being packed, exponent statistics | pack_open pack_data \
pack_exp pack_datum pack_row pack_exponent pack_histogram
mop | MOP configuration disassembled | mop_cfg mop_zmask_hi mop_on mop_outer mop_inner mop_stage \
mop_count
replay | replay buffers disassembled | replay replay_pc record_left record_at record_execute \
play_left play_at play_pc
fifo | queued words disassembled | fifo fifo_pc fifo_read fifo_write
gate | the word at the wait gate and what holds it | gate_full gate_word gate_pc gate_core \
gate_from gate_blocked latch latch_word
mailbox | mailbox entries | mailbox mailbox_read mailbox_write
pcbuf | PCBuf entries | pcbuf pcbuf_read pcbuf_write
niu | NoC interface units: request initiators, configuration, counters | niu_command niu_config \
niu_counter
tdma | TDMA-RISC: parameters and base addresses | tdma_param tdma_base
debug | tile control and debug registers | debug
inert | registers that change nothing modelled | inert inert_count
counters | clock, rounds, executed words | clock round executed
stream | overlay stream registers | stream
local | core-local data memory | local
l1 | L1 memory | l1
"""
NAMED = tuple(
    Named(name, doc, tuple(members.split()), name in ("stream", "local", "l1"))
    for name, doc, members in (line.split(" | ") for line in _NAMED.strip().splitlines())
)
"""The state a user can ask for by name; `regs` is no member of the record (saved.py)."""


class Tensix:
    """The coprocessor's registers.

    gpr (3,64), cfg (2,224), thread_cfg (3,68), lreg (16,32), srca/srcb (2,64,16), mop (3,9):
    uint32; dst16 (1024,16): uint16 raw, shuffled cells; dst_valid (1024,), rwc (3,4),
    adc (3,3,2,4), sem (8,), sem_max (8,), mutex (8,): int64.  Arrays are live views of the state.
    """

    _s: State
    gpr: npt.NDArray[np.uint32]
    cfg: npt.NDArray[np.uint32]
    thread_cfg: npt.NDArray[np.uint32]
    lreg: npt.NDArray[np.uint32]
    cc: npt.NDArray[np.uint32]
    dst_valid: npt.NDArray[np.int64]
    src_valid: npt.NDArray[np.int64]
    rwc: npt.NDArray[np.int64]
    adc: npt.NDArray[np.int64]
    sem: npt.NDArray[np.int64]
    sem_max: npt.NDArray[np.int64]
    mutex: npt.NDArray[np.int64]
    replay: npt.NDArray[np.uint32]
    mop_cfg: npt.NDArray[np.uint32]
    srca: npt.NDArray[np.uint32]
    srcb: npt.NDArray[np.uint32]
    mop: npt.NDArray[np.uint32]
    dst16: npt.NDArray[np.uint16]

    def __init__(self, s: State) -> None:
        views = {name: getattr(s, name) for name in _SHARED}
        self.__dict__.update(views, srca=s.src[0], srcb=s.src[1], mop=s.mop_cfg, dst16=s.dst, _s=s)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"Tensix.{name} is a view: write into it, as in {name}[...] = value")

    if not TYPE_CHECKING:  # a type checker knows every name

        def __getattr__(self, name: str) -> NoReturn:
            near = did_you_mean(name, [n for n in dir(self) if n[0] != "_"])
            raise AttributeError(f"Tensix has no state {name!r}; {near or 'dir() lists it'}")

    def __repr__(self) -> str:
        s = self._s
        words = ", ".join(f"T{t} {int(n)}" for t, n in enumerate(s.executed))
        return f"<Tensix: words executed {words}; semaphores {' '.join(map(str, s.sem))}>"

    def cfg_field(self, name: str) -> tuple[int, ...]:
        """A field by name: of Config one value per bank, of ThreadConfig one per thread."""
        for words, known in ((self.cfg, config_fields), (self.thread_cfg, thread_fields)):
            field = fields_of(known).get(str(name))
            if field is not None:
                return tuple((int(row[field.word]) >> field.shift) & field.mask for row in words)
        near = did_you_mean(name, self.cfg_fields())
        raise UnknownName(f"no configuration field {name!r}", hint=near or "cfg_fields()")

    @staticmethod
    def cfg_fields() -> list[str]:
        """The names of all fields of Config and ThreadConfig."""
        return sorted(fields_of(config_fields) | fields_of(thread_fields))

    @property
    def fifo(self) -> list[list[int]]:
        """Queued words of each thread, oldest first."""
        s = self._s
        depth = s.fifo.shape[1]
        return [
            [int(s.fifo[t, i % depth]) for i in range(int(s.fifo_read[t]), int(s.fifo_write[t]))]
            for t in range(3)
        ]

    def dst(self, fmt: str) -> npt.NDArray[Any]:
        """Dst decoded: "bf16" or "fp16" (1024,16) float32, "fp32" (512,16) float32, "int32".

        Rows that ZEROACC marked invalid show as 0.
        """
        cells: npt.NDArray[Any] = np.where(self._s.dst_valid[:, None] != 0, self._s.dst, 0).astype(
            np.uint32
        )
        if fmt == "bf16":
            decoded: npt.NDArray[Any] = (_bf16(cells) << 16).view(np.float32)
            return decoded
        if fmt == "fp16":
            exponent, mantissa = cells & 0x1F, (cells >> 5) & 0x3FF
            value: npt.NDArray[Any] = mantissa / 1024 + (exponent > 0)
            scaled = np.ldexp(value, np.maximum(exponent, 1).astype(np.int64) - 15)
            decoded = np.where(cells >> 15, -scaled, scaled).astype(np.float32)
            return decoded
        if fmt in ("fp32", "int32"):
            high = _adj32(np.arange(512))
            low = self._s.dst[high + dest.LOW_HALF].astype(np.uint32)
            low = np.where(self._s.dst_valid[high][:, None] != 0, low, 0).astype(np.uint32)
            words = (_bf16(cells[high]) << 16) | low
            decoded = words.view(np.float32 if fmt == "fp32" else np.int32)
            return decoded
        raise InputError(f"Dst has no decoded form {fmt!r}", hint="bf16, fp16, fp32 or int32")
