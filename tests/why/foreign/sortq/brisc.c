#include "q.h"

static void swap(int32_t *a, int32_t *b)
{
    int32_t t = *a;
    *a = *b;
    *b = t;
}

static int partition(int32_t *v, int lo, int hi)
{
    int32_t pivot = v[hi];
    int i = lo;
    for (int j = lo; j < hi; j++)
        if (v[j] < pivot)
            swap(&v[i++], &v[j]);
    swap(&v[i], &v[hi]);
    return i;
}

__attribute__((noinline)) static void sort(int32_t *v, int lo, int hi)
{
    if (lo >= hi)
        return;
    int p = partition(v, lo, hi);
    sort(v, lo, p - 1);
    sort(v, p + 1, hi);
}

static void put(const int32_t *v)
{
    queue_t *q = QUEUE;
    uint32_t head = q->head;
    do
        SYNC();
    while (head - q->tail >= 4);
    for (int i = 0; i < BLOCK; i++)
        q->data[head % 4][i] = v[i];
    q->head = head + 1;
}

int main(void)
{
    int32_t block[BLOCK];
    for (int b = 0; b < BLOCKS; b++) {
        for (int i = 0; i < BLOCK; i++)
            block[i] = SOURCE[b * BLOCK + i];
        sort(block, 0, BLOCK - 1);
        for (int i = 0; i < BLOCK; i++)
            SORTED[b * BLOCK + i] = block[i];
        put(block);
    }
    *(volatile uint32_t *)0x400 = 1;
    return 0;
}
