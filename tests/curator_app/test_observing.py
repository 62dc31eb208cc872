"""What a run leaves, however it goes. The curator is played; gate and internal API are the true ones."""

import asyncio
import fcntl
import json
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from agents_app.errors import AgentError
from agents_app.runtimes.base import RunFailed
from agents_app.turns.said.deleting import CleanUp, delete
from curator_app import activity as log_of_the_day
from curator_app import memory, observing, services
from curator_app.models import CuratorRun, RunStatus
from sessions_app.access.caller import Caller
from sessions_app.access.models import Membership, Workspace
from sessions_app.access.tokens import Audience, issue
from sessions_app.files import folders
from sessions_app.models import EventType, Session, SessionEvent, TitleSource
from sessions_app.models.session import Visibility
from sessions_app.services import archive
from sessions_app.threads import in_thread
from tests.agents_app.engine import Engine
from tests.api.web import Web
from tests.curator_app.conftest import Look
from tests.curator_app.played import COST, PlayedRuntime, Tool, activity, summary, title
from tests.sharing import share

pytestmark = [pytest.mark.database, pytest.mark.django_db(transaction=True)]

THEIRS = b'{"session_id": "somebody\'s own"}\r\n\xff no text\n'
ALL = [title("When quinces ripen"), summary("It is about quinces."), activity("Asked about quinces.")]


@pytest.fixture
async def alone(workspace: Workspace) -> None:
    """Ada has the workspace to herself."""
    await Membership.objects.exclude(user__username="ada").adelete()


@pytest.fixture
async def session_id(engine: Engine) -> UUID:
    opened = await engine.say("When do quinces ripen?")
    await engine.run(opened)
    return opened.session_id


async def session_of(session_id: UUID) -> Session:
    found: Session = await Session.objects.aget(pk=session_id)
    return found


async def told(session_id: UUID) -> list[dict[str, Any]]:
    rows = SessionEvent.objects.filter(session=session_id, type=EventType.SESSION_UPDATED).order_by("seq")
    rows = rows.exclude(payload__has_key="status")  # of the session, which begins
    return [payload async for payload in rows.values_list("payload", flat=True)]


