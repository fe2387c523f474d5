"""Programs that drive the chip from outside: hosts that speak UMD's simulation protocol."""
