"""Tables of operands that instructions of several units have (operand.py).

Names of classes and conditions: STALLWAIT, Blackhole ISA, and tt-llk (p_stall); of semaphores:
tt-llk.
"""

from bhemu.operand import choice, flags, number

BLOCKS = flags(
    *("TDMA", "SYNC", "PACK", "UNPACK", "XMOV", "THCON", "MATH", "CFG", "SFPU"),
    about="classes of instructions that are held, B0 to B8",
    none="MATH (the default)",
    every="everything",
)
CONDITIONS = flags(
    *("THCON idle", "UNPACK0 idle", "UNPACK1 idle", "PACK idle", "MATH idle"),
    *("SRCA_CLR", "SRCB_CLR", "SRCA_VLD", "SRCB_VLD"),
    *("XMOV idle", "TRISC_CFG idle", "SFPU idle", "CFGEXU idle"),
    about="what is waited for, C0 to C12 (CLR: free to unpack to, VLD: valid for the matrix unit)",
    none="THCON, UNPACK0, UNPACK1, PACK idle (default)",
)
SEMAPHORE_NAMES = (
    *("FPU_SFPU", "MATH_PACK", "UNPACK_TO_DEST", "UNPACK_OPERAND_SYNC"),
    *("PACK_DONE", "UNPACK_SYNC", "UNPACK_MATH_DONE", "MATH_DONE"),
)
"""What tt-llk calls the eight semaphores."""
SEMAPHORES = flags(
    *(f"semaphore {i} ({name})" for i, name in enumerate(SEMAPHORE_NAMES)), none="no semaphore"
)
STREAM_SELECTOR = choice(
    {i: f"STREAM_ID_SYNC_SEC{i}" for i in range(4)},
    about="the ThreadConfig field that names the stream",
)

GPR = number("GPR of the issuing thread")
GPR_OR_NUMBER = number("GPR of the issuing thread, or (op_b_is_const) the number itself")
GPR_ADDRESS = number("GPR with an address in L1, which counts 16 bytes")
HALF_GPR = number("half of a GPR: twice its number, plus 1 for the high half")
CONFIG_WORD = number("word of Config")
THREAD = choice(
    {0: "the issuing thread", 1: "thread 1", 2: "thread 2"},
    about="whose address counters are in force",
)

ENGINES = flags("unpacker 0", "unpacker 1", "packer", about="whose counters change")
SRC_BANKS = flags("SrcA", "SrcB")
RELEASED = flags("SrcA", "SrcB", about="whose bank goes back to the unpacker")
ADDR_MOD = number("ADDR_MOD section, applied to the row counters afterwards")
DST_ROW = number("Dst row, to which RWC.Dst and the math offset are added")
SRC_ROW = number("Src row, to which the row counter is added")
COUNTER_VALUE = number("value of the counter of this name, or its increment")
IGNORED = number("has no effect")
ZERO = number("not specified: has to be 0")
UNKNOWN = number("nothing says what it is")
