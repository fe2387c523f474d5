#include "q.h"

static int32_t all[BLOCK * BLOCKS];
static uint32_t bins[16];

static void count(int32_t value)
{
    bins[((uint32_t)value >> 12) & 15]++;
}

static void merge(int have, volatile int32_t *more)
{
    int i = have - 1, j = BLOCK - 1;
    for (int k = have + BLOCK - 1; j >= 0; k--) {
        if (i >= 0 && all[i] > more[j])
            all[k] = all[i--];
        else
            all[k] = more[j--];
    }
}

int main(void)
{
    queue_t *q = QUEUE;
    for (uint32_t n = 0; n < BLOCKS; n++) {
        do
            SYNC();
        while (q->head == n);
        volatile int32_t *block = q->data[n & 3];
        for (int i = 0; i < BLOCK; i++)
            count(block[i]);
        merge(n * BLOCK, block);
        q->tail = n + 1;
    }
    for (int i = 0; i < BLOCK * BLOCKS; i++)
        MERGED[i] = all[i];
    for (int i = 0; i < 16; i++)
        HISTO[i] = bins[i];
    *(volatile uint32_t *)0x404 = 1;
    return 0;
}
