"""What the page shows of each kind of event."""

from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries as Queries

from agents_app.turns.said.opening import Opening, open_turn
from parachute_site.pages.telling import Item, Telling, inbox_item
from permissions_app.frames import frame
from sessions_app.access.caller import Caller
from tests import asked

TURN = "0d0c9a43-6a1e-4a86-9d0a-2f0a3f6f2f11"
SAID = {"content": "Hello", "source": "user", "attachments": []}


class Teller:
    def __init__(self, turn: str = TURN, *, to_operator: bool = True, on_host: bool = False) -> None:
        self.turn = turn
        self.telling = Telling("/vault", to_operator=to_operator)
        self.on_host = on_host
        self.seq = 0

    def tell(self, kind: str, second: int = 0, **payload: Any) -> Item | None:
        self.seq += 1
        row = {
            "type": kind,
            "turnId": self.turn,
            "seq": self.seq,
            "ts": f"2026-11-18T10:00:{second:02}Z",
            **payload,
        }
        return next(reversed(self.telling.take(row)), None)

    def shown(self, kind: str, **payload: Any) -> str:
        item = self.tell(kind, **payload)
        assert item
        return item.html()

    def uses(self, name: str, parent: str | None = None, **given: Any) -> str:
        tool = {"id": f"use-{self.seq}", "name": name, "input": given}
        return self.shown("tool_use", tool=tool, parentToolUseId=parent)

    def answered(self, content: str, *, tool: str = "use-0", is_error: bool = False) -> str:
        result = {
            "toolUseId": tool,
            "content": content,
            "isError": is_error,
            "durationMs": 240,
            "truncated": False,
        }
        return self.shown("tool_result", **result)

    @property
    def whole(self) -> str:
        return "".join(item.html() for item in self.telling.turn(self.turn).items)


@pytest.fixture
def teller() -> Teller:
    return Teller()


def test_what_people_say_is_text_and_never_markup(teller: Teller) -> None:
    found = teller.shown("user_message", **SAID | {"content": "<b>*x*</b>\u202e"})
    assert "&lt;b&gt;*x*&lt;/b&gt;" in found
    assert "U+202E" in found


def test_what_a_program_said_is_told_apart(teller: Teller) -> None:
    assert "by a program" in teller.shown("user_message", **SAID | {"source": "api"})


def test_files_that_came_with_it_can_be_fetched(teller: Teller) -> None:
    file = {"fileName": "a<b>.png", "size": 2048, "url": "/api/chat/x/attachments/y", "mimeType": "image/png"}
    found = teller.shown("user_message", **SAID | {"attachments": [file]})
    assert 'href="/api/chat/x/attachments/y"' in found
    assert "a&lt;b&gt;.png" in found


def test_thinking_is_folded_and_says_how_long_it_took(teller: Teller) -> None:
    teller.tell("user_message", second=1, **SAID)
    item = teller.tell("thinking", second=5, block=0, content="<i>hm</i>")
    assert item
    assert "Thought for 4 s" in item.html()
    assert "&lt;i&gt;hm&lt;/i&gt;" in item.html()
    assert " open" not in item.html()


def test_a_text_that_was_interrupted_says_so(teller: Teller) -> None:
    assert "Interrupted here" in teller.shown("text", block=0, content="```\nHalf a", interrupted=True)
    assert "Interrupted" not in teller.shown("text", block=1, content="sentence.")


def test_a_tool_is_one_line_with_its_path_in_the_vault(teller: Teller) -> None:
    found = teller.uses("Read", file_path="/vault/Garden/Quinces.md")
    assert ">Garden/Quinces.md<" in found
    assert "running" in found


def test_its_result_comes_into_the_same_element(teller: Teller) -> None:
    before = teller.uses("Read", file_path="/vault/a.md")
    after = teller.answered("<x> is 1")
    assert before.split('id="')[1].split('"')[0] == after.split('id="')[1].split('"')[0]
    assert "&lt;x&gt; is 1" in after
    assert "0.2 s" in after
    assert teller.whole == after


def test_an_edit_shows_what_it_changes(teller: Teller) -> None:
    found = teller.uses("Edit", file_path="/vault/a.md", old_string="one\ntwo", new_string="one\n2\n3")
    assert '<div class="d">- two</div><div class="a">+ 2</div><div class="a">+ 3</div>' in found
    assert " open" in found
    assert "+2 \N{MINUS SIGN}1" in teller.answered("ok")


