"""The timed form: words, cores and threads take time."""
