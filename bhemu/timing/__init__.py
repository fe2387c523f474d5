"""The timed form: words, cores and requests take time."""
