/* The chip as a PCI device: the ten functions that hosts call, the BARs, the windows, DMA. */
#include "libbhemu.h"

#include <stddef.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

typedef void reader(uint64_t address, void *data, uint32_t size);
typedef void writer(uint64_t address, const void *data, uint32_t size);

static const uint64_t BAR0 = 1ull << 32, BAR0_SIZE = 512ull << 20;
static const uint64_t BAR2 = (1ull << 32) + (512ull << 20), BAR2_SIZE = 1 << 20;
static const uint64_t BAR4 = 32ull << 30, BAR4_SIZE = 32ull << 30;
static const uint64_t BETWEEN_CHIPS = 64ull << 30; /* of the BARs of one chip and the next */
static const uint64_t HOST_MEMORY = 1ull << 60, HOST_SIZE = 1ull << 32; /* at the PCIe tile */
enum { IDENTITY = 0xB1401E52, CLASS = 0x12000001, SMALL = 202, WINDOWS = 210 };
enum { TABLE = 0x1FC00000, TABLE_END = TABLE + 12 * WINDOWS, NIU0 = 0x1FD04000, NIU1 = 0x1FD14000 };
enum { NODE_ID = 0x44, NIU_CFG_0 = 0x100, TRANSLATES = 1 << 14 };
enum { DMA_FIRST = 0x100, DMA_LAST = 0x1A8, DMA_DOORBELL = 0x104, DMA_SIZE = 0x11C };
enum { DMA_SAR = 0x120, DMA_DAR = 0x128, IATU = 0x1000, IATU_REGIONS = 16, ENABLE = 1u << 31 };
enum { CHUNK = 4096, LOOKS = 5000, SEEN = 1024, ROUNDS_A_CLOCK = 20 };

static reader *host_read;
static writer *host_write;
static bool running;

/* What each chip has of its own. */
static struct device {
    uint32_t table[3 * WINDOWS], dma_registers[(DMA_LAST - DMA_FIRST) / 4 + 1], command;
    struct region {
        uint32_t control_1, control_2, base[2], limit, target[2], control_3, limit_high;
    } regions[IATU_REGIONS];
    /* Reads of one place while nothing can change: a host that waits in vain. */
    struct { uint64_t address; uint32_t place, count; } seen[SEEN];
    bool any_seen;
} devices[CHIPS];
#define device (devices + current)

static void check_runs(void) {
    if (!running) fatal(INPUT, "called before libttsim_init, or after libttsim_exit");
}

static void written(void) {
    for (uint32_t i = 0; i < chips; i++) shared_by[i]->stands = 0;
    if (device->any_seen) memset(device->seen, 0, sizeof device->seen);
    device->any_seen = false;
}

static void looked(uint32_t place, uint64_t address) {
    if (!chip->stands) return;
    uint64_t key = (address ^ (uint64_t)place << 20) * 0x9E3779B97F4A7C15ull;
    unsigned i = key >> 54;
    if (device->seen[i].address != address || device->seen[i].place != place) device->seen[i].count = 0;
    device->seen[i].address = address;
    device->seen[i].place = place;
    device->any_seen = true;
    if (++device->seen[i].count < LOOKS) return;
    struct message message = {.op = WAITS, .address = address, .place = place | current << CHIP_SHIFT};
    server_ask(&message);
    device->seen[i].count = 0;
}

/* A place on the chip. */

/* Whether an access is of a soft reset register that needs no message; its tile. */
static bool is_reset(uint32_t place, uint64_t address, uint32_t size, uint32_t *tile) {
    uint32_t word = chip->map[place & (COORDINATES - 1)];
    *tile = word >> 4 & 0xFF;
    return address == SOFT_RESET && size == 4 && chip->plain && (word & 15) == TENSIX;
}

/* No time passes before the next message: until then the store may wait for it. */
static bool reset_later(uint32_t tile, uint32_t value) {
    if (value & ~HELD || (chip->waits[tile] && chip->reset[tile] != value)) return false;
    chip->reset[tile] = value;
    chip->waits[tile] = 1;
    return true;
}

static bool reset_now(uint32_t tile, void *value) {
    uint8_t *kept = (uint8_t *)chip + chip->soft_reset + tile * chip->tile_stride;
    memcpy(value, chip->waits[tile] ? (uint8_t *)(chip->reset + tile) : kept, 4);
    return chip->waits[tile] || chip->made[tile];
}

