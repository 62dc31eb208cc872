"""The switch "Act without asking": people take it away, and give it again within their rights."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User

from permissions_app.audit import Entry
from sessions_app.access.models import KeyScope
from sessions_app.models import Session, SessionKind
from sessions_app.threads import in_thread
from tests.api.web import Headers, Web

pytestmark = pytest.mark.django_db(transaction=True)

ON = {"trustMode": True}
OFF = {"metadata": {"permissions": {"trustMode": False}}}


@pytest.fixture
async def session(ada_calls: Web) -> str:
    """Ada's, which others may write in."""
    said = await ada_calls.say("hello")
    await ada_calls.share(said["sessionId"])
    return str(said["sessionId"])


@pytest.fixture
async def asking(ada_calls: Web, session: str) -> str:
    """Somebody took it away."""
    assert (await ada_calls.patch(f"/api/chat/{session}", OFF)).status == 200
    return session


def switch(session: str) -> str:
    return f"/api/chat/{session}/permissions/trust-mode"


async def kept(session: str) -> dict[str, Any]:
    metadata: dict[str, Any] = (await Session.objects.aget(pk=session)).metadata
    return metadata


async def test_what_was_taken_away_is_given_again(ben_calls: Web, asking: str) -> None:
    answer = await ben_calls.post(switch(asking), ON)
    assert answer.status == 200
    assert answer.json["metadata"]["permissions"]["trustMode"] is True
    assert "acts_without_a_wall" not in await kept(asking)


async def test_both_are_told_and_are_rows_of_the_audit(
    ada_calls: Web, asking: str, audited: list[Entry]
) -> None:
    for _ in range(2):  # the second time there is nothing to tell
        await ada_calls.post(switch(asking), ON)
    async with ada_calls.streaming("GET", f"/api/chat/{asking}/events?after=3") as stream:
        told = [await stream.next() for _ in range(2)]
    assert [each.data["metadata"]["permissions"]["trustMode"] for each in told] == [False, True]
    rows = [each for each in audited if each.tool == "permissions"]
    assert [(each.kind, each.outcome) for each in rows] == [("grant", "revoked"), ("grant", "granted")]
    assert {str(each.session_id) for each in rows} == {asking}


async def test_to_take_it_away_is_a_patch_and_no_grant(ada_calls: Web, session: str) -> None:
    assert (await ada_calls.post(switch(session), {"trustMode": False})).refused == (422, "invalid")


async def test_a_viewer_gives_nothing(vi_calls: Web, asking: str) -> None:
    assert (await vi_calls.post(switch(asking), ON)).refused == (403, "forbidden")
    assert (await kept(asking))["permissions"]["trustMode"] is False


async def test_a_key_that_may_only_read_gives_nothing(
    ada: User, key: Callable[..., Headers], asking: str
) -> None:
    reader = Web(await in_thread(key)(ada, scopes=[KeyScope.READ]))
    assert (await reader.post(switch(asking), ON)).refused == (403, "forbidden")


@pytest.mark.parametrize("change", [{"kind": SessionKind.SCHEDULED}, {"kind": SessionKind.ORCHESTRATOR}])
async def test_where_nobody_sits_beside_it_nobody_gives_it(
    ada_calls: Web, asking: str, change: dict[str, Any]
) -> None:
    await Session.objects.filter(pk=asking).aupdate(**change)
    assert (await ada_calls.post(switch(asking), ON)).refused == (422, "invalid")


class TestWithoutAWall:
    @pytest.fixture(params=["full", "vault"])
    async def unwalled(
        self, asking: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
    ) -> str:
        monkeypatch.setattr("agents_app.sandboxes.walls._found", {"vault": False})
        monkeypatch.setattr("agents_app.sandboxes.walls._is_one_machine", lambda: True)
        await Session.objects.filter(pk=asking).aupdate(trust_level=request.param)
        return asking

    async def test_a_member_does_not_give_it(self, ben_calls: Web, unwalled: str) -> None:
        assert (await ben_calls.post(switch(unwalled), ON)).refused == (403, "forbidden")
        assert (await kept(unwalled))["permissions"]["trustMode"] is False

    async def test_an_operator_does(self, ada: User, ada_calls: Web, unwalled: str) -> None:
        await User.objects.filter(pk=ada.pk).aupdate(is_staff=True)
        assert (await ada_calls.post(switch(unwalled), ON)).status == 200
        assert (await kept(unwalled))["acts_without_a_wall"] is True

    async def test_nobody_writes_that_by_hand(self, ada_calls: Web, unwalled: str) -> None:
        await ada_calls.patch(f"/api/chat/{unwalled}", {"metadata": {"acts_without_a_wall": True}})
        assert "acts_without_a_wall" not in await kept(unwalled)

    async def test_what_was_given_there_is_not_given_for_ever(
        self, ada: User, ada_calls: Web, ben_calls: Web, unwalled: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Behind a wall a member gives it anew, and gives no more than that."""
        await User.objects.filter(pk=ada.pk).aupdate(is_staff=True)
        await ada_calls.post(switch(unwalled), ON)
        await ada_calls.patch(f"/api/chat/{unwalled}", OFF)
        await Session.objects.filter(pk=unwalled).aupdate(trust_level="vault")
        monkeypatch.setattr("agents_app.sandboxes.walls._found", {"vault": True})
        assert (await ben_calls.post(switch(unwalled), ON)).status == 200
        assert "acts_without_a_wall" not in await kept(unwalled)
