"""Why a place of a tile holds what it holds: the last change of it, and what that was made from."""
