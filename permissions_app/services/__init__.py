from permissions_app.services.asked import ask, close, close_all, expire, use
from permissions_app.services.cards import close_card, open_card
from permissions_app.services.deciding import answer, deny, grant

__all__ = [
    "answer",
    "ask",
    "close",
    "close_all",
    "close_card",
    "deny",
    "expire",
    "grant",
    "open_card",
    "use",
]
