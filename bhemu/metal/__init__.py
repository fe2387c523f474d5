"""tt-metal's host side: firmware on tiles, kernels under it or without it (docs/programs.md)."""
