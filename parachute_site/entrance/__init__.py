"""The web server's entrance: daphne, which looks at what comes before it takes it. `python -m
parachute_site.entrance` takes daphne's own options.

Daphne gives a request to Django when the whole of it is there, so whatever is to hold before is held here:
`rules.py` says what a request may have, `channel.py` counts while it comes.
"""
