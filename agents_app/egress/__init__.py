"""The way out of a wall: the public web, through a door in the worker that knows whose process asks."""
