"""What a place holds and why: its last change, what that was computed from, and so on back."""
