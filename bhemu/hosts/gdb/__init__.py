"""The remote protocol of gdb: a server for one tile, its five cores as threads of one process."""
