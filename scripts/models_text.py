"""What docs/models.md says beside its generated tables."""

SHORT = """## Where the model falls short

Results are compared with ttsim v1.10.0. No result was compared with silicon; modelled times are
([timing.md](timing.md)).

### Windows and cores

* These block windows have no model: PIC; TDMA-RISC except for the mover's commands and status
  (packer tile sizes, zero flags and SETREG scalers are missing); the debug block except for resets,
  reset PCs, wall clock, config read port, Dst array port, PCBuf overrides, DISABLE_RESET, debug
  pushes, the debug port of brisc and the TRISCs, and the pcs, RWC and ADC counters of the debug
  daisychain. Its other signals, samples at intervals, watchdog, ECC and timestamp dump are refused
  by name. Performance counters count with `timing="model"` only: cycles, work of the matrix and
  vector units, and words of T0.
* A core's local memory is cleared when the core enters reset; on silicon, when it leaves reset. The
  reset bits of the coprocessor's units are refused.
* Overlay streams are storage of an idle stream. No stream is ever started, so STREAMWAIT for messages
  above 0 waits for ever.
* Mutex waiters have an order only where the ISA names one (two waiters).
* A row of the Dst window that ZEROACC marked as zero is refused: sources disagree on what a core
  reads there. With reference `llk` a store makes such a row valid (see below).
* A misaligned load or store is refused (RV-ALIGN) at any address, before it has any effect.
* The cores' floating point (parts of F and Zfh) and TRISC2's vectors (parts of V) are not modelled,
  because no text at hand says which parts exist. Each word is refused by name (RV-EXTENSION;
  RV-VECTOR on a core other than TRISC2). misa shows F and V nevertheless, as hardware does.
* `lr.w`, `sc.w`, and the CSRs of floating point, vectors, interrupts and performance events are
  refused, and so are the stream status CSRs of the TRISCs. Writes to mstatus, misa and mhartid are
  dropped, as hardware drops them, and noted (RV-CSR-DROPPED). Writes to tt_cfg_qstatus and
  tt_cfg_bstatus last only while DisTTStatusReg is set.
* L0 data caches of the cores are off, and loads are coherent, unless `l0="model"` is given. A core then
  has four lines of 16 bytes, which loads of L1 fill. Only the core's own stores, fences and atomics
  drop them, and one hit in 128. Two points are assumed: the line used longest ago makes room, and
  the hits that drop the lines come from a generator that begins with the tile's seed. The store
  queue and its order are not modelled: a store is in L1 at once.
* New code that the host or the coprocessor writes to L1 is noticed. Code that a core stores there
  needs RISCV_IC_INVALIDATE, as on silicon: without it engine "unicorn" may go on with its old
  translation, while engine "compiled" executes the new code at once.

### NoC and chip

* On a tile alone the NoC interface units are registers only; a store that starts a transfer is refused
  (NOC-TRANSFER). On a chip they send, and a request takes effect whole at the end of the round: no
  packet is split, delayed by others or cut short.
* Refused by name: transfers above 16384 bytes (the ISA text allows no longer request; hardware is said
  to split one, but no text says how its counters then count, and tt-metal's kernels split
  themselves), answers to a third tile, overlay delivery and header store, exclusion from multicasts,
  atomics other than increment, swap, and compare and swap (all but increment follow the ISA text
  alone), changes of the translation tables, the tile's clock and the request FIFO (bits 12 and 16 of
  NIU_CFG_0; bits 13 and 15 do nothing in a Tensix tile), reserved bits, interrupts, router debug, and
  requests to L2CPU, security and router-only tiles.
* The data of a write are taken when it is sent, so counters 32-47 stay 0. Data words are lengths
  divided by 64 at any alignment.
* PCIe, ARC and Ethernet tiles are memory. With two chips the Ethernet tiles have cores
  ([hosts.md](hosts.md)).
* Requests of one tile arrive in the order in which they were sent, tile after tile.
  `delivery="late"` lets a request pass every other one that hardware does not keep in order;
  `timing="model"` performs each in the cycle in which it arrives.
* Unlike ttsim: the opt-out masks of the receiving tile decide whether it takes a multicast (ttsim asks
  the sender's), spans may wrap around, every counter exists, NIU_CFG_0 of a chip's tile reads bit 14
  as chip firmware leaves it (ttsim: 0), and clearing it gives physical coordinates.
* Like ttsim, unlike the ISA text, and noted: coordinates stay as they were stored (NOC-WRITE-BACK), and
  a posted atomic writes its old value (NOC-POSTED-ATOMIC). NoC 1 takes the opt-out masks in columns
  and rows of NoC 0. A harvested DRAM bank is bank 7.

### Order and time

* A word is complete when it leaves the wait gate, unless `late` draws or `timing="model"` models when
  units complete it. [timing.md](timing.md) says what may be late by which text, what is never late,
  and what modelled times leave out (instruction caches, mispredicted branches, ...).
* The mover is never busy: a transfer is complete with its XMOV or command. Overlapping copies, and
  destinations beyond Config, are refused.
* A store to a Config word races (CFG-IN-USE) with those UNPACR and PACR words of the core's own thread
  that read it and have not executed yet (UNPACR: of its unpacker and context). Races with other
  instructions and between threads are left to `bhemu why`.
* Auto TTSync follows the ISA text where it is switched on; resources declared by RESOURCEDECL are
  refused. Where it is off, an access to GPRs or Config takes place as soon as the core's own thread
  cannot go on.
* Livelock (polling for ever) is found 2000 rounds after the last Tensix word, by following what each
  running core can still do while nothing changes. These loops are not found and end at the limit or
  time-out: loops that change bytes for ever (a heartbeat word), that push or store to devices, that
  jump through a register whose value varies, or that count in memory. "Could have been released by"
  knows stores to constant addresses only: not stores through pointers, of the packer or of other
  tiles.

### Vector unit

* Stochastic rounding, rounding to zero and modes that ttsim refuses follow the ISA text alone.
  SFPLOADMACRO follows the text and production kernels (see below). A mode bit to which the text gives
  no meaning is refused.
* Refused: mode 10 of SFPLOAD and SFPSTORE, which address through the RWC Sp (no text); LaneConfig bits
  other than 2 and 8; SFPCONFIG where it would make anything but bit 8 differ from lane to lane; the
  default of LReg12.
* A macro takes one cycle per word. What text and kernels leave open is refused (VECTOR-MACRO-*).
  Outside macros every instruction is complete before the next: hazards that hardware does not notice
  after SFPMAD (a dependent SFPIADD, SFPSHFT, SFPSWAP, SFPSHFT2 or SFPCONFIG in the next cycle reads
  the old value) are not seen.

### Matrix unit

* SHIFTXA after MOVB2D or MOVD2B is refused: the ISA names no SrcA row for them. The ISA does not say
  to which cells MFCONV3S1, APOOL3S1 and APOOL3S2 add 0, so they are refused where that would show.
  No oracle executes the legacy group, the shifts and MOVDBGA2D.
* GMPOOL with 5-bit exponents, integers or scales other than 1.0 follows the ISA text alone. Its argmax
  is refused, and so are 5-bit exponents into a 32-bit Dst, where the text contradicts itself.
* A datum in Src that has no meaning in its format (exponent bits beyond 5, left there by earlier
  work), and a denormal of SrcB in a product with Zero_Flag_disabled_src, make the results that they
  reach doubtful: cell by cell through Dst, SrcA, SrcB and sums, lane by lane through LRegs and
  condition codes of the vector unit. A doubtful cell is refused when it is packed or loaded by a core
  (FPU-EXPONENT, FPU-DENORMALS), not before; ttsim refuses the instruction of the matrix unit. The
  debug port of Dst shows it. A doubtful lane is refused where it would decide more than values of
  lanes (VECTOR-DOUBT-REGISTER, VECTOR-DOUBT-LANES): the value that SFPCONFIG takes for LaneConfig and
  macros, whether a row that ZEROACC cleared becomes valid, which lanes scheduled instructions write,
  and what a status register of a core shows. Doubt is the union of the operands' doubts: a result
  that does not depend on one of them (a product with zero, a table entry that is not chosen) is
  doubtful all the same.
* Stochastic rounding of the matrix unit's sums and of the packer is refused (FPU-STOCHASTIC,
  PACR-ALU_ROUNDING_MODE_*), because no source names the random bits. `stochastic = SEED` models it,
  not bit-exact and noted (STOCHASTIC-MODELLED): a 32-bit shift register for sums, and one each for the
  early and the bfp conversion, stepped once per rounded result and reseeded by PRNG_SEED. Only the
  last rounding of a sum is random; the sum in L1 is not. "up" and "down" bracket it.

### Unpacker

* UNPACR refuses srcb_bcast, an input that wraps (Unpack_fifo_size), SRCB_SET_Base, and compressed tiles
  of 2-bit datums. Compressed tiles, row search, upsampling, the W dimension, headers of more than 16
  bytes, SRCA_SET_Base and Unpack_Src_Reg_Set_Upd follow the ISA text alone.
* In a burst of UNPACR across the boundary of a 16-row set of SrcA the silicon may drop rows. ttsim
  refuses the UNPACR. bhemu executes it: every row is written, and all rows of the burst but its first
  are marked; an instruction that reads one of them before it is written again is refused
  (UNPACR-BURST). A transposed burst of this kind is refused.
* A row table of a compressed tile that decreases is refused only at the end of L1, by the rule for
  that, not as UNPACR-NOTHING.
* REG2FLOP and SETDVALID are unsupported on Blackhole, and errors unless undefined behaviour is
  tolerated.

### Packer

* The special form of SETDMAREG refuses the packer's tile sizes and zero flags (sources 0 to 5, 8), and
  the largest exponent (9) after a PACR without ENABLE_ACC_STATS.
* PACR refuses row_pad_zero, ctxt_ctrl and cfg_context (no text), L1 as source, INT_DESCALE, the
  metadata of finished tiles, and strided reads of interfaces other than all, 1 and 3. Counters of
  another thread, the base of the input, a limit of the output and tiles without header follow the ISA
  text alone.
* Without Disable_zero_compress silicon compresses, in a way that the text leaves open: data are packed
  plain, as ttsim does, and noted (PACR-COMPRESSION).
* Where the text and ttsim count rows of a plane differently, edge masks follow ttsim if it takes them,
  which is noted where another datum would be masked (PACR-EDGE-ROW); otherwise such a mask is refused.
  With reference = "isa" the text decides.
* Sums of fp16 in L1 have the errors that ttsim has. A card gave NaN for others, after a matmul of two
  subblocks or more: such a program is noted (PACR-FP16-SUMS).
* Accumulation of int32 in L1 follows one sentence of the ISA text (sign and magnitude, saturating).
  That a sum of zero is +0 is an assumption.
* Dst rows that have not been written since power-up hold zeros. PACR refuses to pack them
  (PACR-UNWRITTEN, selectable); other readers do not notice. The order of rows that
  DEST_ACCESS_CFG_remap_addrs and swizzle_32b give is modelled for strided PACRs only. It does not
  show unless it changes; then PACR refuses older rows (PACR-REORDERED), and other readers do not.

### Compiling and starting

* First use compiles, where no wheel brought the machine code. `bhemu run` does not wait for it, and
  neither does `bhemu check`; `run --check`, all other commands and Python compile first.
* In a fresh clone, on two processors with four times as much work as they can do (processor time, about
  twice that of an idle machine): add1 answers in 1.1 s (2.0 s without bytecode), where compiling what
  it uses takes 40 s idle. matmul takes 32 to 34 s, interpreted alone 30 to 32 s (1.04 and 1.07 times
  in pairs), compiled first 140 s. By the clock these pairs were 1.2 and 1.5 apart. Idle, interpreted
  matmul takes 14.6 s; the hand-over was not measured idle.
* An entry that is not finished when its run ends is begun anew (the loop takes 10 s idle), so short runs
  alone never get compiled code: `bhemu warm` or one longer run does. With two processors one of them
  compiles, so a run that lasts is compiled after 40 s instead of 25. A run waits for code that it
  needs for the first time after it was taken over (other modes of UNPACR and PACR than whole rows: 5
  and 7 s), and for a damaged entry. For a picture of L1 (kind "image") only what every run needs is
  compiled ahead. Firmware boots before a run can be taken over.
* Starting takes longer than wanted: `bhemu run -q elfs/add1` takes 2.8 to 3.1 times the processor time
  of `import numpy` (wanted: 2), `bhemu why elfs/hang_cycle` 4.6 to 5.0 times (wanted: 4), in the medians
  of two measurements on a machine with more work than it can do. `--help` takes 0.7 times, and `isa X`
  0.9 to 1.1 times from the second call on (both measured before the last changes to the start).
* MVMUL and its accumulation in a 16-bit Dst need SSE4.1 (x86-64-v2) or better to be fast; elsewhere
  each datum is computed alone. On x86-64-v4 the same instructions are used, without a measurement.

### Explanations

* Of the mutants of `tests/why/mutants` two are not named any more (MISSED in `test_mutants.py`):
  another line of the same race comes first.
* `bhemu why` does not name every culprit. Its first finding does for 310 of 707 planted bugs (128 of
  them have been removed, with the rules that found them: [why-corpus.md](why-corpus.md)). When first
  asked it had 92 % and 77 % of the points of bugs for each pain by two authors who did not know it,
  59 % in three sets that looked for its gaps, and 46 % in kernels on tt-metal's headers. A cure is the
  one line whose change makes the outputs right, which may be another line than the author's. It is a
  note, given where no agent waits and nothing else is found."""

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
        "refused only where such a datum reaches an output or SFPLOAD (test_top32_rm after some"
        " other tests)",
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
        "custom_mm with CUSTOM_MM_NUM_CALLS above 1: UNPACR_NOP clears SrcA to one (CLR_SRC_1)",
        "UNPACR-NOP-VALUE",
        "noted: the datums are in doubt until they are written again, as there; refused where one"
        " reaches an output (FPU-EXPONENT)",
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
        "generalized_moe_gate: MOVB2D of one row (mode 0), which ttsim does not have",
        "MOV-MODE",
        'noted with reference = "llk", mode 1 (column 0 of one row) too, after the ISA text',
    ),
    (
        "ckernel_debug.h: dumps of SrcA, SrcB and Dst through the debug port",
        "SETDVALID",
        'executed with reference = "llk" as far as the array read port goes; other ports are'
        " refused",
    ),
]
