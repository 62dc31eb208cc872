"""Twenty orchestrators with ten children each: a sweep is quick, and an idle house runs no model."""

from datetime import timedelta
from time import perf_counter

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents_app.orchestration import waking, watching
from agents_app.orchestration.models import Supervision, Wake
from agents_app.schedules import services as schedules
from agents_app.turns.held import idling, leases
from agents_app.turns.running import announcing
from sessions_app.access.models import Workspace
from sessions_app.models import Session, SessionEvent, Turn
from sessions_app.streaming import bus
from tests.agents_app.conftest import Rings

pytestmark = [pytest.mark.database, pytest.mark.django_db]

ORCHESTRATORS, CHILDREN, EVENTS = 20, 10, 50
WITHIN = 0.2  # seconds
MINUTE = timedelta(minutes=1)


@pytest.fixture
def many(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> list[Session]:
    """All at work, heard of just now."""
    monkeypatch.setattr(bus, "unfinished", lambda session_id: None)
    usual = {
        "workspace": workspace,
        "vault_root": workspace.vault_path,
        "model": "sonnet",
        "status": "running",
    }
    parents = [
        Session(kind="orchestrator", agent_slug=f"boss-{n}", visibility="workspace", **usual)
        for n in range(ORCHESTRATORS)
    ]
    Session.objects.bulk_create(parents)
    children = [
        Session(parent=parent, agent_slug="writer", last_seq=EVENTS, **usual)
        for parent in parents
        for _ in range(CHILDREN)
    ]
    Session.objects.bulk_create(children)
    Supervision.objects.bulk_create(Supervision(session=each, checkup_minutes=10) for each in parents)
    Supervision.objects.bulk_create(Supervision(session=each) for each in children)
    now = timezone.now()
    held = {
        "status": "running",
        "boot": "00000000-0000-0000-0000-000000000001",
        "leased_at": now,
        "attempt": 1,
    }
    Turn.objects.bulk_create(Turn(session=each, opened_seq=2, started_at=now, **held) for each in children)
    SessionEvent.objects.bulk_create(
        SessionEvent(session=each, seq=seq, type="text", payload={"block": 0, "content": "x" * 200})
        for each in children
        for seq in range(1, EVENTS + 1)
    )
    return parents


def test_a_sweep_over_two_hundred_that_live_is_quick(many: list[Session]) -> None:
    with CaptureQueriesContext(
        connection,
    ) as quiet:
        watching.sweep()
        waking.sweep()
    took = []
    for _ in range(3):
        began = perf_counter()
        watching.sweep()
        waking.sweep()
        took.append(perf_counter() - began)
    assert min(took) < WITHIN, took
    assert len(quiet) <= 6, "as many questions as for one child"
    assert not Wake.objects.exists()


def test_an_idle_house_runs_no_model_for_an_hour(
    many: list[Session], rings: Rings, monkeypatch: pytest.MonkeyPatch
) -> None:
    Turn.objects.all().delete()
    Session.objects.filter(parent__isnull=False).update(status="complete")
    now = timezone.now()
    for minute in range(60):
        at = now + minute * MINUTE
        monkeypatch.setattr(timezone, "now", lambda at=at: at)
        watching.sweep(at)
        schedules.sync()
        schedules.sweep(at)
        for sweep in (waking.sweep, leases.sweep, announcing.sweep, idling.sweep):
            sweep()
    assert not Turn.objects.exists() and not Wake.objects.exists()
    assert list(rings) == []