static uint8_t *plain(uint32_t place, uint64_t address, uint32_t size, int *tile) {
    uint32_t word = chip->map[place & (COORDINATES - 1)], index = word >> 4 & 0xFF;
    *tile = -1;
    if (!chip->plain) return NULL;
    if ((word & 15) == TENSIX && address < L1_SIZE && size <= L1_SIZE - address) {
        *tile = index;
        return (uint8_t *)chip + chip->tiles + index * chip->tile_stride + address;
    }
    if ((word & 15) == DRAM && address < chip->dram_size && size <= chip->dram_size - address)
        return (uint8_t *)chip + chip->dram + ((uint64_t)index << 32) + address;
    return NULL;
}

static void mark(int tile, uint64_t address, uint32_t size) {
    uint8_t *marks = (uint8_t *)chip + chip->marks + (uint64_t)tile * GRANULES;
    uint64_t first = address >> GRANULE_SHIFT, last = (address + size - 1) >> GRANULE_SHIFT;
    memset(marks + first, 1, last - first + 1);
    chip->touched[tile] = 1;
}

static void ask_bytes(uint32_t op, uint32_t place, uint64_t address, uint8_t *data, uint32_t size) {
    while (size > 0) {
        uint32_t part = size < chip->data_size ? size : (uint32_t)chip->data_size;
        struct message message = {.op = op, .size = part, .address = address};
        message.place = place | current << CHIP_SHIFT;
        if (op == WRITE) memcpy(server_data(), data, part);
        server_ask(&message);
        if (op == READ) memcpy(data, server_data(), part);
        address += part;
        data += part;
        size -= part;
    }
}

/* Whether an access is of the host's memory, as a kernel reaches it through the PCIe tile. */
static bool is_host_memory(uint32_t place, uint64_t address, uint32_t size) {
    if ((chip->map[place & (COORDINATES - 1)] & 15) != PCIE) return false;
    if (address < HOST_MEMORY || address - HOST_MEMORY + size > HOST_SIZE)
        fatal(NOT_MODELLED, "[PCIE-TILE] %u bytes at %#llx of the PCIe tile: host memory only", size,
              (unsigned long long)address);
    return true;
}

static void tile_write(uint32_t place, uint64_t address, const void *data, uint32_t size) {
    server_need();
    int tile;
    uint8_t *to = plain(place, address, size, &tile);
    written();
    if (is_host_memory(place, address, size)) {
        dma(true, address, (void *)data, size);
        return;
    }
    if (to == NULL) {
        uint32_t which, value = 0;
        memcpy(&value, data, size < 4 ? size : 4);
        if (address != SOFT_RESET || size != 4 || value != HELD) chip->asleep = 0;
        if (is_reset(place, address, size, &which) && reset_later(which, value)) return;
        ask_bytes(WRITE, place, address, (uint8_t *)data, size);
        return;
    }
    if (tile >= 0 && chip->behind[tile]) {
        struct message message = {.op = SETTLE, .place = place | current << CHIP_SHIFT};
        server_ask(&message);
    }
    memcpy(to, data, size);
    if (tile >= 0) mark(tile, address, size);
}

static void tile_read(uint32_t place, uint64_t address, void *data, uint32_t size) {
    server_need();
    int tile;
    uint8_t *from = plain(place, address, size, &tile);
    looked(place, address);
    if (is_host_memory(place, address, size)) {
        dma(false, address, data, size);
        return;
    }
    uint32_t which;
    if (is_reset(place, address, size, &which) && reset_now(which, data)) return;
    if (from == NULL) ask_bytes(READ, place, address, data, size);
    else memcpy(data, from, size);
}

/* Windows: where one leads. Fields as in tt-umd's description of Blackhole's TLB. */

struct target {
    uint32_t place, start;
    uint64_t address;
    bool multicast;
};

static struct target small_window(uint32_t offset, uint32_t size) {
    const uint32_t *word = device->table + 3 * (offset >> 21);
    uint32_t within = offset & ((1 << 21) - 1);
    if (within + (uint64_t)size > 1 << 21)
        fatal(INPUT, "an access of %u bytes at %#x leaves its window of 2 MiB", size, offset);
    uint64_t page = word[0] | (uint64_t)(word[1] & 0x7FF) << 32;
    struct target found = {.place = word[1] >> 11 & 0xFFF, .address = page << 21 | within};
    found.multicast = word[2] >> 5 & 1;
    found.start = (word[1] >> 23 & 63) | ((word[1] >> 29 | (word[2] & 7) << 3) & 63) << 6;
    if (word[2] & ~0xE7u || (word[2] >> 6 & 3) == 3)
        fatal(NOT_MODELLED, "[TLB] window %u: flags %#x (NoC 1, static channels, linked)",
              offset >> 21, word[2]);
    return found;
}

