#pragma once
typedef __INT32_TYPE__ int32_t;
typedef __UINT32_TYPE__ uint32_t;
