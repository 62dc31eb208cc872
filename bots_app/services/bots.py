"""What people want of a bot, and how it is. Operators say it; whoever runs it reads the rows."""

import re
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID, uuid4

from django.conf import settings
from django.db.models import F, Q
from django.utils import timezone
from django.utils.translation import gettext as _

from bots_app.models import Bot, BotState, PlatformName
from bots_app.services import saying
from permissions_app import audit
from permissions_app.audit import AuditKind, Entry, Outcome
from sessions_app.access.caller import Caller
from sessions_app.errors import Conflict, Forbidden, Invalid, NotFound
from sessions_app.sealing import CannotUnseal, seal, unseal

PURPOSE = "parachute: token of a bot"
SHOWN = 4
SAID_EVERY = 10.0  # seconds in which whoever runs it says so
GONE_AFTER = timedelta(seconds=30)
_TOKEN = re.compile(r"[\x21-\x7e]{20,200}")


@dataclass(frozen=True)
class Order:
    """What is wanted of one platform now."""

    platform: str
    number: int
    token: str = field(repr=False)
    url: str
    is_on: bool
    problem: str = ""
    test: UUID | None = None

    @property
    def is_wanted(self) -> bool:
        return self.is_on and bool(self.token)


def of(platform: str) -> Bot:
    if platform not in PlatformName.values:
        raise NotFound(_("There is no such platform."))
    bot, _made = Bot.objects.get_or_create(platform=platform)
    return bot


def all_bots() -> list[Bot]:
    return [of(platform) for platform in PlatformName.values]


def orders() -> list[Order]:
    """One query: an idle house asks it every few seconds."""
    rows = {bot.platform: bot for bot in Bot.objects.all()}
    return [_order(platform, rows.get(platform)) for platform in PlatformName.values]


def _order(platform: str, bot: Bot | None) -> Order:
    access = settings.PARACHUTE_BOTS[platform]
    token, problem = access.token, ""
    if not token and bot is not None and bot.sealed:
        try:
            token = unseal(bot.sealed, PURPOSE)
        except CannotUnseal:
            problem = _("The token cannot be read, as SECRET_KEY is another one now. Enter it again.")
    if bot is None:
        return Order(platform, 0, token, access.url, is_on=True)
    test = bot.test_asked if bot.test_asked != bot.test_done else None
    return Order(platform, bot.orders, token, access.url, bot.is_on, problem, test)


def has_token(bot: Bot) -> bool:
    return bool(settings.PARACHUTE_BOTS[bot.platform].token or bot.sealed)


def set_by(bot: Bot) -> str:
    """The variable that holds the token; empty where a person may enter one."""
    return str(settings.PARACHUTE_BOTS[bot.platform].set_by)


def url_of(bot: Bot) -> str:
    return str(settings.PARACHUTE_BOTS[bot.platform].url)


def state_of(bot: Bot) -> tuple[BotState, str]:
    """As it is now: whoever spoke for it may have died without a word."""
    if not has_token(bot):
        return BotState.STOPPED, _("It has no token yet.")
    if not bot.is_on:
        return BotState.STOPPED, ""
    is_silent = bot.seen_at is None or bot.seen_at < timezone.now() - GONE_AFTER
    if bot.state == BotState.RUNNING and is_silent:
        return BotState.STOPPED, _("Nobody runs the bots: `manage.py up` does, or `manage.py run_bots`.")
    return BotState(bot.state), bot.problem


def save_token(caller: Caller, platform: str, token: str) -> Bot:
    """An empty one takes it away."""
    bot = _changeable(caller, platform)
    if set_by(bot):
        raise Conflict(
            _("The environment says the token (%(name)s), and wins over this page.") % {"name": set_by(bot)}
        )
    token = token.strip()
    if token and not _TOKEN.fullmatch(token):
        raise Invalid.field("token", _("This is no token: a token is one long word."))
    Bot.objects.filter(pk=bot.pk).update(
        sealed=seal(token, PURPOSE) if token else "",
        ending=token[-SHOWN:] if len(token) >= 6 * SHOWN else "",
        saved_by_id=caller.account_id,
        saved_at=timezone.now(),
        is_on=True,
        account="",
    )
    _ordered(caller, bot, "token" if token else "no token")
    return of(platform)


def start(caller: Caller, platform: str) -> Bot:
    bot = _changeable(caller, platform)
    if not has_token(bot):
        raise Invalid.field("token", _("It has no token yet. Enter one first."))
    Bot.objects.filter(pk=bot.pk).update(is_on=True)
    _ordered(caller, bot, "start")
    return of(platform)


def stop(caller: Caller, platform: str) -> Bot:
    bot = _changeable(caller, platform)
    Bot.objects.filter(pk=bot.pk).update(is_on=False)
    _ordered(caller, bot, "stop")
    return of(platform)


def ask_for_test(caller: Caller, platform: str) -> UUID:
    bot = _changeable(caller, platform)
    if not has_token(bot):
        raise Invalid.field("token", _("It has no token yet. Enter one first."))
    asked = uuid4()
    Bot.objects.filter(pk=bot.pk).update(test_asked=asked)
    saying.ring(orders=True)
    return asked


def tested(platform: str, asked: UUID, account: str, problem: str) -> None:
    mine = Bot.objects.filter(platform=platform, test_asked=asked)
    mine.update(test_done=asked, test_account=account, test_problem=problem)


def answer_to(platform: str, asked: UUID) -> Bot | None:
    return Bot.objects.filter(platform=platform, test_done=asked).first()


def hold(platform: str, holder: str) -> bool:
    """Whether this process may speak for it. One that is started again under its name goes on at once."""
    of(platform)
    free = Q(holder__in=("", holder)) | Q(seen_at=None) | Q(seen_at__lt=timezone.now() - GONE_AFTER)
    mine = Bot.objects.filter(free, platform=platform)
    return mine.update(holder=holder, seen_at=timezone.now()) == 1


def let_go(platform: str, holder: str) -> None:
    Bot.objects.filter(platform=platform, holder=holder).update(holder="", seen_at=None)


def is_now(platform: str, state: BotState, problem: str = "", account: str | None = None) -> None:
    if account:
        Bot.objects.filter(platform=platform).update(account=account[:100])
    other = Bot.objects.filter(platform=platform).exclude(state=state, problem=problem)
    other.update(state=state, problem=problem, state_at=timezone.now())


def check_operator(caller: Caller) -> None:
    if not caller.is_operator:
        raise Forbidden(_("Only an operator says which bots this server has."))


def _changeable(caller: Caller, platform: str) -> Bot:
    check_operator(caller)
    return of(platform)


def _ordered(caller: Caller, bot: Bot, what: str) -> None:
    Bot.objects.filter(pk=bot.pk).update(orders=F("orders") + 1)
    entry = Entry(
        kind=AuditKind.GRANT,
        outcome=Outcome.GRANTED,
        who=caller.name,
        tool="bots",
        arguments={"platform": bot.platform, "order": what},
    )
    audit.record_on_commit(entry)
    saying.ring(orders=True)
