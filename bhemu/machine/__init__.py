"""Running a tile: rounds until something stops it, breakpoints, steps, traces, errors in words."""
