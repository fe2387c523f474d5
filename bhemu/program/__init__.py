"""A program as files: PROGRAM.toml, ELFs, symbols, tensors and their formats."""
