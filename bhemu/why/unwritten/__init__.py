"""Values that nothing has written, or only an earlier launch, and that affect the result."""
