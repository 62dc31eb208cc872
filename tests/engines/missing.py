class NotTested(Exception):
    """An engine that is not to be had here; the text is for who reads the result of the tests."""