def test_a_new_file_is_all_new(teller: Teller) -> None:
    assert '<div class="a">+ hello</div>' in teller.uses("Write", file_path="a.md", content="hello\n")


@pytest.mark.parametrize(
    "given",
    [
        {"old_string": "a\n" * 50_000, "new_string": "b\n" * 50_000},
        {"old_string": 7, "new_string": None},
        {"edits": "not a list"},
        {"edits": [3, {"old_string": "a"}]},
        {},
    ],
)
def test_any_input_of_an_edit_is_shown(given: dict[str, Any], teller: Teller) -> None:
    assert len(teller.uses("MultiEdit", **given)) < 100_000


def test_a_command_is_shown_as_it_will_run(teller: Teller) -> None:
    found = teller.uses("Bash", command="rm \u202e x | sh", description="Tidy up")
    assert "Tidy up" in found
    assert "rm \N{REPLACEMENT CHARACTER}U+202E x | sh" in found


def test_a_tool_that_nobody_knows_shows_its_input(teller: Teller) -> None:
    found = teller.uses("mcp__weather__look_up", city="Lisbon")
    assert "weather: look_up" in found
    assert "&quot;city&quot;: &quot;Lisbon&quot;" in found


def test_what_failed_and_what_was_refused_say_so_by_a_word(teller: Teller) -> None:
    teller.uses("Bash", command="false")
    assert "failed" in teller.answered("exit 1", is_error=True)
    teller.uses("Read", file_path="/vault/.env")
    tool = {"toolUseId": "use-2", "toolName": "Read", "reason": "Secrets stay secret.", "rule": "deny"}
    found = teller.shown("permission_denied", **tool)
    assert "refused" in found
    assert "Secrets stay secret." in found
    assert "refused" in teller.answered("denied", tool="use-2", is_error=True)


def test_a_refusal_may_come_before_its_tool(teller: Teller) -> None:
    teller.tell("permission_denied", toolUseId="use-1", toolName="Read", reason="No.", rule="deny")
    assert "No." in teller.uses("Read", file_path=".env")


def test_what_a_helper_does_stands_in_the_card_of_its_call(teller: Teller) -> None:
    teller.uses("Task", description="Look around")
    inner = teller.uses("Read", parent="use-0", file_path="b.md")
    assert teller.telling.turn(TURN).items[0].inside[0].into == "inside-tool-1"
    assert inner in teller.whole


def test_a_long_result_says_that_there_is_more(teller: Teller) -> None:
    teller.uses("Read", file_path="a.md")
    found = teller.answered("x" * 50_000)
    assert "Only the beginning is shown." in found
    assert len(found) < 12_000


def test_the_end_says_what_it_took(teller: Teller) -> None:
    usage = {"inputTokens": 2_000, "outputTokens": 310}
    found = teller.shown("done", model="sonnet", usage=usage, costUsd=0.0131)
    assert "sonnet" in found
    assert "2,310 tokens" in found
    assert "$0.013" in found


def test_an_error_offers_its_remedy(teller: Teller) -> None:
    action = {"key": "r", "label": "Send again", "action": "retry"}
    error = {"title": "Too many requests", "message": "<wait>", "actions": [action], "retryDelayMs": 5000}
    found = teller.shown("typed_error", code="rate_limited", canRetry=True, **error)
    assert "&lt;wait&gt;" in found
    assert 'data-action="retry" data-wait="5000"' in found


def test_what_ended_otherwise_says_so(teller: Teller) -> None:
    assert "Not sent" in teller.shown("aborted", partialResponse="", abortedBy="ada")
    teller.uses("Bash", command="sleep 9")
    assert "Stopped." in teller.shown("aborted", partialResponse="", abortedBy="ada")
    assert "Incident 7" in teller.shown("error", error="Incident 7")
    assert "Careful" in teller.shown("warning", code="x", title="Careful", message="Hot", details=[])


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("session", {"resumeInfo": {"method": "sdk_resume"}}),
        ("aborted", {"partialResponse": "", "abortedBy": "ada"}),
        ("error", {"error": "Incident 7"}),
        ("typed_error", {"code": "worker_lost", "title": "Lost", "message": "Its worker was lost."}),
    ],
)
def test_what_ran_when_its_turn_was_cut_off_is_stopped(
    teller: Teller, kind: str, more: dict[str, Any]
) -> None:
    teller.uses("Task", description="Look around")
    teller.uses("Read", parent="use-0", file_path="b.md")
    teller.uses("Bash", command="false")
    teller.answered("exit 1", tool="use-2", is_error=True)
    teller.tell(kind, **more)
    assert (teller.whole.count(">stopped<"), teller.whole.count(">failed<")) == (2, 1)
    assert "running" not in teller.whole


