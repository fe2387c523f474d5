"""What bhemu asks of the operating system: Ctrl-C, files written whole, scratch folders."""
