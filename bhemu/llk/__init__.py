"""tt-llk's tests: the host side of their boot protocol, and their device library on a tile."""
