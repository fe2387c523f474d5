"""Matrix unit (FPU): one file per group of instructions."""
