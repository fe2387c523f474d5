"""Comparing bhemu with a user's own libttsim.so: the library, cases, verdicts."""
