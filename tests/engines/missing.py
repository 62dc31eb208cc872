class NotTested(Exception):
    """An engine that is not to be had here; the text is for who reads the result of the tests."""


class BrokenRecipe(Exception):
    """The engine is here, and packages too: that there is no image is the fault of `deploy/sandbox`."""
