"""Compiling the numba subset to machine code, kept from run to run; knows no hardware."""
