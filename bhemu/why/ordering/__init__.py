"""What orders the accesses of a run on one tile, and which accesses nothing orders."""
