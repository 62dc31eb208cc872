"""The chats in which bots speak."""

from bots_app.models import BotChat, ChatType
from bots_app.platforms.base import Place
from sessions_app.storable import storable


def chat_of(platform: str, place: Place) -> BotChat:
    kind = ChatType.GROUP if place.is_group else ChatType.PRIVATE
    chat, _made = BotChat.objects.get_or_create(
        platform=platform,
        chat_id=place.chat_id,
        thread_id=place.thread_id,
        defaults={"chat_type": kind, "title": storable(place.title)[:200]},
    )
    return chat


def place_of(chat: BotChat) -> Place:
    return Place(chat.chat_id, chat.thread_id, is_group=chat.is_group, title=chat.title)
