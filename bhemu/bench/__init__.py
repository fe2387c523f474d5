"""Benchmarks: what a tile does per second, against what the golden model does with the same L1."""
