"""What goes over the NoC: who sent it, what orders it, what it changes."""
