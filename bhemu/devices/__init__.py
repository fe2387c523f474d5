"""The tile's MMIO windows: each has its functions and its declaration (bus/window.py).

Files hold windows of one kind. Beside them stands what goes before an access (bus/window.py,
bus/access_order.py).
"""
