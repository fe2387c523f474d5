"""Looking inside a tile: the stepper, its displays, and the saved state."""
