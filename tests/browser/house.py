"""One running Parachute for all tests in the browser, and a tab as a person uses it."""

import re
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Dialog, Locator, Page, expect

from tests.processes.program import Program
from tests.processes.running import RunningUp
from tests.scripted_model import ScriptedModel

PATIENCE = 30_000  # ms
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@dataclass(frozen=True)
class House:
    up: RunningUp
    model: ScriptedModel
    program: Program
    signed_in: Any  # the cookies of the first person

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
    """A page that may complain of nothing and ask nobody but us."""

    house: House
    context: BrowserContext
    complaints: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page = self._open()

    def _open(self) -> Page:
        page = self.context.new_page()
        page.set_default_timeout(PATIENCE)
        page.on("console", lambda said: self._complain(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: self._complain(str(error)))
        page.on("dialog", self._refuse)
        page.on("request", lambda asked: None if self._is_ours(asked.url) else self._complain(asked.url))
        return page

    def _refuse(self, dialog: Dialog) -> None:
        self._complain(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _complain(self, of: str) -> None:
        self.complaints.append(of)

    def _is_ours(self, url: str) -> bool:
        return url.startswith((self.house.up.address, self.house.up.address.replace("http", "ws"), "blob:"))

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

    def open(self, path: str = "/") -> "Tab":
        self.page.goto(path)
        return self

    def say(self, text: str) -> None:
        self.message.fill(text)
        self.message.press("Enter")
        expect(self.message).to_have_value("")

    def rests(self) -> None:
        expect(self.state).to_have_text("idle", timeout=PATIENCE)

    def ask(self, text: str) -> None:
        """Says something and waits for the end of the answer."""
        before = self.page.locator(".turn[data-over]").count()
        self.say(text)
        expect(self.page.locator(".turn[data-over]")).to_have_count(before + 1, timeout=PATIENCE)