static struct target large_window(uint64_t offset, uint32_t size) {
    uint32_t index = SMALL + (uint32_t)(offset >> 32), within = (uint32_t)offset;
    const uint32_t *word = device->table + 3 * index;
    if (within + (uint64_t)size > 1ull << 32)
        fatal(INPUT, "an access of %u bytes at %#x leaves its window of 4 GiB", size, within);
    if (word[1] & ~0x18000FFFu || word[2])
        fatal(NOT_MODELLED, "[TLB] window %u: %#x %#x (multicast, NoC 1, linked)", index, word[1],
              word[2]);
    return (struct target){.place = word[1] & 0xFFF, .address = (uint64_t)word[0] << 32 | within};
}

static void multicast(struct target to, const void *data, uint32_t size) {
    uint32_t x0 = to.start & 63, y0 = to.start >> 6, x1 = to.place & 63, y1 = to.place >> 6;
    if (x0 > x1 || y0 > y1)
        fatal(INPUT, "multicast from (%u,%u) to (%u,%u): the end is before the start", x0, y0, x1,
              y1);
    for (uint32_t y = y0; y <= y1; y++)
        for (uint32_t x = x0; x <= x1; x++)
            if ((chip->map[y << 6 | x] & 15) == TENSIX)
                tile_write(y << 6 | x, to.address, data, size);
}

static void small_write(uint32_t offset, const void *data, uint32_t size) {
    struct target to = small_window(offset, size);
    if (to.multicast) multicast(to, data, size);
    else tile_write(to.place, to.address, data, size);
}

/* Registers of the PCIe tile. */

static uint32_t word_of(const void *data, uint32_t size, uint64_t address) {
    uint32_t value;
    if (size != 4 || address & 3)
        fatal(INPUT, "%u bytes at %#llx: registers are accessed in whole words", size,
              (unsigned long long)address);
    memcpy(&value, data, sizeof value);
    return value;
}

static uint32_t niu(uint32_t offset) {
    bool second = offset >= NIU1;
    uint32_t at = offset - (second ? NIU1 : NIU0);
    /* the tile at (2,0) in 17 x 12, as each NoC counts */
    if (at == NODE_ID) return 17 << 12 | 12 << 19 | (second ? 14 | 11 << 6 : 2 | 1 << 28);
    if (at == NIU_CFG_0) return TRANSLATES;
    fatal(NOT_MODELLED, "[PCIE-NIU] register %#x of the PCIe tile's NIU", at);
}

static uint32_t *region_register(uint32_t offset) {
    uint32_t slot = offset >> 8, at = offset & 0xFF;
    struct region *region = device->regions + (slot >> 1);
    uint32_t *const registers[] = {&region->control_1, &region->control_2, region->base,
                                   region->base + 1,   &region->limit,     region->target,
                                   region->target + 1, &region->control_3, &region->limit_high};
    if (slot & 1 || slot >= 2 * IATU_REGIONS || at & 3 || at / 4 >= sizeof registers / sizeof *registers)
        fatal(NOT_MODELLED, "[IATU] register %#x (inbound regions are fixed)", offset);
    return registers[at / 4];
}

static uint32_t *bar2_register(uint64_t offset) {
    if (offset >= DMA_FIRST && offset <= DMA_LAST)
        return device->dma_registers + (offset - DMA_FIRST) / 4;
    if (offset >= IATU) return region_register(offset - IATU);
    fatal(NOT_MODELLED, "[BAR2] register %#llx", (unsigned long long)offset);
}

/* DMA: kernels reach the host's memory; the read channel brings it to the chip. */

static uint64_t translated(uint64_t offset, uint32_t size) {
    for (unsigned i = 0; i < IATU_REGIONS; i++) {
        const struct region *region = device->regions + i;
        uint64_t base = region->base[0] | (uint64_t)region->base[1] << 32;
        uint64_t limit = region->limit | (uint64_t)region->limit_high << 32;
        if (region->control_2 & ENABLE && offset >= base && offset + size - 1 <= limit)
            return (region->target[0] | (uint64_t)region->target[1] << 32) + offset - base;
    }
    return offset;
}

