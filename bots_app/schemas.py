from datetime import datetime
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import AwareDatetime, Field

from bots_app.models import Bot, BotUser, PairingRequest
from bots_app.services import bots
from bots_app.services.pairing import KEPT, Approval
from bots_app.suspicion import looks_like_orders
from sessions_app.schemas import Order, Text, Wire

Platform = Literal["telegram", "discord"]


class BotStatus(Wire):
    platform: Platform
    state: Literal["stopped", "running", "reconnecting", "failed"]
    account: str = Field(description="What it is called there; empty until it was there")
    problem: str = Field(description="What is wrong, in words; empty where nothing is")
    has_token: bool
    is_on: bool = Field(description="Whether somebody wants it to run")
    since: datetime

    @classmethod
    def of(cls, bot: Bot) -> Self:
        state, problem = bots.state_of(bot)
        return cls.model_construct(
            platform=bot.platform,
            state=state,
            account=bot.account,
            problem=problem,
            has_token=bots.has_token(bot),
            is_on=bot.is_on,
            since=bot.state_at,
        )


class BotStatuses(Wire):
    platforms: list[BotStatus]


class BotConfig(Wire):
    has_token: bool
    set_by: str = Field(description="The variable of the environment that has the token, and wins")
    api_url: str = Field(description="Of a server of one's own, from the environment")

    @classmethod
    def of(cls, bot: Bot) -> Self:
        return cls.model_construct(
            has_token=bots.has_token(bot),
            set_by=bots.set_by(bot),
            api_url=bots.url_of(bot),
        )


class BotConfigs(Wire):
    telegram: BotConfig
    discord: BotConfig


class TokenOrder(Order):
    token: Annotated[Text, Field(max_length=300)] = Field(description="Empty: it is taken away")


class ConfigOrder(Order):
    telegram: TokenOrder | None = None
    discord: TokenOrder | None = None


class BotTested(Wire):
    ok: bool
    account: str
    error: str | None


class PairingOut(Wire):
    id: UUID
    platform: Platform
    platform_user_id: str
    platform_user_display: str
    platform_chat_id: str
    status: Literal["pending", "approved", "denied", "expired"]
    approved_trust_level: str | None
    first_message: str
    messages: list[str] = Field(description="Text of a stranger: show it as plain text")
    looks_like_orders: bool = Field(description="Some of it may be meant for an agent. A hint, and no more")
    created_at: datetime
    expires_at: datetime
    resolved_at: datetime | None
    resolved_by: str | None

    @classmethod
    def of(cls, request: PairingRequest) -> Self:
        names = ("id", "platform", "platform_user_id", "platform_user_display", "platform_chat_id")
        times = ("status", "created_at", "expires_at", "resolved_at", "first_message")
        return cls.model_construct(
            **{name: getattr(request, name) for name in (*names, *times)},
            approved_trust_level=request.approved_trust_level or None,
            messages=[each["text"] for each in request.messages],
            looks_like_orders=any(looks_like_orders(each["text"]) for each in request.messages),
            resolved_by=request.resolved_by.get_username() if request.resolved_by else None,
        )


class PairingList(Wire):
    requests: list[PairingOut]


class PairingCount(Wire):
    pending: int


class ApproveOrder(Order):
    trust_level: Literal["vault", "sandboxed"] = "sandboxed"
    workspace: Text | None = Field(None, description="One that you own; else the oldest of these")
    agent: Annotated[Text, Field(max_length=100)] | None = Field(
        None, description="This one and no other answers them; else the workspace's, or one they choose"
    )
    expires_at: AwareDatetime | None = None
    messages_per_day: Annotated[int, Field(ge=1, le=100_000)] | None = None
    seen: Annotated[int, Field(ge=1, le=KEPT)] = Field(
        1, description="How many of their messages you have read: these are answered, and no more"
    )

    def approval(self) -> Approval:
        given: dict[str, Any] = self.model_dump()
        return Approval(**{**given, "agent": given["agent"] or ""})


class LetInOut(Wire):
    platform: Platform
    platform_user_id: str = Field(examples=["123456789"])
    platform_user_display: str
    workspace: str = Field(examples=["garden"])
    trust_level: Literal["vault", "sandboxed"]
    agent: str | None = Field(description="This one and no other; null: the workspace's, or one they choose")
    expires_at: datetime | None
    messages_per_day: int | None

    @classmethod
    def of(cls, user: BotUser) -> Self:
        names = ("platform", "platform_user_id", "trust_level", "expires_at", "messages_per_day")
        return cls(
            **{name: getattr(user, name) for name in names},
            platform_user_display=user.display,
            workspace=user.workspace.slug,
            agent=user.agent or None,
        )


class LetInChange(Order):
    """What is not there stays as it is."""

    trust_level: Literal["vault", "sandboxed"] = "sandboxed"
    agent: Annotated[Text, Field(max_length=100)] | None = Field(
        None, description="Null: the workspace's, or one they choose", examples=["gardener"]
    )
    expires_at: AwareDatetime | None = Field(None, description="Null: until somebody puts them out")
    messages_per_day: Annotated[int, Field(ge=1, le=100_000)] | None = Field(
        None, description="Null: as many as they like", examples=[50]
    )

    def wanted(self) -> dict[str, Any]:
        given: dict[str, Any] = self.model_dump(exclude_unset=True)
        return {**given, "agent": given["agent"] or ""} if "agent" in given else given


class LinkOut(Wire):
    code: str = Field(description="To be sent to the bot as `/link CODE`, within ten minutes, once")
    url: str | None = Field(description="Opens Telegram, where one press sends it")
