"""Where what went wrong comes from: the last writer, what that was made from, and so on back."""
