"""What would make a wrong run right: the program runs again with one small change at a time."""
