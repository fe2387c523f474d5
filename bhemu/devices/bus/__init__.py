"""The device bus: what a window declares, the map of all of them, how an access finds its own."""
