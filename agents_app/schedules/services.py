"""The only writers of schedules and ticks.

The file of an agent owns its schedule, as far as a person accepted it: `sync` makes the rows what the files
say, and beside each the row of django-celery-beat by which the clock rings. A ring says only "look": which
time it is about follows from the cron line and the clock, so that a ring that was lost, and one that comes
twice, change nothing. `sweep` looks without a ring.

An owner of the workspace, or an operator, switches it off and on and runs it by hand.
"""

import json
import logging
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django_celery_beat.models import CrontabSchedule, PeriodicTask

from agents_app.definitions.agents import Agent, agent_of, agents_of
from agents_app.rights.owners import owns, record
from agents_app.schedules.cron import Cron
from agents_app.schedules.models import AgentSchedule, Tick, TickOutcome
from agents_app.schedules.starting import Came, come
from agents_app.schedules.zones import zone_of
from permissions_app.audit import Outcome
from sessions_app.access.caller import Caller
from sessions_app.access.models import Workspace
from sessions_app.errors import Conflict, Forbidden, NotFound

log = logging.getLogger(__name__)

TASK = "agents_app.tasks.tick"
TOOL = "agent-schedule"


class Wanted(NamedTuple):
    """What files say."""

    cron: str
    time_zone: str


def sync() -> None:
    for workspace in Workspace.objects.filter(archived_at=None):
        try:
            sync_of(workspace)
        except Exception:  # one that fails keeps no other from its times; it is tried again
            log.exception("The schedules of workspace %s could not be read.", workspace.pk)
    for gone in AgentSchedule.objects.exclude(workspace__archived_at=None):
        _remove(gone)
    _remove_of_the_gone()


def sync_of(workspace: Workspace) -> None:
    if Path(workspace.vault_path).is_dir():  # a disk that is away for a while is no reason to forget them
        _sync(workspace)


def _sync(workspace: Workspace) -> None:
    wanted = {
        agent.slug: Wanted(agent.rights.schedule, agent.definition.fields.timezone or workspace.time_zone)
        for agent in agents_of(workspace)
        if agent.definition.is_usable and agent.rights.schedule
    }
    there = {row.agent: row for row in AgentSchedule.objects.filter(workspace=workspace)}
    for slug, row in there.items():
        if slug not in wanted:
            _remove(row)
        elif wanted[slug] != (row.cron, row.time_zone):
            _change(row, wanted[slug])
    for slug in wanted.keys() - there.keys():
        _add(workspace, slug, wanted[slug])


@transaction.atomic
def _add(workspace: Workspace, slug: str, wanted: Wanted) -> None:
    try:
        with transaction.atomic():
            row = AgentSchedule.objects.create(workspace=workspace, agent=slug, **wanted._asdict())
    except IntegrityError:
        return  # another worker was quicker
    _put_clock(row)


@transaction.atomic
def _change(row: AgentSchedule, wanted: Wanted) -> None:
    """From now on: what the new line would have had due before is not made up for."""
    same = AgentSchedule.objects.filter(pk=row.pk, cron=row.cron, time_zone=row.time_zone)
    if same.update(**wanted._asdict(), since=timezone.now()):
        _put_clock(AgentSchedule.objects.get(pk=row.pk))


@transaction.atomic
def _remove(row: AgentSchedule) -> None:
    """That an operator switched it off is kept: a file that is away for a moment, or wrong, or a workspace in
    the archive, would else switch it on."""
    PeriodicTask.objects.filter(name=_name(row)).delete()
    AgentSchedule.objects.filter(pk=row.pk, is_on=True).delete()


def _remove_of_the_gone() -> None:
    """A workspace that is removed takes its schedules with it, and these do not know of it. They are read
    first: each is made in one transaction with its schedule."""
    there = list(PeriodicTask.objects.filter(task=TASK).values_list("pk", "name"))
    known = {_name(row) for row in AgentSchedule.objects.all()}
    if gone := [pk for pk, name in there if name not in known]:
        PeriodicTask.objects.filter(pk__in=gone).delete()


def _name(row: AgentSchedule) -> str:
    return f"agent {row.workspace_id} {row.agent}"


def _put_clock(row: AgentSchedule) -> None:
    minute, hour, day, month, weekday = row.cron.split()
    zone = zone_of(row.time_zone)
    times = {
        "minute": minute,
        "hour": hour,
        "day_of_month": day,
        "month_of_year": month,
        "day_of_week": _weekday(weekday),
        "timezone": getattr(zone, "key", None) or "UTC",
    }
    # Nothing there makes them unique: two workers may have made the same one at once.
    crontab = CrontabSchedule.objects.filter(**times).first() or CrontabSchedule.objects.create(**times)
    PeriodicTask.objects.update_or_create(
        name=_name(row),
        defaults={"task": TASK, "crontab": crontab, "args": json.dumps([row.pk]), "enabled": row.is_on},
    )


