"""Hosts that drive bhemu from outside: debuggers and drivers, over a socket."""