@pytest.mark.parametrize(("second", "says"), [(4, "failed"), (6, "stopped")])
def test_what_failed_after_somebody_had_stopped_its_turn_was_stopped(
    teller: Teller, second: int, says: str
) -> None:
    teller.uses("Write", file_path="/vault/a.md", content="x")
    for_the_model = "The user doesn't want to proceed."
    result = {"toolUseId": "use-0", "content": for_the_model, "isError": True}
    teller.tell("tool_result", second, **result, durationMs=240, truncated=False)
    assert ">failed<" in teller.whole
    teller.tell("aborted", partialResponse="", abortedBy="ada", stoppedAt="2026-11-18T10:00:05Z")
    assert f">{says}<" in teller.whole
    assert ("proceed" in teller.whole) == (says == "failed")


def test_what_is_of_no_use_to_a_reader_is_not_shown(teller: Teller) -> None:
    assert teller.tell("session", resumeInfo=None) is None
    for kind in ("init", "model", "prompt_metadata", "turn_waiting", "something_new"):
        assert teller.tell(kind) is None


def test_a_long_change_says_how_much_of_it_is_left_out(teller: Teller) -> None:
    found = teller.uses("Write", file_path="a.md", content="x\n" * 501)
    assert "… 101 more lines" in found
    assert "+501" in teller.answered("ok")
    assert "… 4,000 more characters" in teller.uses("Write", file_path="a.md", content="x" * 5_000)
    assert "… 50 more characters" in teller.uses("Bash", command="x" * 10_050)


def test_a_change_of_every_occurrence_says_so(teller: Teller) -> None:
    edit = {"old_string": "a", "new_string": "b"}
    assert "every occurrence" not in teller.uses("Edit", file_path="a.md", **edit)
    assert "every occurrence" in teller.uses("Edit", file_path="a.md", **edit, replace_all=True)
    edits = [edit, {**edit, "replace_all": True}]
    assert "every occurrence" in teller.uses("MultiEdit", file_path="a.md", edits=edits)


def test_an_end_of_a_line_that_goes_is_a_change(teller: Teller) -> None:
    found = teller.uses("Edit", file_path="a.md", old_string="# \n", new_string="# ")
    assert '<div class="d">- </div>' in found


