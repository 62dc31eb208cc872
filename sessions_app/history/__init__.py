"""What was said: read from transcripts where a turn is over, and from its rows where it left none there."""
