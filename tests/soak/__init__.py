"""The soak: everything runs, everything is killed at random, and every message is still answered once.

run.py      starts `up`, lets load and killer loose, settles, stops, checks
script.py   what the model answers, so that each answer says which message it belongs to
load.py     conversations: who says things, and who reads every event of them
killer.py   SIGKILL at moments that follow from a seed
kept.py     the rows that are left, read from the database file when everything has stopped
checks.py   what must be true in the end, each broken promise as a sentence
report.py   what happened, as a short table
"""
