"""Many runs of programs: what a SWEEP.toml says, on processes or a cluster, and the results."""
