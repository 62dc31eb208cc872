"""What an agent is told before the first message."""
