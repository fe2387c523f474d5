"""Outputs that nobody wrote: what was packed elsewhere, who writes next to them."""
