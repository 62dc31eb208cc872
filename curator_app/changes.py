"""What the curator's tools change, each in the transaction that writes it down with its run."""

from datetime import date
from pathlib import Path
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from curator_app import activity, cleaning
from curator_app.models import CuratorRun
from sessions_app.access.tokens import SessionToken
from sessions_app.errors import Conflict, Invalid, NotFound, ParachuteError
from sessions_app.models import EventType, Session, TitleSource
from sessions_app.streaming.log import record


class CannotLog(ParachuteError):
    code, status = "vault_not_writable", 503


def is_alive(token: SessionToken) -> bool:
    """Whether the run that it was made for runs, and has not been given to another worker since."""
    return CuratorRun.objects.living(token.holder).filter(session=token.session_id).exists()


@transaction.atomic
def change_title(token: SessionToken, text: str) -> str:
    title = cleaning.title(text)
    if not title:
        raise Invalid.field("title", _("A title needs words."))
    run, session = _locked(token)
    if session.title_source == TitleSource.USER:
        raise Conflict(_("A person gave this title. It stays."))
    if title != session.title:
        before = {} if run.title_after else {"title_before": session.title}
        Session.objects.filter(pk=session.pk).update(title=title, title_source=TitleSource.AI)
        _note(run, "update_title", title_after=title, **before)
        record(session.pk, EventType.SESSION_UPDATED, {"title": title, "titleSource": TitleSource.AI})
    return title


@transaction.atomic
def change_summary(token: SessionToken, text: str) -> str:
    summary = cleaning.summary(text)
    if not summary:
        raise Invalid.field("summary", _("A summary needs words."))
    run, session = _locked(token)
    if session.is_summary_a_persons:
        raise Conflict(_("A person wrote this summary. It stays."))
    if summary != session.summary:
        before = {} if run.summary_after else {"summary_before": session.summary}
        Session.objects.filter(pk=session.pk).update(summary=summary)
        _note(run, "update_summary", summary_after=summary, **before)
        record(session.pk, EventType.SESSION_UPDATED, {"summary": summary})
    return summary


def log_activity(token: SessionToken, text: str) -> str:
    """One line a run: the first. In the vault too, where all who read there may read it."""
    line = cleaning.activity(text)
    if not line:
        raise Invalid.field("activity", _("A line of the log needs words."))
    now = timezone.now()
    with transaction.atomic():
        run, session = _locked(token)
        if run.activity:
            return run.activity
        day = activity.today(session.workspace, now)
        is_for_all = activity.belongs_in_vault(session)
        _note(run, "log_activity", activity=line, day=day, is_in_vault=is_for_all)
    if is_for_all:
        try:
            _append(session, run, day, _as_line(session, run, line, now))
        except OSError as error:
            problem = _("The log of the day could not be written (%(why)s).") % {"why": error.strerror}
            raise CannotLog(problem) from error
    return line


def _append(session: Session, run: CuratorRun, day: date, line: dict[str, Any]) -> None:
    """Raises OSError. Who deletes the chat after the row and before its line does not find that."""
    vault = Path(session.workspace.vault_path)
    activity.append(vault, day, line)
    if not CuratorRun.objects.filter(pk=run.pk).exists():
        activity.take_away(vault, day, [session.pk])


def _as_line(session: Session, run: CuratorRun, line: str, now: Any) -> dict[str, Any]:
    return {
        "ts": now.isoformat(timespec="seconds").replace("+00:00", "Z"),
        "session_id": str(session.pk),
        "session_title": session.title,
        "agent_type": session.agent_type or session.agent_slug,
        "exchange_number": run.exchange_number,
        "summary": line,
    }


def _locked(token: SessionToken) -> tuple[CuratorRun, Session]:
    """The run and its session, while it runs, and nobody else changes them before the transaction is over."""
    found = Session.objects.select_for_update(of=("self",)).filter(pk=token.session_id)
    session = found.select_related("workspace").first()
    run = CuratorRun.objects.living(token.holder).first()
    if session is None or run is None:
        raise NotFound
    return run, session


def _note(run: CuratorRun, action: str, **columns: Any) -> None:
    actions = [*(each for each in run.actions if each != action), action]
    CuratorRun.objects.filter(pk=run.pk).update(actions=actions, **columns)
