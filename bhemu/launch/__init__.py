"""A program on a machine: placed, released, run to its end, compared."""
