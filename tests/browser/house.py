"""One running Parachute for all tests in the browser, and a tab as a person uses it."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    Dialog,
    Locator,
    Page,
    Request,
    StorageState,
    StorageStateCookie,
    expect,
)

from tests.depth import few_of
from tests.processes.program import Program
from tests.processes.running import ROOT, RunningUp
from tests.scripted_model import ScriptedModel

PATIENCE = 30_000  # ms
SCREENS = [(width, scheme) for width in (390, 1280) for scheme in ("light", "dark")]
# For a test of `any_tab` that is long, or of pages that are tried wide elsewhere too.
ON_A_PHONE = pytest.mark.parametrize("any_tab", few_of(SCREENS, (390, "dark")), ids=str, indirect=True)
STANDS_STILL_FOR = 1_100  # ms, until a card can be answered
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


PAINTED_AFTER = """() => new Promise((told) => {
  const look = (seen) => seen.getEntriesByName("first-contentful-paint").forEach((at) => told(at.startTime));
  new PerformanceObserver(look).observe({ type: "paint", buffered: true });
})"""
LOADED = "performance.getEntries().reduce((all, each) => all + (each.decodedBodySize ?? 0), 0)"


def watched(context: BrowserContext, complaints: list[str], ours: str) -> Page:
    """A page that may complain of nothing and ask nobody but us."""
    context.clock.install()
    page = context.new_page()
    page.set_default_timeout(PATIENCE)

    def refuse(dialog: Dialog) -> None:
        complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def look(asked: Request) -> None:
        if not asked.url.startswith((ours, "blob:")):
            complaints.append(asked.url)

    page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", refuse)
    page.on("request", look)
    return page


def ready(page: Page) -> None:
    """Its scripts have been loaded: what is written is sent."""
    expect(page.locator("main[data-ready]")).to_be_attached()


RUNS_WHAT_IT_IS_TOLD = """
import contextlib, io, json, sys
import django

django.setup()
for line in sys.stdin:
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(json.loads(line), {})
    print(json.dumps(said.getvalue()), flush=True)
"""


class Shell:
    """A `manage.py shell` that stays: each start of Django would cost a second or two."""

    def __init__(self, variables: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", RUNS_WHAT_IT_IS_TOLD],
            cwd=ROOT,
            env=variables | {"DJANGO_SETTINGS_MODULE": "parachute_site.settings"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, code: str) -> str:
        """What it prints."""
        assert self._process.stdin and self._process.stdout
        print(json.dumps(code), file=self._process.stdin, flush=True)
        said = self._process.stdout.readline()
        assert said, code
        return str(json.loads(said))

    def close(self) -> None:
        self._process.communicate()
        assert self._process.returncode == 0


@dataclass(frozen=True)
class House:
    up: RunningUp
    model: ScriptedModel
    program: Program
    signed_in: Any  # the cookies of the first person
    shell: "Shell"

    def past(self, turns: int = 1, first: str = "question 0") -> str:
        """A chat that is over, made as rows: its id."""
        return self._shell(f"from tests.pages.conversations import a_past; print(a_past({turns}, {first!r}))")

    def knock(self, who: str, *texts: str) -> str:
        """Somebody whom nobody knows writes to the bot: the id of their request."""
        return self._shell(f"from tests.bots.knocking import knock; print(knock({who!r}, *{texts!r}))")

    def share(self, session: str) -> None:
        """With everybody in its workspace."""
        self.program.http.patch(f"/api/chat/{session}", json={"visibility": "workspace"}).raise_for_status()

    @contextmanager
    def workspace(self, slug: str) -> Iterator[Path]:
        """One more of the first person's, and its folder; gone afterwards."""
        folder = self.up.vault.parent / slug
        folder.mkdir()
        self._shell(
            "from sessions_app.models import Workspace\n"
            f"made = Workspace.objects.create(slug='{slug}', name='{slug.title()}', vault_path='{folder}')\n"
            "first = Workspace.objects.earliest('pk').memberships.earliest('pk')\n"
            "print(made.memberships.create(user=first.user, role='owner').pk)"
        )
        try:
            yield folder
        finally:
            there = f"Workspace.objects.filter(slug='{slug}').delete()"
            self._shell(f"from sessions_app.models import Workspace; print({there})")

    def becomes_child(self, session: str, parent: str) -> None:
        """As if one had started the other."""
        rows = f"Session.objects.filter(pk='{session}').update(parent='{parent}')"
        self._shell(f"from sessions_app.models import Session; print({rows})")

    def has_read_strangers(self, session: str) -> None:
        rows = f"Session.objects.filter(pk='{session}').update(has_read_strangers=True)"
        self._shell(f"from sessions_app.models import Session; print({rows})")

    def time_is_over(self, session: str) -> None:
        """For what it asks and nobody has open."""
        rows = f"ToolRequest.objects.pending().filter(session='{session}').update(expires_at=timezone.now())"
        self._shell(
            "from django.utils import timezone\n"
            f"from permissions_app.models import ToolRequest\nprint({rows})"
        )

    def wants_to_start(self, session: str, child: str) -> None:
        """Its agent asks for a grant, in its newest turn."""
        self._shell(
            "from permissions_app.grants.requests import request_grant\n"
            "from sessions_app.models import Session\n"
            f"session = Session.objects.get(pk='{session}')\n"
            "turn = session.turns.latest('opened_seq')\n"
            f"print(request_grant(session, '{child}', 'It writes better.', turn_id=turn.pk).pk)"
        )

    @contextmanager
    def person(self, name: str, role: str) -> Iterator[StorageState]:
        """The cookies of somebody who is no operator, and gone afterwards: another test counts on a house
        of operators."""
        key = self._shell(
            "from django.contrib.auth.models import User\n"
            "from django.test import Client\n"
            "from sessions_app.models import Workspace\n"
            f"user = User.objects.create_user('{name}')\n"
            f"Workspace.objects.get(slug='default').memberships.create(user=user, role='{role}')\n"
            "client = Client()\n"
            "client.force_login(user)\n"
            "print(client.cookies['sessionid'].value)"
        )
        try:
            yield {"cookies": [_cookie("sessionid", key)], "origins": []}
        finally:
            users = f"User.objects.filter(username='{name}').delete()"
            self._shell(f"from django.contrib.auth.models import User; print({users})")

    def _shell(self, code: str) -> str:
        """The last word that it prints."""
        return self.shell.run(code).split()[-1]

    def tab(self, browser: Browser, *, width: int = 1280, scheme: str = "light", **more: Any) -> "Tab":
        context = browser.new_context(
            base_url=self.up.address,
            viewport={"width": width, "height": 800},
            color_scheme=scheme,  # type: ignore[arg-type]
            storage_state=more.pop("storage_state", self.signed_in),
            **more,
        )
        return Tab(self, context)


