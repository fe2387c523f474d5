// Sum of the pages that NCRISC brings, by the packer's accumulation in L1.
typedef unsigned int u;
struct ring { u avail, pad[3], taken, pad2[3]; };
static volatile struct ring *const ring = (volatile struct ring *)0x18000;
enum { SLOTS = 2, SLOT0 = 0x19000, PAGE = 2048, PAGES = 5, STORE = 0x20000, SUM = 0x1A800 };
static inline void w32(u a, u v) { *(volatile u *)a = v; }
static inline u r32(u a) { return *(volatile u *)a; }
static inline void cfg(u n, u v) { w32(0xFFEF0000 + 4 * n, v); }
#define fence() __asm__ volatile("fence" ::: "memory")
#define ttinsn(w) __asm__ volatile(".word %0" ::"i"(((u)(w) << 2) | ((u)(w) >> 30)))
#define RES_UNPACK 0x008
#define RES_MATH 0x040
#define RES_CFG 0x080
#define RES_SYNC 0x002
#define RES_TDMA 0x001
#define STALLWAIT(res, cond) ttinsn(0xA2000000u | (res) << 15 | (cond))
#define SETC16(r, v) ttinsn(0xB2000000u | (r) << 16 | (v))
static inline void sync(void) { w32(0xFFE80004, 0); (void)r32(0xFFE80004); }
