"""What is said to a session, and taken back: messages, files, aborts, and its end."""
