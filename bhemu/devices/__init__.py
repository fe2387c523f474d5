"""The tile's MMIO windows, one file per window: its functions and its declaration (bus/window.py).

Beside them stand what goes before an access (rules.py, bus/access_order.py) and what several windows
share (inert.py, registers.py).
"""