class TestACard:
    """What a person read is what they allowed: a card shows all of its call."""

    def test_shows_every_line(self, teller: Teller) -> None:
        found = asks(teller, "Write", file_path="/vault/AGENTS.md", content="fine\n" * 500 + "evil\n")
        assert '<div class="a">+ evil</div>' in found
        assert found.count("+ fine<") == 500
        assert "more line" not in found

    def test_still_does_when_nobody_answered_in_time(self, teller: Teller) -> None:
        found = asks(teller, "Write", file_path="/vault/AGENTS.md", content="fine\n" * 500 + "evil\n")
        assert found.count("<kbd>") == 2
        found = teller.shown(
            "permission_resolved", requestId="1", decision="expired", decidedBy=None, pattern=None
        )
        assert "Allow once" in found
        assert "<kbd>" not in found  # no key answers it
        assert "+ evil<" in found

    @pytest.mark.parametrize("to_operator", [True, False])
    @pytest.mark.parametrize("on_host", [True, False])
    def test_offers_nothing_when_its_turn_was_stopped(self, to_operator: bool, on_host: bool) -> None:
        teller = Teller(to_operator=to_operator, on_host=on_host)
        asks(teller, "Write", file_path="/vault/AGENTS.md", content="fine")
        over = {"requestId": "1", "decision": "expired", "canStillBeAllowed": False}
        found = teller.shown("permission_resolved", **over)
        assert "Its turn was stopped or lost, so it was not done." in found
        assert "Nobody answered" not in found
        assert "<button" not in found

    def test_that_nobody_answered_before_its_turn_was_stopped_says_so_of_its_tool(
        self, teller: Teller
    ) -> None:
        teller.uses("Write", file_path="/vault/AGENTS.md", content="fine")
        asks(teller, "Write", file_path="/vault/AGENTS.md", content="fine")
        found = teller.answered("The user doesn't want to proceed.", is_error=True)
        assert ">stopped</span>" in found
        for absent in ("failed", "running", "doesn"):
            assert absent not in found

    def test_that_was_answered_leaves_the_tool_its_own_words(self, teller: Teller) -> None:
        teller.uses("Write", file_path="/vault/AGENTS.md", content="fine")
        asks(teller, "Write", file_path="/vault/AGENTS.md", content="fine")
        teller.tell("permission_resolved", requestId="1", decision="granted", canStillBeAllowed=False)
        found = teller.answered("No room on the disk.", is_error=True)
        assert "failed" in found
        assert "No room on the disk." in found

    def test_says_why_it_was_denied(self, teller: Teller) -> None:
        asks(teller, "Read", file_path="a")
        over = {"requestId": "1", "decision": "denied", "decidedBy": "ada", "pattern": None}
        found = teller.shown("permission_resolved", **over, reason="<b>\u202eNo</b>")
        assert 'Denied by ada. <q dir="auto">&lt;b&gt;' in found
        assert "U+202E" in found
        assert "<q" not in teller.shown("permission_resolved", **over)  # as older rows have it

    @pytest.mark.parametrize(
        ("tool", "given"),
        [
            ("Write", {"content": "x" * 19_000 + "evil"}),
            ("Edit", {"old_string": "x", "new_string": "x" * 19_000 + "evil"}),
            ("Edit", {"old_string": "x" * 19_000 + "evil", "new_string": ""}),
            ("MultiEdit", {"edits": [{"old_string": "x\n" * 9_000 + "evil", "new_string": "y"}]}),
            ("NotebookEdit", {"new_source": "x" * 19_000 + "evil"}),
            ("Bash", {"command": "x" * 9_990 + "evil"}),
            ("mcp__weather__today", {"place": "x" * 19_000 + "evil"}),
            ("Read", {"file_path": "x" * 300 + "evil"}),
        ],
    )
    def test_shows_each_line_whole(self, tool: str, given: dict[str, Any], teller: Teller) -> None:
        assert "evil" in asks(teller, tool, **given)

    @pytest.mark.parametrize(
        ("tool", "given"),
        [
            ("Bash", {"command": "ls", "run_in_background": True, "evil": 1}),
            ("Edit", {"old_string": "a", "new_string": "b", "edits": [{"evil": "a"}]}),
            ("Edit", {"old_string": ["evil"], "new_string": "b"}),
            ("MultiEdit", {"edits": [{"old_string": "a", "new_string": "b", "evil": 1}]}),
            ("WebSearch", {"query": "evil"}),
        ],
    )
    def test_shows_what_no_diff_and_no_command_tells(
        self, tool: str, given: dict[str, Any], teller: Teller
    ) -> None:
        assert "evil" in asks(teller, tool, **given)

    def test_says_that_every_occurrence_is_replaced(self, teller: Teller) -> None:
        edit = {"file_path": "/vault/AGENTS.md", "old_string": "a", "new_string": "b"}
        assert "every occurrence" not in asks(teller, "Edit", **edit, replace_all=False)
        assert "replaces every occurrence" in asks(teller, "Edit", **edit, replace_all=True)

    def test_says_that_a_file_is_emptied(self, teller: Teller) -> None:
        assert "the file is empty then" in asks(teller, "Write", file_path="/vault/AGENTS.md", content="")

    def test_shows_by_name_what_turns_text_around(self, teller: Teller) -> None:
        assert "U+202E" in asks(teller, "Write", file_path="/vault/AGENTS.md", content="\u202e")


def test_a_clock_that_runs_is_not_read_out_each_second(teller: Teller) -> None:
    questions = [{"question": "Which pears?", "options": []}]
    question = teller.shown("user_question", requestId="2", sessionId="2", questions=questions, expiresAt="")
    for found in (asks(teller, "Read", file_path="a"), question):
        assert 'aria-live="off" data-until' in found


def test_an_answered_question_shows_its_answers_and_where_there_is_none(teller: Teller) -> None:
    questions: list[dict[str, Any]] = [
        {"question": each, "options": []} for each in ("Which pears?", "How many?")
    ]
    teller.tell("user_question", requestId="1", sessionId="2", questions=questions, expiresAt=None)
    answers = {"Which pears?": ["Conference", "small ones"], "How many?": ""}
    found = teller.shown("question_answered", requestId="1", answers=answers, timedOut=False)
    assert "Conference, small ones" in found
    assert found.count("no answer") == 1


