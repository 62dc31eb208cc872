"""What people do with the curator over the API, and what its pages show."""

from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.test import Client

from curator_app.models import CuratorRun
from sessions_app.access.models import Workspace
from sessions_app.models import Session
from sessions_app.threads import in_thread
from tests.agents_app.engine import Engine
from tests.api.web import Web
from tests.curator_app.conftest import Bells, Look
from tests.curator_app.played import PlayedRuntime, activity, summary, title
from tests.sharing import share

pytestmark = [pytest.mark.database, pytest.mark.django_db(transaction=True)]


@pytest.fixture
async def session_id(engine: Engine) -> UUID:
    opened = await engine.say("When do quinces ripen?")
    await engine.run(opened)
    return opened.session_id


async def trigger(web: Web, session_id: UUID) -> Any:
    return await web.post(f"/api/chat/{session_id}/curator/trigger")


async def runs(web: Web, session_id: UUID) -> list[dict[str, Any]]:
    return list((await web.get(f"/api/chat/{session_id}/curator/runs")).json["runs"])


async def test_somebody_lets_it_look_now(session_id: UUID, look: Look, ada_calls: Web, bells: Bells) -> None:
    await look()
    bells.clear()
    for _ in range(2):
        answer = await trigger(ada_calls, session_id)
        assert (answer.status, answer.json) == (200, {"status": "queued"})
    assert [(run["status"], run["exchangeNumber"]) for run in await runs(ada_calls, session_id)] == [
        ("queued", 1),
        ("done", 1),
    ]
    assert bells
    assert (await look()).is_by_hand


async def test_who_may_only_read_sees_its_runs_and_triggers_none(
    session_id: UUID, look: Look, vi_calls: Web
) -> None:
    await in_thread(share)(session_id)
    run = await look()
    assert [each["id"] for each in await runs(vi_calls, session_id)] == [str(run.pk)]
    assert (await trigger(vi_calls, session_id)).refused == (403, "forbidden")
    undo = f"/api/chat/{session_id}/curator/runs/{run.pk}/undo"
    assert (await vi_calls.post(undo)).refused == (403, "forbidden")


async def test_there_must_be_something_to_look_at_and_somebody_to_look(
    engine: Engine, session_id: UUID, ada_calls: Web
) -> None:
    unanswered = await engine.say("hello")
    assert (await trigger(ada_calls, unanswered.session_id)).refused == (409, "nothing_said")
    await Workspace.objects.aupdate(curates=False)
    assert (await trigger(ada_calls, session_id)).refused == (409, "curator_off")


async def test_what_was_undone_is_a_persons_from_then_on(
    session_id: UUID, played: PlayedRuntime, look: Look, ada_calls: Web
) -> None:
    played.steps = [title("When quinces ripen"), summary("About quinces.")]
    run = await look()
    undo = f"/api/chat/{session_id}/curator/runs/{run.pk}/undo"
    assert (await ada_calls.post(undo)).status == 200
    session = (await ada_calls.get(f"/api/chat/{session_id}")).json
    assert (session["title"], session["titleSource"]) == ("When do quinces ripen?", "user")
    assert session["summary"] == ""
    assert (await ada_calls.post(undo)).refused == (409, "cannot_undo")
    await trigger(ada_calls, session_id)
    assert not (await look()).actions
    assert {"--title-is-set", "--summary-is-set"} < {*played.servers[-1]["args"]}


async def test_what_a_person_changed_since_is_not_undone(
    session_id: UUID, played: PlayedRuntime, look: Look, ada_calls: Web
) -> None:
    played.steps = [title("When quinces ripen")]
    run = await look()
    await ada_calls.patch(f"/api/chat/{session_id}", {"title": "Mine"})
    undo = f"/api/chat/{session_id}/curator/runs/{run.pk}/undo"
    assert (await ada_calls.post(undo)).refused == (409, "cannot_undo")
    assert (await Session.objects.aget(pk=session_id)).title == "Mine"


class TestPages:
    @pytest.fixture
    async def logged(self, session_id: UUID, played: PlayedRuntime, look: Look) -> CuratorRun:
        played.steps = [title("When <quinces> ripen"), activity("Asked about <i>quinces</i> & pears.")]
        return await look()

    def page(self, user: User, path: str) -> str:
        browser = Client()
        browser.force_login(user)
        return browser.get(path).content.decode()

    async def test_the_day_names_its_chats_to_those_who_may_see_them(
        self, logged: CuratorRun, ada: User, ben: User
    ) -> None:
        day = f"/days/{logged.day}"
        for path in ("/days", day):
            page = await in_thread(self.page)(ada, path)
            assert "Asked about quinces &amp; pears." in page
            assert f"/chat/{logged.session_id}" in page
        assert "Asked about" not in await in_thread(self.page)(ben, day)
        await in_thread(share)(logged.session_id)
        assert "Asked about" in await in_thread(self.page)(ben, day)

    async def test_a_day_has_no_link_to_a_chat_that_is_deleted(
        self, logged: CuratorRun, ada: User, ada_calls: Web
    ) -> None:
        assert (await ada_calls.delete(f"/api/chat/{logged.session_id}")).status == 204
        for path in ("/days", f"/days/{logged.day}"):
            assert str(logged.session_id) not in await in_thread(self.page)(ada, path)

    async def test_a_day_on_which_nothing_was_said_is_a_page_too(self, ada: User, workspace: object) -> None:
        assert "Nothing was logged on this day" in await in_thread(self.page)(ada, "/days/2020-02-29")
        assert "There is nothing here" in await in_thread(self.page)(ada, "/days/2021-02-29")

    async def test_its_runs_are_markup_for_the_dialog(self, logged: CuratorRun, ada: User, ben: User) -> None:
        path = f"/chat/{logged.session_id}/curator"
        shown = await in_thread(self.page)(ada, path)
        assert f'data-undo="{logged.pk}"' in shown
        assert "data-trigger" in shown
        assert "Asked about" not in await in_thread(self.page)(ben, path)
        chat = await in_thread(self.page)(ada, f"/chat/{logged.session_id}")
        assert "update_title" in chat

    async def test_its_dialog_says_where_it_was_switched_off(
        self, logged: CuratorRun, ada: User, settings: Any
    ) -> None:
        path = f"/chat/{logged.session_id}/curator"
        assert "switched off" not in await in_thread(self.page)(ada, path)
        settings.PARACHUTE_CURATOR = False
        assert "on this server (PARACHUTE_CURATOR)" in await in_thread(self.page)(ada, path)
        await Workspace.objects.aupdate(curates=False)
        assert "/workspaces/of/default#holds" in await in_thread(self.page)(ada, path)

    async def test_the_console_masks_what_is_private(
        self, logged: CuratorRun, person: Any, ada: User
    ) -> None:
        other = await in_thread(person)("olga", is_operator=True)
        for path in ("", f"{logged.pk}/change/"):
            own, masked = [
                await in_thread(self.page)(user, f"/admin/curator_app/curatorrun/{path}")
                for user in (ada, other)
            ]
            assert "When" in own
            assert "ripen" not in masked
            assert "a private chat of ada" in masked
