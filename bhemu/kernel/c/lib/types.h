/* Fixed-width integers without the compiler's headers, whose path would get into the ELF. */
#pragma once

typedef __UINT32_TYPE__ uint32_t;
typedef __UINT8_TYPE__ uint8_t;
