"""The order of a run, followed step by step on one tile: the model that bhemu/why/order equals."""
