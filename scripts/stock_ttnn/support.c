/* Library functions that kernels and their start-up code call. The accesses are volatile, so that
 * the compiler does not take a loop for the function that it implements. */
typedef __SIZE_TYPE__ size_t;
typedef volatile unsigned char byte;

void *memset(void *to, int value, size_t n) {
    for (size_t i = 0; i < n; i++) ((byte *)to)[i] = value;
    return to;
}

void *memcpy(void *to, const void *from, size_t n) {
    for (size_t i = 0; i < n; i++) ((byte *)to)[i] = ((const byte *)from)[i];
    return to;
}

void *memmove(void *to, const void *from, size_t n) {
    if ((size_t)to - (size_t)from >= n) return memcpy(to, from, n);
    for (size_t i = n; i-- > 0;) ((byte *)to)[i] = ((const byte *)from)[i];
    return to;
}

void *__dso_handle;

void exit(int code) {
    for (;;) (void)code;
}

void __cxa_pure_virtual(void) { exit(1); }

/* What firmware calls of noc.o, by its C++ names: configuration registers of one of the NIUs. */
static unsigned active_niu;

static volatile unsigned *niu_configuration(unsigned number) {
    return (volatile unsigned *)(0xFFB20100 + 0x10000 * active_niu) + number;
}

void _Z23noc_set_active_instancem(unsigned long niu) { active_niu = niu; }

unsigned long _Z15noc_get_cfg_regm(unsigned long number) { return *niu_configuration(number); }

void _Z15noc_set_cfg_regmm(unsigned long number, unsigned long value) {
    *niu_configuration(number) = value;
}

/* tt-metal's start-up code, the second by its C++ name: l1_to_local_mem_copy. */
void wzerorange(volatile unsigned *at, volatile unsigned *end) {
    while (at < end) *at++ = 0;
}

void _Z20l1_to_local_mem_copyPmS_11L1WordCount(
    volatile unsigned *to, volatile unsigned *from, int words) {
    for (int i = 0; i < words; i++) to[i] = from[i];
}
