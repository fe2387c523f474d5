"""What is ordered in a run, compiled: happens-before of all agents of a tile, beside the run."""
