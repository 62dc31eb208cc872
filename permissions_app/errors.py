"""What may go wrong where people decide."""

from sessions_app.errors import Conflict


class AlreadyDecided(Conflict):
    code = "already_decided"
