"""What a session may have and who may change it: trust, model, folder, and acting without asking. And what
only who owns a workspace decides (`owners.py`)."""
