"""The origin of a wrong value: its last writer, the values that it was made from, and so on."""
