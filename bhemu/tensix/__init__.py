"""The Tensix coprocessor: its instructions, its state record and the compiled loop that runs it."""
