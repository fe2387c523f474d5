/* What the two parts of libbhemu.so share: the emulator's memory as the host maps it, the calls
 * that ring the emulator, and the end of the process. */
#ifndef LIBBHEMU_H
#define LIBBHEMU_H

#include <stdbool.h>
#include <stdint.h>

/* The layout of the shared file; bhemu/hosts/shared.py writes it and checks these numbers. */
enum { MAGIC = 0x62686D75, LAYOUT = 6, COORDINATES = 1 << 12, TILES = 140, L1_SIZE = 1572864 };
enum { SOFT_RESET = 0xFFB121B0, HELD = 0x47800 }; /* the register, and all of its cores */
enum { GRANULE_SHIFT = 8, GRANULES = L1_SIZE >> GRANULE_SHIFT };

struct shared {
    uint32_t magic, layout;
    uint32_t stands;  /* 1: nothing changes until the host writes */
    uint32_t plain;   /* 1: memory is shared; 0: every access is a message */
    uint64_t size;    /* bytes of the file */
    uint64_t tiles, tile_stride;  /* where L1 of each tile stands in the file */
    uint64_t dram;                /* banks, 4 GiB apart */
    uint64_t dram_size;           /* bytes of a bank */
    uint64_t marks;               /* a byte for each granule of L1 that the host has written */
    uint64_t data, data_size;     /* bytes of the message under way */
    uint64_t soft_reset;          /* where the register of each tile stands, as L1 */
    uint32_t asleep;              /* 1: no core was released yet, so time changes nothing */
    uint8_t touched[TILES];       /* 1: the tile has a mark */
    uint8_t behind[TILES];        /* 1: the tile is to be settled before its L1 is written */
    uint8_t made[TILES];          /* 1: the tile is there, with its soft reset */
    uint8_t waits[TILES];         /* 1: `reset` is to be stored before the next message */
    uint32_t reset[TILES];
    uint32_t map[COORDINATES];    /* endpoints of NoC 0 by y << 6 | x */
};

/* Kinds of endpoints in `map` (bhemu/hosts/shared.py). */
enum { NOTHING, TENSIX, DRAM, PCIE };

enum { READ = 1, WRITE, CLOCK, LEAVE, WAITS, DONE, FAILED, DMA_READ, DMA_WRITE, SETTLE, COPY };

struct message {
    uint32_t op;
    uint32_t size;
    uint64_t address;
    uint32_t place;  /* chip << 12 | y << 6 | x */
    uint32_t status; /* FAILED: with which the host ends */
};

enum { CHIPS = 4, CHIP_SHIFT = 12 };

extern struct shared *shared_by[CHIPS];
extern uint32_t chips;   /* how many there are, once the emulator has started */
extern uint32_t current; /* which of them a call is for */
#define chip (shared_by[current])

/* Whether there is an emulator to start; the process ends with a message where there is none. */
void server_find(void);
/* Before each call for the chip: start the emulator unless it runs; in a child that was forked
 * while it ran, have it copied. The process ends with a message where that cannot be. */
void server_need(void);
/* How many chips there are, or will be once it has started. */
uint32_t server_count(void);
/* End it, and wait until it is gone. */
void server_end(void);
/* Ask the emulator and serve the DMA that it asks for meanwhile. Data stand in the shared file. */
void server_ask(struct message *message);
/* Bytes of the message under way, of the chip that it is for. */
void *server_data(void);

/* Host memory for kernels: `address` as at the PCIe tile. */
void dma(bool write, uint64_t address, void *data, uint32_t size);

_Noreturn void fatal(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

enum { INPUT = 2, NOT_MODELLED = 4, INTERNAL = 70 };

#endif
