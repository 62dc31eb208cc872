"""The run of one turn: `run.py` has its steps, each a call elsewhere."""
