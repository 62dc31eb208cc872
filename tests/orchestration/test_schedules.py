"""Agents that run by themselves: each time once, whatever the clock, the server and the file do."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from django_celery_beat.models import CrontabSchedule, PeriodicTask

from agents_app.definitions.agents import Agent, agents_of
from agents_app.orchestration import waking
from agents_app.orchestration.models import Wake
from agents_app.schedules import services
from agents_app.schedules.cron import Cron
from agents_app.schedules.models import AgentSchedule, Tick
from agents_app.turns.held.claim import claim
from agents_app.turns.held.holder import Holder
from agents_app.turns.running import finish
from parachute_site.celery import app
from sessions_app.access.caller import Caller
from sessions_app.access.models import Workspace
from sessions_app.errors import Forbidden
from sessions_app.models import Message, Session, SessionEvent, Turn
from tests.agents_app.conftest import Rings
from tests.orchestration.conftest import Write

pytestmark = [pytest.mark.database, pytest.mark.django_db, pytest.mark.usefixtures("rings")]

BERLIN = ZoneInfo("Europe/Berlin")
MORNING = datetime(2027, 1, 4, 7, tzinfo=UTC)  # a Monday
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
At = Callable[[str], datetime]


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("line", "now", "due"),
    [
        ("0 7 * * 1-5", "2027-01-10 12:00", "2027-01-08 07:00"),
        ("*/20 * * * *", "2027-01-10 12:39", "2027-01-10 12:20"),
        ("0 7 1 * 1", "2027-02-02 12:00", "2027-02-01 07:00"),  # either day will do
        ("0 7 13 * 5", "2027-01-16 12:00", "2027-01-15 07:00"),
        ("0 0 * * 7", "2027-01-10 12:00", "2027-01-10 00:00"),
        ("0 0 29 2 *", "2027-01-10 12:00", "2024-02-29 00:00"),
        ("0 0 30 2 *", "2027-01-10 12:00", None),
    ],
)
def test_what_was_due_last(line: str, now: str, due: str | None) -> None:
    found = Cron.of(line).last_before(utc(now), UTC)
    assert found == (utc(due) if due else None)


def test_an_hour_that_is_left_out_or_comes_twice_is_due_once() -> None:
    line = Cron.of("30 2 * * *")

    def all_due(first: str, hours: int) -> set[datetime | None]:
        begin = utc(first)
        return {line.last_before(begin + timedelta(minutes=15 * n), BERLIN) for n in range(hours * 4)}

    spring = all_due("2027-03-28 00:45", 20)
    assert spring == {utc("2027-03-27 01:30"), utc("2027-03-28 01:00")}
    autumn = all_due("2027-10-31 00:00", 20)
    assert autumn == {utc("2027-10-30 00:30"), utc("2027-10-31 00:30")}


@pytest.fixture
def scheduled(write_agent: Write) -> AgentSchedule:
    return schedule(write_agent, kind="scheduled", heartbeat="Look at the garden.")


def schedule(write_agent: Write, slug: str = "daily", **fields: str) -> AgentSchedule:
    write_agent(slug, schedule='"0 7 * * *"', timezone="UTC", **fields)
    services.sync()
    AgentSchedule.objects.update(since=MORNING - DAY)
    found: AgentSchedule = AgentSchedule.objects.get(agent=slug)
    return found


def outcomes() -> list[str]:
    return list(Tick.objects.order_by("due_at").values_list("outcome", flat=True))


def done(session: Session) -> None:
    claimed = claim(session.pk, Holder("w"))
    assert claimed
    finish.done(*claimed, {}, usage={}, cost_usd=0)


class TestScheduled:
    def test_each_time_is_a_session_of_its_own_once(self, scheduled: AgentSchedule) -> None:
        for minutes in (-1, 0, 1, 30):
            services.tick(scheduled.pk, MORNING + minutes * MINUTE)
        services.sweep(MORNING + 2 * MINUTE)
        (session,) = Session.objects.all()
        assert (session.kind, session.visibility, session.created_by) == ("scheduled", "workspace", None)
        assert session.supervision.triggered_by == "schedule"
        assert (Message.objects.get().content, outcomes()) == ("Look at the garden.", ["started"])
        done(session)
        assert Session.objects.get().status == "complete"
        services.sweep(MORNING + DAY)
        assert outcomes() == ["started", "started"]

    def test_what_was_missed_is_made_up_for_once(self, scheduled: AgentSchedule) -> None:
        assert [services.sweep(MORNING + 6 * DAY + MINUTE * n) for n in range(3)] == [1, 0, 0]
        assert Tick.objects.get().due_at == MORNING + 6 * DAY

    def test_what_was_due_before_it_was_accepted_is_nobodys(self, scheduled: AgentSchedule) -> None:
        AgentSchedule.objects.update(since=MORNING + MINUTE)
        assert services.sweep(MORNING + 2 * MINUTE) == 0

    def test_while_the_one_before_runs_no_other_begins(self, scheduled: AgentSchedule) -> None:
        services.sweep(MORNING)
        services.sweep(MORNING + DAY)
        assert (outcomes(), Session.objects.count()) == (["started", "skipped"], 1)

    def test_one_that_never_matches_never_runs(self, write_agent: Write) -> None:
        write_agent("never", schedule='"0 0 30 2 *"', kind="scheduled")
        services.sync()
        assert (services.sweep(), services.next_of(AgentSchedule.objects.get())) == (0, None)

    def test_an_owner_switches_it_off_and_runs_it(self, scheduled: AgentSchedule, as_ada: Caller) -> None:
        services.switch(as_ada, scheduled.pk, is_on=False)
        assert (services.sweep(MORNING), PeriodicTask.objects.get().enabled) == (0, False)
        made = services.run_now(as_ada, scheduled.pk)
        assert (made.outcome, made.is_by_hand) == ("started", True)
        services.sync()
        assert not AgentSchedule.objects.get().is_on, "the file does not switch it on again"

    def test_an_operator_decides_too_who_owns_nothing_there(
        self, scheduled: AgentSchedule, as_ben: Caller
    ) -> None:
        """In the console, which is theirs."""
        with pytest.raises(Forbidden):
            services.run_now(as_ben, scheduled.pk)
        services.switch(replace(as_ben, is_operator=True), scheduled.pk, is_on=False)
        assert (AgentSchedule.objects.get().is_on, Tick.objects.count()) == (False, 0)


class TestItsFile:
    def test_owns_it(self, scheduled: AgentSchedule, write_agent: Write, vault: Path) -> None:
        assert PeriodicTask.objects.get().crontab.hour == "7"
        write_agent("daily", schedule='"0 9 * * 5-7"', kind="scheduled", timezone="Europe/Berlin")
        services.sync()
        changed = AgentSchedule.objects.get()
        assert (changed.pk, changed.cron, changed.since != MORNING - DAY) == (
            scheduled.pk,
            "0 9 * * 5-7",
            True,
        )
        crontab = PeriodicTask.objects.get().crontab
        assert (crontab.hour, crontab.day_of_week, str(crontab.timezone)) == ("9", "0,5,6", "Europe/Berlin")
        (vault / "Agents" / "daily.md").unlink()
        services.sync()
        assert not AgentSchedule.objects.exists() and not PeriodicTask.objects.exists()

    def test_counts_as_far_as_a_person_has_accepted_it(self, workspace: Workspace, vault: Path) -> None:
        (vault / "Agents").mkdir()
        (vault / "Agents" / "eager.md").write_text('---\nkind: scheduled\nschedule: "* * * * *"\n---\nRun.\n')
        services.sync()
        assert not AgentSchedule.objects.exists()

    @pytest.mark.parametrize("away", ["file", "workspace"])
    def test_what_is_switched_off_stays_so_when_it_comes_back(
        self, away: str, scheduled: AgentSchedule, as_ada: Caller, vault: Path
    ) -> None:
        services.switch(as_ada, scheduled.pk, is_on=False)
        file, there = vault / "Agents" / "daily.md", vault / "daily.md"
        for is_away in (True, False):
            if away == "workspace":
                Workspace.objects.update(archived_at=MORNING if is_away else None)
            else:
                (file if is_away else there).rename(there if is_away else file)
            services.sync()
        assert services.sweep(MORNING) == 0
        services.switch(as_ada, scheduled.pk, is_on=True)
        assert PeriodicTask.objects.get().enabled

    def test_two_of_the_same_times_that_others_have_made_stop_nothing(
        self, scheduled: AgentSchedule, write_agent: Write
    ) -> None:
        CrontabSchedule.objects.create(minute="0", hour="7", timezone="UTC")
        schedule(write_agent, "other", kind="scheduled")
        assert PeriodicTask.objects.count() == 2

    def test_one_workspace_that_fails_keeps_no_other_from_its_times(
        self, write_agent: Write, monkeypatch: pytest.MonkeyPatch, vault: Path
    ) -> None:
        wrong = Workspace.objects.create(slug="a", name="A", vault_path=str(vault.with_name("a")))

        def or_wrong(workspace: Workspace) -> list[Agent]:
            if workspace == wrong:
                raise OSError("Input/output error")
            return agents_of(workspace)

        vault.with_name("a").mkdir()
        monkeypatch.setattr(services, "agents_of", or_wrong)
        schedule(write_agent, kind="scheduled")
        assert AgentSchedule.objects.count() == 1

    def test_goes_with_its_workspace_from_the_clock_too(
        self, scheduled: AgentSchedule, workspace: Workspace
    ) -> None:
        workspace.delete()
        services.sync()
        assert not PeriodicTask.objects.filter(task=services.TASK).exists()

    def test_a_disk_that_is_away_forgets_nothing(self, scheduled: AgentSchedule, vault: Path) -> None:
        vault.rename(vault.with_name("away"))
        services.sync()
        assert AgentSchedule.objects.count() == 1


@pytest.mark.django_db(transaction=True)
class TestHeartbeat:
    def test_wakes_the_one_that_lives_or_begins_one(self, write_agent: Write, rings: Rings) -> None:
        row = schedule(write_agent, "boss", kind="orchestrator", heartbeat="Look around.")
        services.tick(row.pk, MORNING)
        (session,) = Session.objects.all()
        assert session.kind == "orchestrator"
        done(session)
        services.tick(row.pk, MORNING + DAY)
        told = [event.payload["wakes"] for event in SessionEvent.objects.filter(type="user_message")]
        assert [[(wake["kind"], wake["text"]) for wake in wakes] for wakes in told] == [
            [("heartbeat", "Look around.")],
            [("heartbeat", "Look around.")],
        ]
        assert (outcomes(), Session.objects.count()) == (["started", "woken"], 1)

    def test_while_one_waits_there_is_no_second(self, write_agent: Write, rings: Rings) -> None:
        row = schedule(write_agent, "boss", kind="orchestrator", heartbeat="Look around.")
        for days in range(5):
            services.tick(row.pk, MORNING + days * DAY)
        done(Session.objects.get())
        assert outcomes() == ["started", "woken", "skipped", "skipped", "skipped"]
        assert Wake.objects.filter(state="delivered").count() == 2
        kept = Wake.objects.filter(state="skipped").values_list("payload__text", flat=True)
        assert set(kept) == {""}, "a year of them would fill a disk"

    def test_without_words_asks_no_model(self, write_agent: Write, rings: Rings) -> None:
        row = schedule(write_agent, "boss", kind="orchestrator")
        services.tick(row.pk, MORNING)
        waking.sweep()
        assert (outcomes(), Session.objects.count(), Turn.objects.count()) == (["skipped"], 0, 0)


def test_the_clock_hears_of_the_first_schedule_that_there_is(
    transactional_db: None, write_agent: Write
) -> None:
    from agents_app.schedules.beat import HouseClock

    clock = HouseClock(app=app)
    assert not [name for name in clock.schedule if name.startswith("agent ")]
    # Each hour: what is due at one hour of the day alone it reads when that is near.
    write_agent("hourly", schedule='"0 * * * *"', timezone="UTC", kind="scheduled")
    services.sync()
    assert [entry.task for name, entry in clock.schedule.items() if name.startswith("agent ")] == [
        services.TASK
    ]


def test_the_sweeps_of_the_house_are_no_rows(transactional_db: None) -> None:
    from agents_app.schedules.beat import HouseClock

    clock = HouseClock(app=app)
    assert set(app.conf.beat_schedule) <= set(clock.schedule)
    assert not PeriodicTask.objects.exists()
    entry = clock.schedule["wake-sessions"]
    assert clock.reserve(entry).total_run_count == 1
    assert clock.schedule["wake-sessions"].total_run_count == 1
