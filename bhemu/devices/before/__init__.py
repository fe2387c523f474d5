"""What goes before an access of a core: Auto TTSync, and races for Config with queued words.

The modules know every instruction; they are imported when something of them is compiled.
"""
