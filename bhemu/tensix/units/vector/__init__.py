"""Vector unit (SFPU): one file per group of instructions."""
