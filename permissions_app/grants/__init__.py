"""Which agent may start which other one. People decide; agents ask.

Orchestration asks `holds_spawn_grant` at each spawn and `spawnable` when a session starts; an agent that
wants more calls `request_grant`.
"""

from permissions_app.grants.requests import decide_request, request_grant
from permissions_app.grants.services import NewGrant, holds_spawn_grant, make_grant, revoke_grant, spawnable

__all__ = [
    "NewGrant",
    "decide_request",
    "holds_spawn_grant",
    "make_grant",
    "request_grant",
    "revoke_grant",
    "spawnable",
]