@dataclass
class Tab:
    """A page of the house, as a person uses it."""

    house: House
    context: BrowserContext
    complaints: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page = watched(self.context, self.complaints, self.house.up.address)

    def close(self) -> None:
        self.context.close()
        assert not self.complaints, self.complaints

    @property
    def log(self) -> Locator:
        return self.page.get_by_role("log")

    @property
    def message(self) -> Locator:
        return self.page.get_by_label("Message", exact=True)

    @property
    def state(self) -> Locator:
        return self.page.locator("#state .word")

    @property
    def session(self) -> str:
        found = re.search(r"/chat/([0-9a-f-]{36})", self.page.url)
        assert found, self.page.url
        return found[1]

    def open_past(self, first: str) -> "Tab":
        """In a chat that began with these words, and that no agent has to begin."""
        return self.open(f"/chat/{self.house.past(first=first)}")

    def open(self, path: str = "/") -> "Tab":
        self.page.goto(path)
        return self

    def say(self, text: str) -> None:
        ready(self.page)
        self.message.fill(text)
        self.message.press("Enter")
        expect(self.message).to_have_value("")

    def rests(self) -> None:
        expect(self.state).to_have_text("idle")

    def ask(self, text: str) -> None:
        """Says something and waits for the end of the answer."""
        before = self.page.locator(".turn[data-over]").count()
        self.say(text)
        expect(self.page.locator(".turn[data-over]")).to_have_count(before + 1)


def settled(card: Locator) -> Locator:
    """It stood still in sight for long enough that it can be answered: by the clock of its page, which goes
    faster here than ours."""
    card.get_by_role("button").first.scroll_into_view_if_needed()  # the card may be taller than the screen
    for _ in range(2):  # once it looks where the card stands, and then whether it still stands there
        card.page.clock.fast_forward(STANDS_STILL_FOR)
    for each in card.get_by_role("button").all():
        expect(each).to_have_attribute("aria-disabled", "false")
    return card


def answer(card: Locator, button: str) -> None:
    settled(card).get_by_role("button", name=button).click()


def painted(tab: Tab, path: str) -> float:
    """Milliseconds until the page shows something."""
    ready(tab.open(path).page)
    return float(tab.page.evaluate(PAINTED_AFTER))


def signed_in(up: RunningUp) -> StorageState:
    """The cookies of the first person, who used the link."""
    return {"cookies": [_cookie(name, value) for name, value in up.cookies.items()], "origins": []}


def _cookie(name: str, value: str) -> StorageStateCookie:
    return {"name": name, "value": value, "domain": "127.0.0.1", "path": "/", "httpOnly": name == "sessionid"}
