"""The tile's MMIO windows, one file per window: its functions and its declaration (bus/window.py).

Beside them stand what goes before an access (own_thread.py, auto_sync.py) and what several windows
share (rules.py, inert.py, config_race.py).
"""
