from bots_app.models.bot import Bot, BotState, PlatformName
from bots_app.models.chats import BotChat, ChatType, Delivery, DeliveryKind, DeliveryState, Heard, HeardState
from bots_app.models.people import BotUser, LinkCode, PairingRequest, PairingStatus

__all__ = [
    "Bot",
    "BotChat",
    "BotState",
    "BotUser",
    "ChatType",
    "Delivery",
    "DeliveryKind",
    "DeliveryState",
    "Heard",
    "HeardState",
    "LinkCode",
    "PairingRequest",
    "PairingStatus",
    "PlatformName",
]
