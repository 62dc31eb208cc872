"""How what happens in a session reaches whoever follows it: the log, the bus, and the readers' loops."""
