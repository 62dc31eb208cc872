"""What the server writes for an agent behind a wall, once a person allowed it."""
