"""Random programs of one unit each, how two models are compared on them, and golden vectors."""
