"""The network on chip between the records of tiles: coordinates, requests, delivery, memory."""
