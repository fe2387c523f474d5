"""The tile's MMIO windows, one file per window; compiled functions over the state record.

`read(s, core, offset) -> value` and `write(s, core, offset, value)`: core 0-4 = brisc trisc0
trisc1 trisc2 ncrisc, 5 = the host over the NoC.  A device that must wait or refuse sets
`s.access[0]` (condition number or negative rule) before any effect and returns 0.
"""
