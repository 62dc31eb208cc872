"""The bots of this server: how they are, what they are signed in with, and who is let in."""

import asyncio
from typing import Any, Literal
from uuid import UUID

from django.http import HttpRequest
from django.utils.translation import gettext as _
from ninja import Query, Router, Status

from bots_app import reading
from bots_app.models import PairingRequest
from bots_app.schemas import (
    ApproveOrder,
    BotConfig,
    BotConfigs,
    BotStatus,
    BotStatuses,
    BotTested,
    ConfigOrder,
    LetInChange,
    LetInOut,
    LinkOut,
    PairingCount,
    PairingList,
    PairingOut,
    Platform,
)
from bots_app.services import bots, changing, linking, pairing, revoking
from sessions_app.access.caller import Caller
from sessions_app.api import caller_of
from sessions_app.errors import NotReady
from sessions_app.schemas import Wire, refusals
from sessions_app.threads import in_thread

router = Router(tags=["bots"], by_alias=True)
links = Router(tags=["bots"], by_alias=True)  # a person's own: it needs no more than to chat does

TEST_WITHIN = 20.0  # seconds
LOOKS_EVERY = 0.2
ORDERED = {200: BotStatus, **refusals(401, 403, 404, 409, 422)}


class PairingQuery(Wire):
    status: Literal["pending", "approved", "denied", "expired"] = "pending"


@router.get("/bots/status", response={200: BotStatuses, **refusals(401, 403)}, summary="How the bots are")
async def bots_status(request: HttpRequest) -> Any:
    found = await in_thread(reading.statuses)(caller_of(request))
    return BotStatuses.model_construct(platforms=[BotStatus.of(bot) for bot in found])


@router.get(
    "/bots/config",
    response={200: BotConfigs, **refusals(401, 403)},
    summary="What they are signed in with, but for the tokens",
)
async def bots_config(request: HttpRequest) -> Any:
    return await in_thread(_configs)(caller_of(request))


@router.put(
    "/bots/config",
    response={200: BotConfigs, **refusals(401, 403, 409, 422)},
    summary="Enter a token, or take it away",
    description="It is sealed, shown to nobody again, and used at once. What the environment says wins.",
)
async def change_bots_config(request: HttpRequest, order: ConfigOrder) -> Any:
    return await in_thread(_changed)(caller_of(request), order)


def _changed(caller: Caller, order: ConfigOrder) -> BotConfigs:
    bots.check_operator(caller)
    for platform, wanted in (("telegram", order.telegram), ("discord", order.discord)):
        if wanted is not None:
            bots.save_token(caller, platform, wanted.token)
    return _configs(caller)


def _configs(caller: Caller) -> BotConfigs:
    found = reading.configs(caller)
    return BotConfigs(telegram=BotConfig.of(found["telegram"]), discord=BotConfig.of(found["discord"]))


@router.post("/bots/{platform}/start", response=ORDERED, summary="Let a bot run")
async def start_bot(request: HttpRequest, platform: Platform) -> Any:
    return BotStatus.of(await in_thread(bots.start)(caller_of(request), platform))


@router.post("/bots/{platform}/stop", response=ORDERED, summary="Have a bot stop")
async def stop_bot(request: HttpRequest, platform: Platform) -> Any:
    return BotStatus.of(await in_thread(bots.stop)(caller_of(request), platform))


@router.post(
    "/bots/{platform}/test",
    response={200: BotTested, **refusals(401, 403, 404, 422, 503)},
    summary="Try whether a bot's token is good",
)
async def test_bot(request: HttpRequest, platform: Platform) -> Any:
    tested = await tried(caller_of(request), platform)
    return BotTested(ok=not tested[1], account=tested[0], error=tested[1] or None)


