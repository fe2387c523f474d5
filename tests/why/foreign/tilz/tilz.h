/* tilz: fp16 rows of 64 numbers -> two tiles -> minus a column -> rows of 64 again. */
typedef unsigned int uint;
#define poke(a, v) (*(volatile uint *)(a) = (v))
#define peek(a) (*(volatile uint *)(a))
#define p_cfg 0xFFEF0000u
#define TT_OP(opcode, params) (((opcode) << 24) + (params))
#define SWIZZLE(x) ((((x) >> 30) & 3) | (((x) & 0x3FFFFFFF) << 2))
#define INSTRUCTION_WORD(x) __asm__ __volatile__(".word (%0)" : : "i"((x)))
#define TTI_(x) INSTRUCTION_WORD(SWIZZLE(x))

#define TT_OP_SETC16(reg, val) TT_OP(0xb2u, ((reg) << 16) + (val))
#define TT_OP_STALLWAIT(stall_res, wait_res) TT_OP(0xa2u, ((stall_res) << 15) + (wait_res))
#define TT_OP_SEMINIT(max_value, init_value, sem_sel) TT_OP(0xa3u, ((max_value) << 20) + ((init_value) << 16) + ((sem_sel) << 2))
#define TT_OP_SEMPOST(sem_sel) TT_OP(0xa4u, (sem_sel) << 2)
#define TT_OP_SEMGET(sem_sel) TT_OP(0xa5u, (sem_sel) << 2)
#define TT_OP_SEMWAIT(stall_res, sem_sel, cond) TT_OP(0xa6u, ((stall_res) << 15) + ((sem_sel) << 2) + (cond))
#define TT_OP_SETADCXX(CntSetMask, x_end2, x_start) TT_OP(0x5eu, ((CntSetMask) << 21) + ((x_end2) << 10) + (x_start))
#define TT_OP_SETADCXY(CntSetMask, Ch1_Y, Ch1_X, Ch0_Y, Ch0_X, BitMask) TT_OP(0x51u, ((CntSetMask) << 21) + ((Ch1_Y) << 15) + ((Ch1_X) << 12) + ((Ch0_Y) << 9) + ((Ch0_X) << 6) + (BitMask))
#define TT_OP_SETADCZW(CntSetMask, Ch1_W, Ch1_Z, Ch0_W, Ch0_Z, BitMask) TT_OP(0x54u, ((CntSetMask) << 21) + ((Ch1_W) << 15) + ((Ch1_Z) << 12) + ((Ch0_W) << 9) + ((Ch0_Z) << 6) + (BitMask))
#define TT_OP_INCADCZW(CntSetMask, Ch1_W, Ch1_Z, Ch0_W, Ch0_Z) TT_OP(0x55u, ((CntSetMask) << 21) + ((Ch1_W) << 15) + ((Ch1_Z) << 12) + ((Ch0_W) << 9) + ((Ch0_Z) << 6))
#define TT_OP_UNPACR(block, am, last) TT_OP(0x42u, ((block) << 23) + ((am) << 15) + 0xC0 + (last))
#define TT_OP_PACR(am, strided, intf, last) TT_OP(0x41u, ((strided) << 17) + ((am) << 15) + ((intf) << 8) + (last))
#define TT_OP_ELWSUB(clear, bcast, am, dst) TT_OP(0x30u, ((clear) << 22) + ((bcast) << 19) + ((am) << 14) + (dst))
#define TT_OP_SETRWC(clear, cr, d, b, a, mask) TT_OP(0x37u, ((clear) << 22) + ((cr) << 18) + ((d) << 14) + ((b) << 10) + ((a) << 6) + (mask))
#define TT_OP_MOP(type, loop, z) TT_OP(0x01u, ((type) << 23) + ((loop) << 16) + (z))
#define TT_OP_NOP TT_OP(0x02u, 0)

#define TTI_SETC16(...) TTI_(TT_OP_SETC16(__VA_ARGS__))
#define TTI_STALLWAIT(...) TTI_(TT_OP_STALLWAIT(__VA_ARGS__))
#define TTI_SEMPOST(...) TTI_(TT_OP_SEMPOST(__VA_ARGS__))
#define TTI_SEMGET(...) TTI_(TT_OP_SEMGET(__VA_ARGS__))
#define TTI_SEMWAIT(...) TTI_(TT_OP_SEMWAIT(__VA_ARGS__))
#define TTI_SETADCXX(...) TTI_(TT_OP_SETADCXX(__VA_ARGS__))
#define TTI_SETADCXY(...) TTI_(TT_OP_SETADCXY(__VA_ARGS__))
#define TTI_SETADCZW(...) TTI_(TT_OP_SETADCZW(__VA_ARGS__))
#define TTI_UNPACR(...) TTI_(TT_OP_UNPACR(__VA_ARGS__))
#define TTI_PACR(...) TTI_(TT_OP_PACR(__VA_ARGS__))
#define TTI_SETRWC(...) TTI_(TT_OP_SETRWC(__VA_ARGS__))
#define TTI_MOP(...) TTI_(TT_OP_MOP(__VA_ARGS__))

#define ROWS_AT 0x20000u  /* 32 rows of 64 fp16 */
#define COLUMN_AT 0x21800u /* a tile; its first column is subtracted */
#define OUT_AT 0x30000u
#define ROW_BYTES 128u
#define t6_sem(index) (1u << (index))
#define MATH_PACK 1
#define tensix_sync() (poke(0xFFE80004u, 0), (void)peek(0xFFE80004u))

void run_kernel(void);
static inline void finish(uint n) { poke(0x1FFB8u + 4 * n, 0xFF); }
