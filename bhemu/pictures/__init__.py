"""Runs to look at: a report in one HTML file, a trace for a viewer of Chrome trace events."""