void dma(bool write, uint64_t address, void *data, uint32_t size) {
    uint64_t offset = address & ((1ull << 58) - 1), window = address >> 58;
    if (window >= 8) fatal(NOT_MODELLED, "[HOST-WINDOW] host memory at %#llx",
                           (unsigned long long)address);
    uint64_t at = window < 4 ? offset : translated(offset, size);
    if (host_read == NULL || host_write == NULL)
        fatal(INPUT, "the host's memory is wanted over the NoC, and the host gave no DMA functions");
    if (write) host_write(at, data, size);
    else host_read(at, data, size);
}

static uint32_t dma_register(uint32_t at) { return device->dma_registers[(at - DMA_FIRST) / 4]; }

static void read_channel(void) {
    uint32_t size = dma_register(DMA_SIZE), to = dma_register(DMA_DAR);
    uint64_t from = dma_register(DMA_SAR) | (uint64_t)dma_register(DMA_SAR + 4) << 32;
    if (dma_register(DMA_DOORBELL) != 1 || dma_register(DMA_DAR + 4))
        fatal(NOT_MODELLED, "[DMA] doorbell %#x, device address %#x:%08x",
              dma_register(DMA_DOORBELL), dma_register(DMA_DAR + 4), to);
    if (size == 0 || size & 3 || to & 3 || to + (uint64_t)size > (uint64_t)SMALL << 21)
        fatal(INPUT, "DMA of %u bytes to %#x", size, to);
    if (host_read == NULL) fatal(INPUT, "DMA, and the host gave no DMA functions");
    uint8_t data[CHUNK];
    for (uint32_t at = 0; at < size; at += CHUNK) {
        uint32_t part = size - at < CHUNK ? size - at : CHUNK;
        host_read(from + at, data, part);
        small_write(to + at, data, part);
    }
    device->dma_registers[(DMA_SIZE - DMA_FIRST) / 4] = 0; /* done */
}

/* The ten functions. */

EXPORT void libttsim_init(void) {
    if (running)
        fatal(INPUT, "the chip is open in this process: one process has one chip at a time");
    memset(devices, 0, sizeof devices);
    server_find();
    running = true;
}

EXPORT void libttsim_exit(void) {
    check_runs();
    server_end();
    running = false;
}

EXPORT void libttsim_set_pci_dma_mem_callbacks(reader *read, writer *write) {
    if (running) fatal(INPUT, "DMA functions are given before libttsim_init");
    host_read = read;
    host_write = write;
}

static void check_config(uint32_t function, uint32_t offset) {
    check_runs();
    if (function >> 8 || function & 7 || offset & 3)
        fatal(INPUT, "configuration space %#x of bus, device and function %#x", offset, function);
    current = 0;
}

EXPORT uint32_t libttsim_pci_config_rd32(uint32_t function, uint32_t offset) {
    check_config(function, offset);
    if (function && function >> 3 >= server_count()) return ~0u; /* no further device */
    current = function >> 3;
    const uint64_t first = current * BETWEEN_CHIPS;
    const uint64_t bars[] = {(first + BAR0) | 4, (first + BAR2) | 4, (first + BAR4) | 4};
    if (offset >= 0x10 && offset < 0x28)
        return (uint32_t)(bars[(offset - 0x10) / 8] >> (offset & 4 ? 32 : 0));
    switch (offset) {
    case 0x00: return IDENTITY;
    case 0x04: return device->command;
    case 0x08: return CLASS;
    case 0x3C: return 0xFF;
    case 0x0C: case 0x28: case 0x2C: case 0x30: case 0x34: case 0x38: return 0;
    default: fatal(NOT_MODELLED, "[PCI-CONFIG] configuration space %#x", offset);
    }
}

EXPORT void libttsim_pci_config_wr32(uint32_t function, uint32_t offset, uint32_t data) {
    check_config(function, offset);
    if ((function && function >> 3 >= server_count()) || offset != 0x04)
        fatal(NOT_MODELLED, "[PCI-CONFIG] a write of %#x to configuration space %#x", data, offset);
    current = function >> 3;
    device->command = data & 0xFFFF;
}

static uint64_t within(uint64_t address, uint64_t base, uint64_t length, uint32_t size) {
    if (address - base + size > length)
        fatal(INPUT, "%u bytes at %#llx leave their BAR", size, (unsigned long long)address);
    return address - base;
}

