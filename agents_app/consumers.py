"""The WebSocket that can also speak: messages, aborts and what people decide, beside following."""

from typing import Any

from pydantic import ValidationError

from agents_app.schemas import AbortRequest, ChatRequest, idempotency_key
from agents_app.turns.said.abort import abort
from agents_app.turns.said.opening import open_turn
from permissions_app import services
from permissions_app.inbox import follow_inbox
from permissions_app.schemas import AnswerOrder, SessionDenyOrder, SessionGrantOrder
from sessions_app.access.models import KeyScope
from sessions_app.consumers import FollowSocket, Message
from sessions_app.errors import Invalid
from sessions_app.streaming.bus import Payload
from sessions_app.threads import in_thread

MOST_TOLD = 20  # of the fields that are wrong
NOT_THE_ORDER = ("type", "key")  # `key` is what the Idempotency-Key is of a POST


class ChatSocket(FollowSocket):
    def __init__(self) -> None:
        super().__init__()
        self.feeds["inbox"] = (follow_inbox, self.say_asked)
        self.commands |= {
            "message": self._message,
            "abort": self._abort,
            "grant": self._grant,
            "deny": self._deny,
            "answer": self._answer,
        }

    async def say_asked(self, news: list[Payload]) -> None:
        """What the inbox has to say; a subclass may say it in another way."""
        for payload in news:
            await self.say(payload)

    async def _message(self, order: Message) -> None:
        caller = self.caller_who_may(KeyScope.CHAT)
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
        caller = self.caller_who_may(KeyScope.CHAT)
        given = _parsed(AbortRequest, _without_session(order))
        await in_thread(abort)(caller, self.session_of(order), given.turn_id)

    async def _grant(self, order: Message) -> None:
        caller = self.caller_who_may(KeyScope.CHAT)
        given = _parsed(SessionGrantOrder, _without_session(order))
        await in_thread(services.grant)(
            caller, given.request_id, pattern=given.pattern, scope=given.scope, session_id=self.session_id
        )

    async def _deny(self, order: Message) -> None:
        caller = self.caller_who_may(KeyScope.CHAT)
        given = _parsed(SessionDenyOrder, _without_session(order))
        await in_thread(services.deny)(
            caller, given.request_id, reason=given.reason, session_id=self.session_id
        )

    async def _answer(self, order: Message) -> None:
        caller = self.caller_who_may(KeyScope.CHAT)
        given = _parsed(AnswerOrder, _without_session(order))
        await in_thread(services.answer)(caller, given.request_id, given.answers, session_id=self.session_id)

    def _for_this_session(self, order: Message) -> Message:
        return {**_without_session(order), "sessionId": str(self.session_id)} if self.session_id else order


def _without_session(order: Message) -> Message:
    return {name: value for name, value in order.items() if name not in ("sessionId", "session_id")}


def _parsed(schema: Any, order: Message) -> Any:
    given = {name: value for name, value in order.items() if name not in NOT_THE_ORDER}
    try:
        return schema.model_validate(given)
    except ValidationError as error:
        told = error.errors()[:MOST_TOLD]
        raise Invalid.of_fields([(".".join(map(str, each["loc"])), each["msg"]) for each in told]) from error
