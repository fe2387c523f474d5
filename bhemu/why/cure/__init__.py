"""Programs that differ from a wrong one in one place: what the check "cure" tries."""
