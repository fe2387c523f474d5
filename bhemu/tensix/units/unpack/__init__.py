"""Unpackers: L1 to SrcA, SrcB and Dst."""
