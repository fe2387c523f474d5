/* TRISC1: the matrix unit's operation on each tile, then the vector unit's. */
#include "lib/math_half.h"
#include "lib/tile.h"
#include "llk_like/copy.h"
#include "llk_like/kernel.h"
#include "llk_like/modes.h"
#include "llk_like/sfpu.h"
#include "llk_like/topk.h"

static void configure(void) {
    ADDR_MODE(STAY, 0, 0);
    ADDR_MODE(NEXT_ROWS, AB_STEP(8, 8), DST_STEP(8));
    ADDR_MODE(NEXT_PASS, AB_CLEAR, DST_CLEAR | NEXT_PHASE);
    ADDR_MODE(LOWER_HALF, AB_STEP(0, 8), DST_STEP(8));
    ADDR_MODE(NEXT_B, AB_STEP(16, 0) | AB_SRCB_CR, DST_STEP(8));
    ADDR_MODE(NEXT_A, AB_STEP(0, 32) | AB_SRCA_CR | AB_SRCB_CR, DST_STEP(8));
    ADDR_MODE(NEXT_INNER, AB_STEP(32, 48) | AB_SRCA_CR | AB_SRCB_CR, DST_CR);
    if (runtime_args.math != MATH_MATMUL) {
        ADDR_MODE(NEXT_ROWS_WIDE, AB_STEP(8, 0), DST_STEP(16));
        ADDR_MODE(NEXT_SOURCE, AB_STEP(8, 8), 0);
    }
    ADDR_MODE(SFPU_NEXT, 0, DST_STEP(2));
    /* Dst addresses as the packer's strided access wants them: from the start, for all accesses. */
    uint32_t strided = runtime_args.pack != PACK_TILE && runtime_args.pack != PACK_TOPK;
    cfg_write(DEST_ACCESS_CFG_remap_addrs_ADDR32, CFG(DEST_ACCESS_CFG_remap_addrs, strided) |
                                                      CFG(DEST_ACCESS_CFG_swizzle_32b, strided));
    TTI_SETRWC(0, 0, 0, 0, 0, RWC_ALL);
}

/* The unpacker writes Dst itself, and tells when. */
static void await_unpacker(void) {
    TTI_SEMWAIT(STALL_SYNC | STALL_MATH, SEM_SEL(SEMAPHORE_UNPACK_TO_DST), SEMWAIT_WHILE_ZERO);
    TTI_SEMGET(SEM_SEL(SEMAPHORE_UNPACK_TO_DST));
}

/* ELWADD and ELWSUB replace Dst unless told to add to it, ELWMUL always adds; the three share
 * addr_mode's and instr_mod19's places. */
static void eltwise(uint32_t word) {
    word |= TTF_ELWADD_instr_mod19(runtime_args.broadcast);
    for (uint32_t phase = 0; phase < runtime_args.phases; phase++) {
        for (uint32_t i = 0; i < 7; i++) {
            TT_PUSH(word | TTF_ELWADD_addr_mode(NEXT_ROWS));
        }
        TT_PUSH(word | TTF_ELWADD_addr_mode(NEXT_PASS));
    }
    release_banks();
}

/* Face by face, each in a place of sixteen rows. */
static void eltwise_faces(uint32_t word) {
    for (uint32_t face = 0; face < runtime_args.faces; face++) {
        uint32_t there = word | TTF_ELWADD_dst(FACE_ROWS * face);
        for (uint32_t phase = 0; phase < runtime_args.phases; phase++) {
            TT_PUSH(there | TTF_ELWADD_addr_mode(NEXT_ROWS));
            TT_PUSH(there | TTF_ELWADD_addr_mode(NEXT_PASS));
        }
        release_banks();
    }
}

static void matmul_inner(uint32_t last) {
    static const uint8_t step[7] = {LOWER_HALF, NEXT_B, LOWER_HALF, NEXT_A,
                                    LOWER_HALF, NEXT_B, LOWER_HALF};
    for (uint32_t i = 0; i < 7; i++) {
        TT_MVMUL(0, 0, step[i], 0);
    }
    TT_MVMUL(0, 0, last, 0);
}

static void matmul(void) {
    for (uint32_t phase = 0; phase < runtime_args.phases; phase++) {
        matmul_inner(NEXT_INNER);
        matmul_inner(NEXT_PASS);
    }
    release_banks();
}

/* One pooling instruction per face: sixteen rows become one, added to or compared with Dst. */
static void pool(uint32_t dst) {
    if (runtime_args.reduce & 4) {
        TT_GMPOOL(0, 1, STAY, 0, dst);
    } else {
        TT_GAPOOL(0, 1, STAY, 0, dst);
    }
    release_banks();
}

/* Faces arrive in the order in which they fall into the same result. */
static void reduce(void) {
    for (uint32_t i = 0; i < FACES; i++) {
        pool(16 * (i / 2));
    }
}

/* Tile `i` of those that make an output tile. */
static void combine(uint32_t operation, uint32_t i) {
    uint32_t add = TTO_ELWADD | TTF_ELWADD_dest_accum_en(runtime_args.accumulate);
    uint32_t sub = TTO_ELWSUB | TTF_ELWSUB_dest_accum_en(runtime_args.accumulate);
    switch (operation) {
    case MATH_COPY:
        copy_faces(0);
        break;
    case MATH_COPY_BY_ADD:
        copy_faces_by_add();
        break;
    case MATH_COPY_BLOCK:
        copy_faces(FACE_ROWS * runtime_args.faces * i);
        break;
    case MATH_COPY_TWO:
        copy_faces(0);
        copy_faces(TILE_ROWS);
        break;
    case MATH_TRANSPOSE:
        copy_faces(0);
        transpose_faces();
        break;
    case MATH_NOTHING:
        await_unpacker();
        break;
    case MATH_TILIZE:
        copy_row_major();
        break;
    case MATH_FAST_TILIZE:
        copy_fast_tilize();
        break;
    case MATH_FAST_UNTILIZE:
        copy_fast_untilize(i);
        break;
    case MATH_ADD:
        eltwise(add);
        break;
    case MATH_SUB:
        eltwise(sub);
        break;
    case MATH_MUL:
        eltwise(TTO_ELWMUL);
        break;
    case MATH_ADD_FACES:
        eltwise_faces(add);
        break;
    case MATH_SUB_FACES:
        eltwise_faces(sub);
        break;
    case MATH_MUL_FACES:
        eltwise_faces(TTO_ELWMUL);
        break;
    case MATH_MATMUL:
        matmul();
        break;
    case MATH_MOVE_B:
        move_b_faces();
        break;
    case MATH_TOPK:
        topk_next(i);
        break;
    default:
        reduce();
        break;
    }
}

static void math_tile(uint32_t half) {
    acquire_half(half);
    for (uint32_t i = 0; i < runtime_args.inner; i++) {
        combine(runtime_args.math, i);
    }
    sfpu_tile(runtime_args.sfpu);
    TTI_STALLWAIT(STALL_SYNC | STALL_CFG, WAIT_MATH | WAIT_SFPU);
    TTI_SEMPOST(SEM_SEL(SEMAPHORE_MATH_PACK));
}

int main(void) {
    configure();
    TTI_SFPENCC(3, 0, 0, 10); /* all lanes on */
    if (runtime_args.math == MATH_TOPK) {
        configure_topk();
    }
    for (uint32_t i = 0; i < runtime_args.tiles; i++) {
        math_tile(i % 2);
    }
    complete(1);
    return 0;
}
