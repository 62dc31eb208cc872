"""The chats in which bots speak."""

from agents_app.rights.trust import narrowest
from agents_app.sandboxes import walls
from bots_app.models import BotChat, ChatType
from bots_app.platforms.base import Place
from sessions_app.access.models import TrustLevel, Workspace
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


def hold(chat_id: int | None) -> None:
    """Until this transaction ends. A chat before its people, everywhere: two that wait for each other end in
    an error for both."""
    BotChat.objects.select_for_update().filter(pk=chat_id or 0).first()


def bind(chat: BotChat, workspace: Workspace) -> bool:
    """A group belongs to the workspace of who first spoke to the bot there. Whether that is this one."""
    free = BotChat.objects.filter(pk=chat.pk, workspace=None)
    free.update(workspace=workspace, trust_level=usual_trust(workspace))
    return BotChat.objects.filter(pk=chat.pk, workspace=workspace).exists()


def usual_trust(workspace: Workspace) -> TrustLevel:
    """The narrowest that works on this machine."""
    box = narrowest(TrustLevel.SANDBOXED)
    works = walls.seems_to_work(box, workspace)
    return box if works else narrowest(workspace.trust_floor, TrustLevel.VAULT)