def _weekday(part: str) -> str:
    """Sunday is 0 there and nothing else. Where a line names it by 7 the days are written out."""
    if "7" not in part:
        return part
    return ",".join(map(str, sorted(Cron.of(f"0 0 * * {part}").weekdays)))


def of(workspace: Workspace, agent: Agent) -> AgentSchedule | None:
    """The times that count: the row of one that was switched off stays when its file has none any more."""
    if not agent.rights.schedule:
        return None
    row: AgentSchedule | None = AgentSchedule.objects.filter(workspace=workspace, agent=agent.slug).first()
    return row


def known(workspace: Workspace, agent: Agent) -> AgentSchedule:
    row = of(workspace, agent)
    if row is None:
        raise NotFound(_("This agent does not run by itself. Its file says when, once an owner accepts it."))
    return row


def may_decide(caller: Caller, workspace: Workspace) -> bool:
    return caller.is_operator or owns(caller, workspace)


@transaction.atomic
def switch(caller: Caller, schedule_id: int, *, is_on: bool) -> None:
    row = _decided(caller, schedule_id)
    changed = AgentSchedule.objects.filter(pk=schedule_id).exclude(is_on=is_on)
    if changed.update(is_on=is_on, since=timezone.now()):
        _put_clock(AgentSchedule.objects.get(pk=schedule_id))
        outcome = Outcome.GRANTED if is_on else Outcome.REVOKED
        record(caller, row.workspace, TOOL, outcome, {"agent": row.agent, "on": is_on})


def sweep(now: datetime | None = None) -> int:
    """Makes what was missed, of each agent the last: whoever was away for a week does not start with
    seven."""
    return sum(
        _tried(pk, now) for pk in AgentSchedule.objects.filter(is_on=True).values_list("pk", flat=True)
    )


def _tried(schedule_id: int, now: datetime | None) -> bool:
    """One that fails keeps no other from its time; it is tried again."""
    try:
        return tick(schedule_id, now) is not None
    except Exception:
        log.exception("Schedule %s could not be looked at.", schedule_id)
        return False


def tick(schedule_id: int, now: datetime | None = None) -> Tick | None:
    """What is due by now, if nobody made it. None: nothing is."""
    row = AgentSchedule.objects.select_related("workspace").filter(pk=schedule_id, is_on=True).first()
    if row is None:
        return None
    at = now or timezone.now()
    due = Cron.of(row.cron).last_before(at, zone_of(row.time_zone))
    if due is None or due <= row.since or Tick.objects.filter(**_which(row, due)).exists():
        return None
    return _make(row, due)


@transaction.atomic
def run_now(caller: Caller, schedule_id: int) -> Tick:
    """Because somebody wants it, on or off."""
    row = _decided(caller, schedule_id)
    made = _make(row, timezone.now(), is_by_hand=True)
    if made is None:
        raise Conflict(_("Somebody runs it at this very moment."))
    told = {"agent": row.agent, "run": made.outcome, "session": str(made.session_id or "")}
    record(caller, row.workspace, TOOL, Outcome.GRANTED, told)
    return made


def _decided(caller: Caller, schedule_id: int) -> AgentSchedule:
    row: AgentSchedule = AgentSchedule.objects.select_related("workspace").get(pk=schedule_id)
    if not may_decide(caller, row.workspace):
        raise Forbidden(_("Only an owner of this workspace decides when its agents run by themselves."))
    return row


def _which(row: AgentSchedule, due: datetime) -> dict[str, object]:
    return {"workspace": row.workspace_id, "agent": row.agent, "due_at": due}


def _make(row: AgentSchedule, due: datetime, *, is_by_hand: bool = False) -> Tick | None:
    """The tick and what comes of it are one transaction: of two who make it at once, one does."""
    agent = agent_of(row.workspace, row.agent)
    try:
        with transaction.atomic():
            made: Tick = Tick.objects.create(
                workspace=row.workspace,
                agent=row.agent,
                due_at=due,
                is_by_hand=is_by_hand,
                outcome=TickOutcome.SKIPPED,
            )
            came = _came(row, agent, made)
            columns = {"outcome": came.outcome, "reason": came.reason, "session_id": came.session_id}
            Tick.objects.filter(pk=made.pk).update(**columns)
    except IntegrityError:
        return None
    made.refresh_from_db()
    return made


def _came(row: AgentSchedule, agent: Agent | None, made: Tick) -> Came:
    if agent is None or not agent.definition.is_usable:
        return Came(TickOutcome.REFUSED, _("There is no such agent any more, or its file is wrong."))
    return come(row.workspace, agent, made.due_at)


def next_of(row: AgentSchedule) -> datetime | None:
    return Cron.of(row.cron).first_after(timezone.now(), zone_of(row.time_zone)) if row.is_on else None


def last_ticks(workspace_id: int, agent: str, most: int = 10) -> list[Tick]:
    return list(Tick.objects.filter(workspace=workspace_id, agent=agent)[:most])