def logged(vault: Path) -> list[dict[str, Any]]:
    files = sorted((vault / "Daily" / ".activity").glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


async def test_title_summary_and_log_are_written_and_told(
    session_id: UUID, played: PlayedRuntime, look: Look, alone: None, vault: Path
) -> None:
    played.steps = [*ALL]
    run = await look()
    assert (run.status, run.error) == (RunStatus.DONE, "")
    assert run.actions == ["update_title", "update_summary", "log_activity"]
    assert (run.title_before, run.title_after) == ("When do quinces ripen?", "When quinces ripen")
    assert (run.usage, float(run.cost_usd), run.model) == (COST, 0.25, "played")
    session = await session_of(session_id)
    assert (session.title, session.title_source) == ("When quinces ripen", TitleSource.AI)
    assert session.summary == "It is about quinces."
    assert session.cost_usd == 0  # its tokens are its own
    last = session.metadata["curator_last_run"]
    assert (last["exchange_number"], last["new_title"]) == (1, "When quinces ripen")
    assert UUID(session.metadata["curator_session_id"]) == played.requests[0].session_id
    (line,) = logged(vault)
    assert list(line) == ["ts", "session_id", "session_title", "agent_type", "exchange_number", "summary"]
    assert (line["session_id"], line["summary"]) == (str(session_id), "Asked about quinces.")
    changes = await told(session_id)
    assert [*map(list, changes)] == [
        ["title", "titleSource"],
        ["summary"],
        ["metadata", "curatorLastRun"],
    ]
    assert changes[-1]["curatorLastRun"]["actions"] == run.actions


async def test_it_runs_with_nothing_but_its_three_tools(
    session_id: UUID, played: PlayedRuntime, look: Look, settings: Any
) -> None:
    played.steps = [Tool("Bash", "ls"), Tool("mcp__parachute__share", "x"), activity("Asked.")]
    await look()
    assert played.answers == [("Bash", "deny"), ("mcp__parachute__share", "deny"), ("log_activity", "ok")]
    (request,) = played.requests
    assert request.tools == ()
    assert request.model == settings.PARACHUTE_CURATOR_MODEL == "claude-haiku-4-5-20251001"
    assert list(request.directory.iterdir()) == []
    assert request.mcp_file
    assert not request.mcp_file.exists()


async def test_the_same_memory_sees_the_next_exchange(
    engine: Engine, session_id: UUID, played: PlayedRuntime, look: Look
) -> None:
    await look()
    for _ in range(2):
        await engine.run(await engine.say("And pears?", session_id=session_id))
    run = await look()
    first, second = played.requests
    assert run.exchange_number == 3
    assert (first.resume, second.resume) == (False, True)
    assert first.session_id == second.session_id
    assert "Exchange number: 3" in second.text
    assert "And pears?" in second.text


async def test_a_memory_that_is_lost_is_begun_anew(
    engine: Engine, session_id: UUID, played: PlayedRuntime, look: Look
) -> None:
    await look()
    lost = played.requests[0].session_id
    played.forgotten.add(lost)
    for _ in range(2):
        await engine.run(await engine.say("And pears?", session_id=session_id))
    assert (await look()).status == RunStatus.DONE
    assert (await session_of(session_id)).metadata["curator_session_id"] not in (None, str(lost))


async def test_a_title_that_a_person_gave_is_not_touched(
    session_id: UUID, played: PlayedRuntime, look: Look, ada_calls: Web
) -> None:
    await ada_calls.patch(f"/api/chat/{session_id}", {"title": "Mine"})
    played.steps = [title("Not yours"), activity("Asked.")]
    run = await look()
    assert "--title-is-set" in played.servers[0]["args"]
    assert "a person set it" in played.requests[0].text
    assert played.answers[0] == ("update_title", "conflict")
    assert (await session_of(session_id)).title == "Mine"
    assert (run.status, run.actions) == (RunStatus.DONE, ["log_activity"])


async def test_a_summary_that_a_person_wrote_is_not_touched(
    session_id: UUID, played: PlayedRuntime, look: Look, ada_calls: Web
) -> None:
    await ada_calls.patch(f"/api/chat/{session_id}", {"summary": "Mine"})
    played.steps = [title("A title"), summary("Not yours")]
    run = await look()
    assert "--summary-is-set" in played.servers[0]["args"]
    assert "--title-is-set" not in played.servers[0]["args"]
    assert "Summary: a person wrote it" in played.requests[0].text
    assert played.answers == [("update_title", "ok"), ("update_summary", "conflict")]
    session = await session_of(session_id)
    assert (session.summary, session.is_summary_a_persons) == (
        "Mine",
        True,
    )  # also after the run's own metadata
    assert (run.status, run.actions, run.error) == (RunStatus.DONE, ["update_title"], "")


async def test_a_summary_that_a_person_writes_in_the_middle_of_a_run_stays(
    session_id: UUID, played: PlayedRuntime, look: Look, ada_calls: Web
) -> None:
    async def written() -> None:
        await ada_calls.patch(f"/api/chat/{session_id}", {"summary": "Mine"})

    played.steps = [summary("Its own"), written, summary("Not yours")]
    run = await look()
    assert played.answers == [("update_summary", "ok"), ("update_summary", "conflict")]
    assert (await session_of(session_id)).summary == "Mine"
    assert services.undoable(await session_of(session_id), run) == {}


@pytest.mark.parametrize(
    ("step", "problem"),
    [
        (RunFailed("overloaded", "The model has too much to do."), "The model has too much to do."),
        (AgentError("cli_crashed", "It broke off."), "It broke off."),
        (ZeroDivisionError("a secret"), "Something failed that was not foreseen."),
    ],
)
async def test_what_breaks_is_a_failed_run_and_no_more(
    step: Exception, problem: str, session_id: UUID, played: PlayedRuntime, look: Look, ada_calls: Web
) -> None:
    played.steps = [title("Before it broke"), step]
    run = await look()
    assert run.status == RunStatus.FAILED
    assert run.error.startswith(problem)
    assert "secret" not in run.error
    shown = (await ada_calls.get(f"/api/chat/{session_id}")).json
    assert shown["curatorLastRun"]["status"] == "failed"
    assert shown["curatorLastRun"]["newTitle"] == shown["title"] == "Before it broke"  # told truly


async def test_one_that_takes_too_long_is_given_up(
    session_id: UUID, played: PlayedRuntime, look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "GIVEN_UP_AFTER", 0.05)
    played.steps = [asyncio.Event().wait]  # type: ignore[list-item]
    run = await look()
    assert (run.status, run.error) == (RunStatus.FAILED, observing.TOO_LONG)


@pytest.mark.parametrize("status", ["failed", "pending"])
async def test_one_whose_tools_do_not_start_has_failed(
    status: str, session_id: UUID, played: PlayedRuntime, look: Look
) -> None:
    played.tools_status = status  # the second: too slowly, and the CLI went on without them
    run = await look()
    assert (run.status, run.error) == (RunStatus.FAILED, observing.NO_TOOLS)


async def test_one_that_only_talks_has_changed_nothing(
    session_id: UUID, played: PlayedRuntime, look: Look
) -> None:
    run = await look()
    assert (run.status, run.actions, run.error) == (RunStatus.DONE, [], "")


async def test_a_tool_that_is_called_twice_leaves_one_line_and_the_first_before(
    session_id: UUID, played: PlayedRuntime, look: Look, alone: None, vault: Path
) -> None:
    played.steps = [title("One"), activity("First."), title("Two"), activity("Second.")]
    run = await look()
    assert [line["summary"] for line in logged(vault)] == ["First."]
    assert (run.title_before, run.title_after) == ("When do quinces ripen?", "Two")
    assert run.actions == ["log_activity", "update_title"]


async def test_a_vault_that_cannot_be_written_keeps_the_line_and_says_so(
    session_id: UUID, played: PlayedRuntime, look: Look, alone: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_only(*_: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(log_of_the_day, "append", read_only)
    played.steps = [*ALL]
    run = await look()
    assert run.status == RunStatus.DONE
    assert "Read-only file system" in run.error
    assert run.activity == "Asked about quinces."
    assert (await session_of(session_id)).title == "When quinces ripen"


async def test_a_chat_that_is_deleted_meanwhile_takes_all_of_it_along(
    session_id: UUID, played: PlayedRuntime, look: Look, as_ada: Caller
) -> None:
    async def deleted() -> None:
        await in_thread(delete)(as_ada, session_id)

    played.steps = [title("Before"), deleted, title("After")]
    await look()
    assert played.answers == [("update_title", "ok"), ("update_title", "unauthenticated")]
    assert not await CuratorRun.objects.aexists()
    assert not memory.folder_of(session_id).exists()


async def test_a_chat_that_is_archived_meanwhile_stays_in_the_archive(
    session_id: UUID, played: PlayedRuntime, look: Look, as_ada: Caller
) -> None:
    async def archived() -> None:
        await in_thread(archive)(as_ada, session_id)

    played.steps = [archived, title("In the archive")]
    assert (await look()).status == RunStatus.DONE
    session = await session_of(session_id)
    assert (session.archived, session.title) == (True, "In the archive")


async def test_what_a_worker_that_stops_was_looking_at_waits_again(
    session_id: UUID, played: PlayedRuntime, look: Look
) -> None:
    reached = asyncio.Event()

    async def stand() -> None:
        reached.set()
        await asyncio.Event().wait()

    played.steps = [stand]
    looking = asyncio.create_task(look())
    await reached.wait()
    looking.cancel()
    await asyncio.wait({looking})
    assert looking.cancelled()
    assert (await CuratorRun.objects.aget()).status == RunStatus.QUEUED


async def claimed() -> CuratorRun:
    run = await in_thread(services.claim_next)()
    assert run is not None
    return run


def token_of(run: CuratorRun) -> str:
    return issue(Audience.CURATOR, run.session_id, run.life)


class TestToken:
    """Nobody comes in by the curator's door but its own tools, for one chat, while their run lives."""

    async def test_it_is_good_for_its_chat_alone_and_while_its_run_lives(
        self, engine: Engine, session_id: UUID, ada_calls: Web, nobody: Web
    ) -> None:
        other = await engine.say("Another one")
        run = await claimed()
        helper = Web({"authorization": f"Bearer {token_of(run)}"})
        orchestration = issue(Audience.ORCHESTRATION, session_id, run.pk)
        own, foreign = (f"/api/internal/sessions/{each}" for each in (session_id, other.session_id))
        change = {"summary": "x"}
        assert (await helper.patch(own, change)).status == 200
        assert (await helper.patch(foreign, change)).refused == (403, "forbidden")
        for stranger in (ada_calls, nobody, Web({"authorization": f"Bearer {orchestration}"})):
            assert (await stranger.patch(own, change)).refused == (401, "unauthenticated")
        assert (await helper.get(f"/api/chat/{session_id}")).refused == (401, "unauthenticated")
        await in_thread(services.fail)(run.pk, "over")
        assert (await helper.patch(own, change)).refused == (401, "unauthenticated")

    async def test_it_is_of_one_life_of_its_run(self, session_id: UUID) -> None:
        path, change = f"/api/internal/sessions/{session_id}", {"summary": "x"}
        first = await claimed()
        helper = Web({"authorization": f"Bearer {token_of(first)}"})
        await in_thread(services.put_back)(first.pk)  # its worker stops, and another one has it
        second = await claimed()
        assert (await helper.patch(path, change)).refused == (401, "unauthenticated")
        assert (await Web({"authorization": f"Bearer {token_of(second)}"}).patch(path, change)).status == 200

    @pytest.mark.parametrize(
        "body",
        [
            {},
            {"title": None},
            {"title": "a", "summary": "b"},
            {"model": "opus"},
            {"title": ["a"]},
            {"title": "<b></b>"},
            {"summary": " "},
            {"activity": "\u200b"},
        ],
    )
    async def test_it_takes_one_thing_at_a_time(self, body: dict[str, Any], session_id: UUID) -> None:
        run = await claimed()
        helper = Web({"authorization": f"Bearer {token_of(run)}"})
        answer = await helper.patch(f"/api/internal/sessions/{session_id}", body)
        assert answer.refused == (422, "invalid")
        assert await told(session_id) == []


class TestWhoReadsTheLog:
    async def test_a_private_chat_leaves_no_line_where_others_read(
        self, session_id: UUID, played: PlayedRuntime, look: Look, vault: Path
    ) -> None:
        played.steps = [activity("Asked something private.")]
        run = await look()
        assert run.activity
        assert logged(vault) == []

    async def test_a_shared_one_does(
        self, session_id: UUID, played: PlayedRuntime, look: Look, vault: Path
    ) -> None:
        await in_thread(share)(session_id)
        played.steps = [activity("Asked something.")]
        await look()
        assert [line["summary"] for line in logged(vault)] == ["Asked something."]

    async def test_a_line_is_taken_out_when_others_come_to_read_and_the_rest_stays(
        self, session_id: UUID, played: PlayedRuntime, look: Look, alone: None, vault: Path, ben: User
    ) -> None:
        played.steps = [activity("Asked something private.")]
        await look()
        (file,) = (vault / "Daily" / ".activity").iterdir()
        theirs = '{"session_id": ["somebody\'s own"]}\nnot JSON\n'
        file.write_text(theirs + file.read_text())
        await in_thread(services.take_lines_back)()
        assert "private" in file.read_text()  # nobody has come
        await Membership.objects.acreate(workspace=await Workspace.objects.aget(), user=ben)
        await in_thread(services.take_lines_back)()
        assert file.read_text() == theirs

    async def test_one_of_a_chat_that_is_not_shared_any_more_goes_as_soon_as_it_can(
        self, session_id: UUID, played: PlayedRuntime, look: Look, vault: Path
    ) -> None:
        await in_thread(share)(session_id)
        played.steps = [activity("Asked something.")]
        await look()
        await Session.objects.filter(pk=session_id).aupdate(visibility=Visibility.PRIVATE)
        with pytest.MonkeyPatch.context() as meanwhile:
            meanwhile.setattr(folders, "LOCK_WAITS", 0.0)
            (file,) = (vault / "Daily" / ".activity").iterdir()
            with file.open() as held:
                fcntl.flock(held, fcntl.LOCK_EX)
                await in_thread(services.take_lines_back)()
        assert len(logged(vault)) == 1
        await in_thread(services.take_lines_back)()
        assert logged(vault) == []


class TestOfADeletedChat:
    """What it left in the log of the day goes with it."""

    @pytest.fixture
    async def file(
        self, session_id: UUID, played: PlayedRuntime, look: Look, alone: None, vault: Path
    ) -> Path:
        """Of the day, in which there is another's line too."""
        played.steps = [activity("Asked about quinces.")]
        await look()
        (file,) = (vault / "Daily" / ".activity").iterdir()
        file.write_bytes(THEIRS + file.read_bytes())
        return file

    async def test_it_goes_and_no_other_line(self, session_id: UUID, file: Path, as_ada: Caller) -> None:
        await in_thread(delete)(as_ada, session_id)
        assert file.read_bytes() == THEIRS

    async def test_it_goes_where_the_night_deletes_it(
        self, session_id: UUID, file: Path, as_ada: Caller
    ) -> None:
        await in_thread(archive)(as_ada, session_id)
        await Session.objects.aupdate(last_accessed=timezone.now() - timedelta(days=31))
        assert await in_thread(CleanUp(30).delete)() == 1
        assert file.read_bytes() == THEIRS

    async def test_it_stays_until_the_chat_is_gone_for_certain(
        self, session_id: UUID, file: Path, as_ada: Caller
    ) -> None:
        def break_off() -> None:
            with transaction.atomic():
                delete(as_ada, session_id)
                assert b"quinces" in file.read_bytes()
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await in_thread(break_off)()
        assert b"quinces" in file.read_bytes()

    async def test_a_file_that_is_locked_keeps_neither_the_chat_nor_another_day(
        self, session_id: UUID, file: Path, as_ada: Caller, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(folders, "LOCK_WAITS", 0.0)
        (run,) = [each async for each in CuratorRun.objects.all()]
        assert run.day
        later = run.day + timedelta(days=1)
        copied = {"turn_id": run.turn_id, "is_by_hand": True, "activity": "x", "is_in_vault": True}
        await CuratorRun.objects.acreate(session_id=session_id, day=later, exchange_number=2, **copied)
        next_file = file.with_name(f"{later}.jsonl")
        next_file.write_bytes(file.read_bytes())
        with file.open() as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            await in_thread(delete)(as_ada, session_id)
        assert not await Session.objects.aexists()
        assert b"quinces" in file.read_bytes()
        assert next_file.read_bytes() == THEIRS

    async def test_one_that_is_written_after_it_was_deleted_goes_too(
        self,
        session_id: UUID,
        played: PlayedRuntime,
        look: Look,
        alone: None,
        vault: Path,
        as_ada: Caller,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        append = log_of_the_day.append

        def late(*given: Any) -> None:
            delete(as_ada, session_id)
            append(*given)

        monkeypatch.setattr(log_of_the_day, "append", late)
        played.steps = [activity("Asked about quinces.")]
        await look()
        assert played.answers == [("log_activity", "ok")]
        assert logged(vault) == []