async def tried(caller: Caller, platform: str) -> tuple[str, str]:
    """Its name there, or what is wrong. Whoever runs the bots tries it: there is no library for it here."""
    asked = await in_thread(bots.ask_for_test)(caller, platform)
    try:
        async with asyncio.timeout(TEST_WITHIN):
            while (bot := await in_thread(bots.answer_to)(platform, asked)) is None:  # noqa: ASYNC110 - a row
                await asyncio.sleep(LOOKS_EVERY)
    except TimeoutError as error:
        raise NotReady(_("Nobody runs the bots: `manage.py up` does, or `manage.py run_bots`.")) from error
    return bot.test_account, bot.test_problem


@router.get(
    "/bots/pairing", response={200: PairingList, **refusals(401, 403, 422)}, summary="Who wants to be let in"
)
async def list_pairing(request: HttpRequest, query: Query[PairingQuery]) -> Any:
    found = await in_thread(reading.requests)(caller_of(request), query.status)
    return PairingList.model_construct(requests=[PairingOut.of(each) for each in found])


@router.get(
    "/bots/pairing/count",
    response={200: PairingCount, **refusals(401, 403)},
    summary="How many wait for you",
)
async def count_pairing(request: HttpRequest) -> Any:
    return PairingCount(pending=await in_thread(reading.count)(caller_of(request)))


@router.post(
    "/bots/pairing/{uuid:request_id}/approve",
    response={200: PairingOut, **refusals(401, 403, 404, 409, 422, 503)},
    summary="Let somebody in",
    description="Into a workspace that you own. They are told, and what you have read of them is answered.",
)
async def approve_pairing(request: HttpRequest, request_id: UUID, order: ApproveOrder) -> Any:
    return PairingOut.of(await in_thread(_approved)(caller_of(request), request_id, order))


def _approved(caller: Caller, request_id: UUID, order: ApproveOrder) -> PairingRequest:
    return _whole(pairing.approve(caller, request_id, order.approval()).pk)


@router.post(
    "/bots/pairing/{uuid:request_id}/deny",
    response={200: PairingOut, **refusals(401, 403, 404, 409)},
    summary="Turn somebody away",
)
async def deny_pairing(request: HttpRequest, request_id: UUID) -> Any:
    return PairingOut.of(await in_thread(_denied)(caller_of(request), request_id))


def _denied(caller: Caller, request_id: UUID) -> PairingRequest:
    return _whole(pairing.deny(caller, request_id).pk)


def _whole(request_id: UUID) -> PairingRequest:
    return PairingRequest.objects.select_related("resolved_by").get(pk=request_id)


@router.patch(
    "/bots/pairing/{platform}/{user_id}",
    response={200: LetInOut, **refusals(401, 403, 404, 422, 503)},
    summary="Change what somebody who is let in may have",
    description="For owners of their workspace. It counts from their next message; with another reach or "
    "agent that begins a new chat, and they are told.",
)
async def change_pairing(request: HttpRequest, platform: Platform, user_id: str, order: LetInChange) -> Any:
    return await in_thread(_let_in_changed)(caller_of(request), platform, user_id, order)


def _let_in_changed(caller: Caller, platform: str, user_id: str, order: LetInChange) -> LetInOut:
    return LetInOut.of(changing.change(caller, platform, user_id, order.wanted()))


@router.delete(
    "/bots/pairing/{platform}/{user_id}",
    response={204: None, **refusals(401, 403, 404)},
    summary="Put somebody out",
)
async def revoke_pairing(request: HttpRequest, platform: Platform, user_id: str) -> Any:
    await in_thread(revoking.revoke)(caller_of(request), platform, user_id)
    return Status(204, None)


@links.post(
    "/bots/link",
    response={200: LinkOut, **refusals(401, 403)},
    summary="A word by which a bot knows that an account is yours",
    description="For a person in a browser. Good once, for ten minutes. Send it to the bot as `/link CODE`. "
    "From then on your chat with it is yours alone, and it asks you there when something waits for you.",
)
async def link_bot(request: HttpRequest) -> Any:
    link = await in_thread(linking.make)(caller_of(request))
    return LinkOut(code=link.code, url=link.url or None)
