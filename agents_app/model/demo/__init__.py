"""A small model of our own that speaks the Messages API.

`up` starts it when no key is configured, so that the whole product can be tried without one; tests
script it step by step. It is not clever, and everything it says says so.
"""
