/* The start code every core shares, beside the linker scripts of this firmware. */
#include "lib/crt0.S"
