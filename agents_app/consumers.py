"""The WebSocket that can also speak: messages and aborts, beside following."""

from typing import Any

from pydantic import ValidationError

from agents_app.schemas import AbortRequest, ChatRequest
from agents_app.turns.abort import abort
from agents_app.turns.opening import open_turn
from sessions_app.access.caller import Caller
from sessions_app.access.models import Scope
from sessions_app.consumers import FollowSocket, Message
from sessions_app.errors import Forbidden, Invalid
from sessions_app.threads import in_thread


class ChatSocket(FollowSocket):
    def __init__(self) -> None:
        super().__init__()
        self.commands |= {"message": self._message, "abort": self._abort}

    async def _message(self, order: Message) -> None:
        given = _parsed(ChatRequest, order, session_id=self.session_id)
        opened = await in_thread(open_turn)(
            self._chatting(), given.as_opening(), key=str(order.get("key", ""))
        )
        await self.say(
            {
                "type": "accepted",
                "sessionId": str(opened.session_id),
                "turnId": str(opened.turn_id),
                "seq": opened.seq,
            }
        )

    async def _abort(self, order: Message) -> None:
        given = _parsed(AbortRequest, {k: v for k, v in order.items() if k != "sessionId"})
        await in_thread(abort)(self._chatting(), self.session_of(order), given.turn_id)

    def _chatting(self) -> Caller:
        caller: Caller = self.scope["caller"]
        if not caller.may(Scope.CHAT):
            raise Forbidden("This key has no scope `chat`.")
        return caller


def _parsed(schema: Any, order: Message, **fixed: object) -> Any:
    given = {name: value for name, value in order.items() if name not in ("type", "key")}
    given |= {name: str(value) for name, value in fixed.items() if value is not None}
    try:
        return schema(**given)
    except ValidationError as error:
        fields = [{"field": ".".join(map(str, e["loc"])), "message": e["msg"]} for e in error.errors()]
        raise Invalid("Some fields cannot be taken as they are.", fields=fields) from error