def test_a_question_that_nobody_answered_shows_no_answer_for_each(teller: Teller) -> None:
    questions: list[dict[str, Any]] = [
        {"question": each, "options": []} for each in ("Which pears?", "How many?")
    ]
    teller.tell("user_question", requestId="1", sessionId="2", questions=questions, expiresAt=None)
    found = teller.shown("question_answered", requestId="1", answers={}, timedOut=True)
    assert found.count("no answer") == 2


@pytest.mark.parametrize(
    ("more", "says"),
    [({}, "Nobody answered in time"), ({"givenUp": True}, "Its turn was stopped or lost")],
)
def test_a_question_that_nobody_answered_says_why(teller: Teller, more: dict[str, bool], says: str) -> None:
    """Older events do not say whether the turn was stopped."""
    teller.tell("user_question", requestId="1", sessionId="2", questions=[], expiresAt=None)
    assert says in teller.shown("question_answered", requestId="1", answers={}, timedOut=True, **more)


def test_a_host_that_a_command_wants_is_asked_about_by_its_name(teller: Teller) -> None:
    wider = {"scope": "folder", "pattern": "https://pypi.org/", "label": "pages of pypi.org"}
    found = asks(teller, "Reach", wider, url="https://pypi.org/")
    assert "May it reach pypi.org?" in found
    assert "pages of pypi.org" in found
    assert "<pre" not in found
    assert "While this runs" not in found


def test_of_a_host_that_is_asked_about_it_is_told_what_runs(teller: Teller) -> None:
    runs = ["npm install", "<b>\u202e"]
    found = asks(teller, "Reach", url="https://pypi.org/", **{"while": runs})
    assert "While this runs:" in found
    assert "<li><code>npm install</code></li><li><code>&lt;b&gt;" in found
    assert "U+202E" in found
    assert "<pre" not in found
    assert "evil" in asks(teller, "Reach", url="https://pypi.org/", **{"while": {"evil": 1}})


@pytest.mark.parametrize("status", ["pending", "expired"])
def test_where_no_wall_stands_an_operator_has_buttons_and_nobody_else(status: str) -> None:
    for to_operator in (True, False):
        teller = Teller(to_operator=to_operator, on_host=True)
        found = asks(teller, "Write", file_path="/vault/CLAUDE.md", content="x")
        if status == "expired":
            found = teller.shown("permission_resolved", requestId="1", decision="expired")
        assert ("<button" in found, "data-operators" in found) == (to_operator, not to_operator)
        assert ("perator" in found.replace("data-operators", "")) == (not to_operator)
        assert ("data-until" in found) == (to_operator and status == "pending")
    assert "<button" in asks(Teller(to_operator=False), "Write", file_path="/vault/CLAUDE.md", content="x")


@pytest.mark.django_db
@pytest.mark.parametrize("on_host", [True, False])
def test_so_is_a_question(on_host: bool, as_ada: Caller) -> None:
    opened = open_turn(as_ada, Opening("ask me"))
    request = frame(asked.asks(opened.session_id, is_question=True, on_host=on_host))
    for to_operator in (True, False):
        found = inbox_item(request, to_operator=to_operator).html()
        assert "Which?" in found
        assert ("<form" in found) == (to_operator or not on_host)
        assert ("only an operator answers" in found) == (not to_operator and on_host)


@pytest.mark.django_db
def test_an_answered_question_is_not_looked_up(django_assert_num_queries: Queries) -> None:
    teller = Teller(to_operator=False)
    with django_assert_num_queries(0):
        teller.tell("user_question", requestId="1", sessionId="2", questions=[], expiresAt=None)
        assert "Answered" in teller.shown("question_answered", requestId="1", answers={}, timedOut=False)


def asks(teller: Teller, tool: str, *wider: dict[str, str], **given: Any) -> str:
    request = {
        "id": "1",
        "sessionId": "2",
        "toolName": tool,
        "toolUseId": "use-0",
        "permissionType": {"Write": "write", "Bash": "bash", "Read": "read"}.get(tool, "other"),
        "input": given,
        "suggestedGrants": [{"scope": "once", "pattern": "", "label": "once"}, *wider],
        "reason": "A person decides.",
        "expiresAt": "2026-11-18T10:02:00Z",
        "onHost": teller.on_host,
    }
    return teller.shown("permission_request", **request)
