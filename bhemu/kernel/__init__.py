"""Kernels from their sources: the C library that they include, compilers, ELFs, a first kernel."""
