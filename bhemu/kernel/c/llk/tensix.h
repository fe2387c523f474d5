/* Stands in for tt-metal's tensix.h, of which ckernel_instr_params.h uses nothing. */
#pragma once
