#pragma once
#define _OP(code, args) ((unsigned)(code) << 24 | (unsigned)(args))
#define EMIT(x) __asm__ volatile(".word %0" ::"i"(((unsigned)(x) << 2) | ((unsigned)(x) >> 30)))
#define SEND(x) (*(volatile unsigned *)0xFFE40000 = (x))
#define WR(a, v) (*(volatile unsigned *)(a) = (v))
#define RD(a) (*(volatile unsigned *)(a))
#define CONFIG(word, v) WR(0xFFEF0000 + 4 * (word), v)
#define THREADCONFIG(word, v) EMIT(_OP(0xB2, (word) << 16 | (v)))
#define STALLWAIT(res, cond) EMIT(_OP(0xA2, (res) << 15 | (cond)))
#define WAIT_IDLE() (WR(0xFFE80004, 0), (void)RD(0xFFE80004))

#define TILES 3
#define IN 0x10000
#define ONES 0x12000
#define OUT 0x13000
