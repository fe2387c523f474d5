"""The order of a run: a compiled observer keeps happens-before of all agents of a tile."""
