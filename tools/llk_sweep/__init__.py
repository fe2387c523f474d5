"""A sample of tt-llk's tests on the emulated tile (docs/llk.md), run by scripts/llk_sweep.py."""
