"""What is wrong with a program, and which line causes it: checks, late runs, origins of values."""
