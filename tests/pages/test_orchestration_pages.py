"""The pages of agents that run agents: who lives, what woke them, what was shared, and who may start whom."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agents_app.definitions import accepting
from agents_app.definitions.agents import agent_of
from agents_app.models import AgentSchedule, Share, Tick, Wake
from agents_app.orchestration import shares, talking
from agents_app.orchestration.spawning import Order, spawn
from agents_app.schedules import services as schedules
from agents_app.turns.held.claim import claim
from agents_app.turns.held.holder import Holder
from agents_app.turns.running import finish
from agents_app.turns.said.opening import Opening, open_turn
from permissions_app import audit
from permissions_app.models import PermissionGrant
from sessions_app.access.caller import Caller
from sessions_app.access.models import Workspace
from sessions_app.models import Session
from tests.pages.browsing import Enter

pytestmark = pytest.mark.django_db(transaction=True)

FILES = {
    "boss": 'kind: orchestrator\nspawn: [writer]\nschedule: "0 0 30 2 *"\nheartbeat: Look around.\n',
    "writer": "",
    "reader": "",
}


@pytest.fixture
def agents(workspace: Workspace, as_ada: Caller, vault: Path) -> None:
    (vault / "Agents").mkdir()
    for slug, text in FILES.items():
        (vault / "Agents" / f"{slug}.md").write_text(f"---\nname: The {slug}\n{text}---\nYou work.\n")
        agent = agent_of(workspace, slug)
        assert agent is not None
        accepting.accept(as_ada, workspace, agent.definition, agent.definition.wanted.hash)
    schedules.sync()


def done(session_id: Any) -> None:
    claimed = claim(session_id, Holder("w"))
    assert claimed
    finish.done(*claimed, {}, usage={}, cost_usd=0.5)


@pytest.fixture
def family(agents: None, as_ada: Caller) -> tuple[Session, Session]:
    parent = Session.objects.get(pk=open_turn(as_ada, Opening("begin", agent="boss")).session_id)
    done(parent.pk)
    child = spawn(parent.pk, Order("writer", "Write about pears.", "toolu_1"))
    claimed = claim(child.pk, Holder("w"))
    assert claimed
    talking.message_caller(child.pk, "toolu_2", "All <three>?", asks=True, options=["Yes, all", "No"])
    finish.done(*claimed, {}, usage={}, cost_usd=0.25)
    done(parent.pk)
    return parent, child


def text(answer: Any) -> str:
    assert answer.status_code == 200, answer.status_code
    return str(answer.content.decode())


def test_the_page_of_one_shows_its_children_what_woke_it_and_the_cost(
    as_ada_in: Client, family: tuple[Session, Session]
) -> None:
    parent, child = family
    assert "The boss" in text(as_ada_in.get("/orchestrators"))
    page = text(as_ada_in.get(f"/orchestrators/{parent.pk}"))
    assert f"/chat/{child.pk}" in page and "A child spoke" in page
    assert "$1.000" in page and "$1.250" in page, "by itself, and with its children"
    assert "never: no day fits this line" in page
    assert 'href="/agents/of/boss?workspace=default#times"' in page


def test_an_agent_that_asks_to_be_one_is_shown_with_the_way_to_accept_it(
    as_ada_in: Client, agents: None, vault: Path
) -> None:
    (vault / "Agents/new.md").write_text("---\nname: The new one\nkind: orchestrator\n---\nYou work.\n")
    page = text(as_ada_in.get("/orchestrators"))
    assert page.count("asks to be one") == 1 and "/agents/of/new?workspace=default" in page


def test_a_chat_shows_its_children_and_a_child_the_way_back(
    as_ada_in: Client, family: tuple[Session, Session]
) -> None:
    parent, child = family
    page = text(as_ada_in.get(f"/chat/{parent.pk}"))
    assert 'data-live="family"' in page and f'href="/chat/{child.pk}"' in page
    assert "All &lt;three&gt;?" in page and 'data-option="Yes, all"' in page
    assert f'class="crumb" href="/chat/{parent.pk}"' in text(as_ada_in.get(f"/chat/{child.pk}"))


def test_a_child_is_ended_in_the_list_of_children_by_those_who_may(
    as_ada_in: Client, vi: User, enter: Enter, family: tuple[Session, Session]
) -> None:
    parent, child = family
    Session.objects.update(visibility="workspace")
    form = f'action="/orchestrators/{child.pk}/cancel"'
    for at in (f"/chat/{parent.pk}", f"/orchestrators/{parent.pk}"):
        assert form in text(as_ada_in.get(at)), at
        assert form not in text(enter(vi).get(at)), at
    answer = as_ada_in.post(f"/orchestrators/{child.pk}/cancel", {"reason": "enough", "from": "chat"})
    assert answer["Location"] == f"/chat/{parent.pk}"
    page = text(as_ada_in.get(answer["Location"]))
    assert "Cancelled by ada: enough" in page and form not in page, "it has ended"


def test_one_is_paused_resumed_and_ended_and_the_end_is_loud(
    as_ada_in: Client, family: tuple[Session, Session]
) -> None:
    parent, _child = family
    at = f"/orchestrators/{parent.pk}"
    as_ada_in.post(f"{at}/pause")
    assert "Resume" in text(as_ada_in.get(at))
    as_ada_in.post(f"{at}/resume")
    as_ada_in.post(f"{at}/cancel", {"reason": "enough of it"})
    assert "Cancelled by ada: enough of it" in text(as_ada_in.get(f"/chat/{parent.pk}"))
    answer = as_ada_in.post("/agents/of/boss/run?workspace=default")
    assert answer.status_code == 302 and str(parent.pk) not in answer["Location"]


def test_a_scheduled_one_that_is_complete_is_paused_while_its_children_live(
    as_ada_in: Client, family: tuple[Session, Session]
) -> None:
    parent, child = family
    Session.objects.filter(pk=parent.pk).update(kind="scheduled", status="complete")
    at = f"/orchestrators/{parent.pk}"
    page = text(as_ada_in.get(at))
    assert f'action="{at}/pause"' in page and f'action="{at}/cancel"' not in page
    as_ada_in.post(f"{at}/pause")
    as_ada_in.post(f"/orchestrators/{child.pk}/cancel")
    assert Wake.objects.filter(child=child, kind="state_change", state="queued").exists(), "it waits"
    assert f'action="{at}/resume"' in text(as_ada_in.get(at))
    as_ada_in.post(f"{at}/resume")
    assert not Wake.objects.filter(state="queued").exists()
    Session.objects.filter(pk=parent.pk).update(status="complete")
    assert "This session has come to its end." in text(as_ada_in.get(at)), "nothing wakes it any more"


def test_what_needs_somebody_stands_first_and_is_counted(
    as_ada_in: Client, family: tuple[Session, Session]
) -> None:
    parent, _child = family
    shares.share(parent.pk, "toolu_3", "Needs human review: <pears>", "Which **pears**?")
    shares.share(parent.pk, "toolu_4", "What I found", "Pears.")
    page = text(as_ada_in.get("/shares"))
    assert page.index("&lt;pears&gt;") < page.index("What I found")
    assert "<strong>pears</strong>" in page and '<span class="n">1</span>' in page
    share = Share.objects.get(kind="review")
    as_ada_in.post(f"/shares/{share.pk}/resolve?workspace=default")
    assert '<span class="n" hidden>' in text(as_ada_in.get(f"/shares/{share.pk}"))


def test_who_may_start_whom_is_switched_on_the_agents_page(
    as_ada_in: Client, ben: User, enter: Enter, agents: None
) -> None:
    page = text(as_ada_in.get("/agents/of/boss"))
    assert "by its file" in page and 'id="starts-reader"' in page and 'id="starts-boss"' not in page
    where = "/agents/of/boss/starts?workspace=default"
    enter(ben).post(where, {"child": "reader"})
    assert not PermissionGrant.objects.exists(), "that is for owners"
    as_ada_in.post(where, {"child": "reader"})
    grant = PermissionGrant.objects.get()
    as_ada_in.post(where, {"grant": grant.pk})
    assert not PermissionGrant.objects.active().exists()
    assert as_ada_in.post(where, {"child": "nobody"}).status_code == 404
    assert as_ada_in.post(where, {"grant": "x"}).status_code == 404


def test_its_times_are_switched_and_run_on_the_agents_page_by_owners(
    as_ada_in: Client, ben: User, enter: Enter, agents: None
) -> None:
    at = "/agents/of/boss"
    bens = text(enter(ben).get(at))
    assert "An owner of this workspace switches it" in bens and 'id="runs-by-itself"' not in bens
    enter(ben).post(f"{at}/schedule/switch?workspace=default", {})
    assert 'id="runs-by-itself" aria-checked="true"' in text(as_ada_in.get(at)), "that is for owners"
    as_ada_in.post(f"{at}/schedule/switch?workspace=default", {})
    page = text(as_ada_in.get(at))
    assert 'id="runs-by-itself" aria-checked="false"' in page and "not before it is switched on" in page
    as_ada_in.post(f"{at}/schedule/run?workspace=default")
    assert f'href="/chat/{Session.objects.get().pk}">Started</a>' in text(as_ada_in.get(at))
    assert 'id="times"' not in text(as_ada_in.get("/agents/of/reader"))
    assert as_ada_in.post("/agents/of/reader/schedule/run?workspace=default").status_code == 404


PAGES: dict[str, Callable[[Session, Share], tuple[str, str]]] = {
    "page": lambda session, share: ("get", f"/orchestrators/{session.pk}"),
    "pause": lambda session, share: ("post", f"/orchestrators/{session.pk}/pause"),
    "cancel": lambda session, share: ("post", f"/orchestrators/{session.pk}/cancel"),
    "list": lambda session, share: ("get", "/orchestrators?workspace=default"),
    "run": lambda session, share: ("post", "/agents/of/boss/run?workspace=default"),
    "starts": lambda session, share: ("post", "/agents/of/boss/starts?workspace=default"),
    "switch": lambda session, share: ("post", "/agents/of/boss/schedule/switch?workspace=default"),
    "run now": lambda session, share: ("post", "/agents/of/boss/schedule/run?workspace=default"),
    "shares": lambda session, share: ("get", "/shares?workspace=default"),
    "share": lambda session, share: ("get", f"/shares/{share.pk}?workspace=default"),
    "resolve": lambda session, share: ("post", f"/shares/{share.pk}/resolve?workspace=default"),
}


@pytest.mark.parametrize("name", PAGES)
def test_an_outsider_sees_nothing_of_it(
    name: str, family: tuple[Session, Session], as_cy: Caller, cy: User, enter: Enter
) -> None:
    share = shares.share(family[0].pk, "toolu_3", "Pears", "")
    method, path = PAGES[name](family[0], share)
    assert getattr(enter(cy), method)(path).status_code == 404
    assert Session.objects.get(pk=family[0].pk).status == "running"


def test_an_operator_switches_off_and_runs_what_runs_by_itself(
    as_ada_in: Client, agents: None, audited: list[audit.Entry]
) -> None:
    row = AgentSchedule.objects.get()
    where = "/admin/agents_app/agentschedule/"
    for action, said in (("switch_off", "Boss is switched off."), ("run_now", "Boss: ")):
        answer = as_ada_in.post(where, {"action": action, "_selected_action": [row.pk]}, follow=True)
        assert said in text(answer)
    assert not AgentSchedule.objects.get().is_on
    assert Tick.objects.get().outcome == "started"
    rows = [each for each in audited if each.tool == "agent-schedule"]
    assert [each.outcome for each in rows] == ["revoked", "granted"]
    for model in ("wake", "share", "tick", "agentschedule"):
        assert text(as_ada_in.get(f"/admin/agents_app/{model}/"))
    assert as_ada_in.get("/admin/django_celery_beat/periodictask/").status_code == 404


def test_the_console_tells_no_words_of_a_private_chat_and_neither_does_its_address(
    family: tuple[Session, Session], ben: User, enter: Enter
) -> None:
    """A filter in the address would tell them letter by letter."""
    parent, _child = family
    share = shares.share(parent.pk, "toolu_3", "Needs human review: pears", "")
    Session.objects.update(visibility="private")
    User.objects.filter(pk=ben.pk).update(is_staff=True, is_superuser=True)
    console = enter(ben)
    assert "pears" not in text(console.get(f"/admin/agents_app/share/{share.pk}/change/"))
    for address in ("share/?title__startswith=N", "share/?body=", "wake/?payload__body__startswith=All"):
        assert console.get(f"/admin/agents_app/{address}").status_code == 400, address
