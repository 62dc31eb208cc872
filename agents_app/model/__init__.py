"""How agents reach a model: the door with its key, which model that is, and the demo that needs none."""
