"""What is done here when something happens in an app below."""

from typing import Any

from django.contrib.auth.models import User
from django.db.models.signals import pre_delete
from django.dispatch import receiver

from agents_app.signals import turn_finished
from bots_app.models import BotUser
from bots_app.services import revoking, saying
from sessions_app.access.services import caller_of_user
from sessions_app.models import Speaker, Turn


@receiver(turn_finished)
def tell_what_nobody_asked_for(turn: Turn, **_: Any) -> None:
    """A turn that Parachute itself opened in a bot's chat, as after a late approval, is told there too."""
    if not turn.session.bot_chat:
        return
    if turn.messages.exclude(source=Speaker.PLATFORM).exists():
        return  # somebody asked for it, there or on the page, and reads it where they asked
    chat = saying.chat_of_session(turn.session)
    if chat is not None:
        saying.answer(chat, turn.pk)


@receiver(pre_delete, sender=User)
def put_out_whose_person_is_gone(instance: User, **_: Any) -> None:
    """They were let in because their person was: a guest whom nobody knows would be left."""
    for user in BotUser.objects.filter(user=instance, revoked_at=None).select_related("direct"):
        revoking.put_out(user, caller_of_user(instance))
