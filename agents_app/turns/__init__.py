"""Turns: opened by a message, claimed by a worker, prepared, run, finished; taken back if it is lost."""
