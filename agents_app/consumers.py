"""The WebSocket that can also speak: messages and aborts, beside following."""

from typing import Any

from pydantic import ValidationError

from agents_app.schemas import AbortRequest, ChatRequest, idempotency_key
from agents_app.turns.abort import abort
from agents_app.turns.opening import open_turn
from sessions_app.access.models import Scope
from sessions_app.consumers import FollowSocket, Message
from sessions_app.errors import Invalid
from sessions_app.threads import in_thread

NOT_THE_ORDER = ("type", "key")  # `key` is what the Idempotency-Key is of a POST


class ChatSocket(FollowSocket):
    def __init__(self) -> None:
        super().__init__()
        self.commands |= {"message": self._message, "abort": self._abort}

    async def _message(self, order: Message) -> None:
        caller = self.caller_who_may(Scope.CHAT)
        given = _parsed(ChatRequest, self._for_this_session(order))
        key = idempotency_key(order.get("key") or "")
        opening = await in_thread(given.as_opening)()
        opened = await in_thread(open_turn)(caller, opening, key=key)
        await self.say(
            {
                "type": "accepted",
                "sessionId": str(opened.session_id),
                "turnId": str(opened.turn_id),
                "seq": opened.seq,
            }
        )

    async def _abort(self, order: Message) -> None:
        caller = self.caller_who_may(Scope.CHAT)
        given = _parsed(AbortRequest, _without_session(order))
        await in_thread(abort)(caller, self.session_of(order), given.turn_id)

    def _for_this_session(self, order: Message) -> Message:
        return {**_without_session(order), "sessionId": str(self.session_id)} if self.session_id else order


def _without_session(order: Message) -> Message:
    return {name: value for name, value in order.items() if name not in ("sessionId", "session_id")}


def _parsed(schema: Any, order: Message) -> Any:
    given = {name: value for name, value in order.items() if name not in NOT_THE_ORDER}
    try:
        return schema.model_validate(given)
    except ValidationError as error:
        fields = [{"field": ".".join(map(str, e["loc"])), "message": e["msg"]} for e in error.errors()]
        raise Invalid("Some fields cannot be taken as they are.", fields=fields) from error