/* Turn to the chip whose BARs hold an address; the address as the first chip has it. */
static uint64_t turn_to(uint64_t address) {
    check_runs();
    current = 0;
    if (address < BETWEEN_CHIPS) return address;
    server_need();
    if (address / BETWEEN_CHIPS >= chips)
        fatal(INPUT, "an access at %#llx, which is in no BAR", (unsigned long long)address);
    current = (uint32_t)(address / BETWEEN_CHIPS);
    return address % BETWEEN_CHIPS;
}

EXPORT void libttsim_pci_mem_rd_bytes(uint64_t address, void *data, uint32_t size) {
    address = turn_to(address);
    if (size == 0) fatal(INPUT, "a read of no bytes");
    if (address >= BAR4 && address < BAR4 + BAR4_SIZE) {
        struct target from = large_window(within(address, BAR4, BAR4_SIZE, size), size);
        tile_read(from.place, from.address, data, size);
    } else if (address >= BAR2 && address < BAR2 + BAR2_SIZE) {
        word_of(data, size, address);
        memcpy(data, bar2_register(address - BAR2), 4);
    } else if (address >= BAR0 && address < BAR0 + BAR0_SIZE) {
        uint32_t offset = within(address, BAR0, BAR0_SIZE, size);
        if (offset >= (uint32_t)SMALL << 21) {
            uint32_t value = 0;
            word_of(&value, size, offset);
            if (offset >= TABLE && offset < TABLE_END) value = device->table[(offset - TABLE) / 4];
            else if ((offset & ~0x1FFFu) == NIU0 || (offset & ~0x1FFFu) == NIU1) value = niu(offset);
            else fatal(NOT_MODELLED, "[BAR0] a read at %#x", offset);
            memcpy(data, &value, 4);
            return;
        }
        struct target from = small_window(offset, size);
        if (from.multicast) fatal(INPUT, "a read through window %u, which is a multicast", offset >> 21);
        tile_read(from.place, from.address, data, size);
    } else {
        fatal(INPUT, "a read at %#llx, which is in no BAR", (unsigned long long)address);
    }
}

EXPORT void libttsim_pci_mem_wr_bytes(uint64_t address, const void *data, uint32_t size) {
    address = turn_to(address);
    if (size == 0) fatal(INPUT, "a write of no bytes");
    if (address >= BAR4 && address < BAR4 + BAR4_SIZE) {
        struct target to = large_window(within(address, BAR4, BAR4_SIZE, size), size);
        tile_write(to.place, to.address, data, size);
    } else if (address >= BAR2 && address < BAR2 + BAR2_SIZE) {
        *bar2_register(address - BAR2) = word_of(data, size, address);
        if (address - BAR2 == DMA_DOORBELL) read_channel();
    } else if (address >= BAR0 && address < BAR0 + BAR0_SIZE) {
        uint32_t offset = within(address, BAR0, BAR0_SIZE, size);
        if (offset < (uint32_t)SMALL << 21) small_write(offset, data, size);
        else if (offset >= TABLE && offset < TABLE_END)
            device->table[(offset - TABLE) / 4] = word_of(data, size, offset);
        else fatal(NOT_MODELLED, "[BAR0] a write at %#x", offset);
    } else {
        fatal(INPUT, "a write at %#llx, which is in no BAR", (unsigned long long)address);
    }
}

EXPORT void libttsim_clock(uint32_t clocks) {
    check_runs();
    current = 0;
    if (chip == NULL || clocks == 0) return; /* nothing has been put on the chip */
    server_need();
    bool stand = true, asleep = true;
    for (current = 0; current < chips; current++) {
        stand = stand && chip->stands;
        asleep = asleep && chip->asleep;
    }
    current = 0;
    if (stand || asleep) return;
    uint64_t rounds = (uint64_t)clocks * ROUNDS_A_CLOCK;
    struct message message = {.op = CLOCK, .address = rounds};
    server_ask(&message);
}

EXPORT void libttsim_tile_rd_bytes(uint32_t x, uint32_t y, uint64_t address, void *data, uint32_t size) {
    (void)data;
    fatal(NOT_MODELLED, "[TILE-ACCESS] %u bytes at %#llx of (%u,%u): Blackhole is reached by its BARs",
          size, (unsigned long long)address, x, y);
}

EXPORT void libttsim_tile_wr_bytes(uint32_t x, uint32_t y, uint64_t address, const void *data,
                                   uint32_t size) {
    (void)data;
    fatal(NOT_MODELLED, "[TILE-ACCESS] %u bytes at %#llx of (%u,%u): Blackhole is reached by its BARs",
          size, (unsigned long long)address, x, y);
}
