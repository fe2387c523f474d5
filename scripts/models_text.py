"""What docs/models.md says beside its generated tables."""

from pathlib import Path

SHORT = Path(__file__).with_name("models_shortfalls.md").read_text(encoding="utf-8").rstrip("\n")

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
        " modelled; the stand-in for tt-exalens holds NCRISC again; with libbhemu.so NCRISC"
        " executes what lies at its reset PC, which is refused where that is no program",
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
