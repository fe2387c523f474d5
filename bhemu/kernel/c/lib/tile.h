/* A 32x32 tile in L1: four faces of 16x16, each row-major. bfp8: their 64 shared exponents first. */
#pragma once

#define FACES 4u
#define FACE_ROWS 16u
#define TILE_ROWS (FACES * FACE_ROWS)
#define FACE_DATUMS 256u
#define TILE_DATUMS (FACES * FACE_DATUMS)
#define BF16_ROW_BYTES 32u /* 16 datums */
#define TILE_BYTES (TILE_ROWS * BF16_ROW_BYTES) /* bf16 */
#define FP32_TILE_BYTES (2u * TILE_BYTES)
#define BFP8_TILE_BYTES (TILE_DATUMS / 16u + TILE_DATUMS)
