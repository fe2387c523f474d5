"""Packer: Dst to L1."""
