"""The tile's MMIO windows: each has its functions and its declaration (bus/window.py).

Files hold windows of one kind. Beside them stand what goes before an access (rules.py,
bus/access_order.py) and what several windows share (debug_regs.py).
"""
