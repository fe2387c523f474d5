/* BRISC of rectify: the turns of the others, and at the end the order of the rows. */
#include "rectify/rectify.h"

struct row {
    uint8_t number, count;
};

static void write_turns(uint32_t n) {
    struct turn turn = {runtime_args.a, runtime_args.b, runtime_args.sum, 0};
    for (uint32_t i = 0; i < n; i++) {
        TURNS[i].a = turn.a;
        TURNS[i].b = turn.b;
        TURNS[i].out = turn.out;
        TURNS[i].add = turn.add;
        turn.a += TILE;
        turn.b += TILE;
        turn.add = 1;
    }
}

static void start(void) {
    for (uint32_t n = 0; n < 3; n++) {
        store(RISCV_DEBUG_REG_TRISC0_RESET_PC + 4 * n, 0x10000 + 0x4000 * n);
    }
    store(RISCV_DEBUG_REG_TRISC_RESET_PC_OVERRIDE, 7);
    fence();
    store(RISCV_DEBUG_REG_SOFT_RESET_0, load(RISCV_DEBUG_REG_SOFT_RESET_0) & ~SOFT_RESET_TRISCS);
}

/* Datum of a tile of four faces of 16 x 16. */
static uint32_t datum(uint32_t tile, uint32_t row, uint32_t column) {
    uint32_t face = row / 16 * 2 + column / 16;
    return *(volatile unsigned short *)(tile + 2 * (face * 256 + row % 16 * 16 + column % 16));
}

static void count_rows(struct row *rows) {
    for (uint32_t i = 0; i < ROWS; i++) {
        rows[i].number = i;
        rows[i].count = 0;
        for (uint32_t j = 0; j < 32; j++) {
            rows[i].count += datum(runtime_args.sum, i, j) != 0;
        }
    }
}

/* Stable: rows that count as much stay in their order. */
static void sort(struct row *rows, uint32_t n) {
    struct row merged[ROWS];
    uint32_t left = 0, right = n / 2;
    if (n < 2) {
        return;
    }
    sort(rows, n / 2);
    sort(rows + n / 2, n - n / 2);
    for (uint32_t i = 0; i < n; i++) {
        if (right == n || (left < n / 2 && rows[left].count >= rows[right].count)) {
            merged[i] = rows[left++];
        } else {
            merged[i] = rows[right++];
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        rows[i] = merged[i];
    }
}

int main(void) {
    struct row rows[ROWS];
    assert_that(runtime_args.pairs <= MOST_TURNS && runtime_args.sum % 16 == 0);
    for (uint32_t n = 1; n < 4; n++) {
        done_words[n] = 0;
    }
    TT_ZEROACC(3, 0, 0, 0, 0);
    TT_SEMINIT(2, 0, SEM_SEL(SEM_UNPACK));
    TT_SEMINIT(2, 0, SEM_SEL(SEM_FULL));
    write_turns(runtime_args.pairs);
    start();
    for (uint32_t n = 1; n < 4; n++) {
        while (done_words[n] != DONE_TRISC(n - 1)) {
            fence();
        }
    }
    count_rows(rows);
    sort(rows, ROWS);
    for (uint32_t i = 0; i < ROWS; i++) {
        store(runtime_args.ranks + 4 * i, rows[i].number);
    }
    done_words[0] = DONE_BRISC;
    return 0;
}
