"""The page in a real Chromium, against the real processes."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from agents_app.demo_model.wire import Reply, Text, Thinking, say
from tests.processes.running import RunningUp, StartUp
from tests.scripted_model import ScriptedModel, calls

pytestmark = [pytest.mark.processes, pytest.mark.browser]

PATIENCE = 30_000  # ms
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as play:
        chromium = play.chromium.launch(executable_path="/usr/bin/chromium", args=list(QUIET))
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page that may complain of nothing and ask nobody but us."""
    complaints: list[str] = []
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    fresh = context.new_page()
    fresh.set_default_timeout(PATIENCE)
    fresh.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    fresh.on("pageerror", lambda error: complaints.append(str(error)))
    fresh.on("request", lambda asked: None if "//127.0.0.1" in asked.url else complaints.append(asked.url))
    yield fresh
    context.close()
    assert complaints == []


def signed_in(page: Page, up: RunningUp) -> None:
    page.goto(up.sign_in)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(lambda url: "/signin" not in url)
    if page.url.endswith("/welcome"):  # where the environment leaves something to choose
        page.get_by_role("link", name="Start chatting").click()
    expect(page.get_by_role("button", name="Send")).to_be_enabled()


def say_in(page: Page, message: str) -> None:
    page.get_by_label("Message", exact=True).fill(message)
    page.keyboard.press("Enter")


def test_a_message_streams_and_a_reload_in_the_middle_shows_the_rest(start_up: StartUp, page: Page) -> None:
    with ScriptedModel() as model:
        up = start_up({"ANTHROPIC_BASE_URL": model.url})
        (up.vault / "Quinces.md").write_text("Ripe in October.\n")
        gate = model.hold()
        slowly = Reply((Thinking("A note may say so."), Text("They are ripe ", gate, "in October.")))
        model.script("quinces", [calls("Read", file_path=str(up.vault / "Quinces.md")), slowly])
        signed_in(page, up)
        page.get_by_label("Message", exact=True).fill("When are the quinces ripe?")
        page.keyboard.press("Enter")
        log = page.get_by_role("log")
        expect(log).to_contain_text("They are ripe")
        expect(log).to_contain_text("Read")
        page.reload()
        expect(page.get_by_role("log")).to_contain_text("They are ripe")
        gate.release()
        expect(page.get_by_role("log")).to_contain_text("They are ripe in October.")
        expect(page.get_by_role("button", name="Stop")).to_be_hidden()
        page.reload()
        expect(page.get_by_role("log").get_by_text("They are ripe in October.", exact=True)).to_have_count(1)
        expect(page.get_by_role("log").get_by_text("When are the quinces ripe?", exact=True)).to_have_count(1)


def test_a_turn_is_stopped_by_its_button(start_up: StartUp, page: Page) -> None:
    with ScriptedModel() as model:
        up = start_up({"ANTHROPIC_BASE_URL": model.url})
        gate = model.hold()
        model.script("story", [say("Once upon ", gate, "a time.")])
        signed_in(page, up)
        page.get_by_label("Message", exact=True).fill("Tell me a story.")
        page.get_by_role("button", name="Send").click()
        expect(page.get_by_role("log")).to_contain_text("Once upon")
        page.get_by_role("button", name="Stop").click()
        expect(page.get_by_role("log")).to_contain_text("Stopped")
        expect(page.get_by_role("log")).not_to_contain_text("a time.")
        gate.release()


def test_without_a_key_the_demo_answers_and_says_so(start_up: StartUp, page: Page) -> None:
    up = start_up()
    (up.vault / "Welcome.md").write_text("A note about pears.\n")
    signed_in(page, up)
    expect(page.get_by_text("demo", exact=True).first).to_be_visible()
    page.get_by_label("Message", exact=True).fill("read Welcome.md")
    page.keyboard.press("Enter")
    expect(page.get_by_role("log")).to_contain_text("A note about pears.")
    expect(page.get_by_role("log")).to_contain_text("the demo model")


def test_a_key_that_is_entered_in_the_page_is_the_next_messages_and_nothing_starts_again(
    start_up: StartUp, page: Page
) -> None:
    with ScriptedModel(say("Claude is here.")) as model:
        up = start_up()
        page.goto(up.sign_in)
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("link", name="Start chatting with the demo").click()
        say_in(page, "hello")
        expect(page.get_by_role("log")).to_contain_text("I am not Claude")
        expect(page.get_by_role("button", name="Stop")).to_be_hidden()
        begun_with_the_demo = page.url
        page.goto(f"{up.address}/settings")
        page.get_by_text("Another server, or a token").click()
        page.get_by_label("Anthropic API key").fill("sk-ant-entered-in-the-page")
        page.get_by_label("Address of the model").fill(model.url)
        page.get_by_role("button", name="Use this key").click()
        page.wait_for_url(f"{up.address}/")
        for where in (page.url, begun_with_the_demo):
            page.goto(where)
            say_in(page, "and now?")
            expect(page.get_by_role("log")).to_contain_text("Claude is here.")
        assert {asked.headers["x-api-key"] for asked in model.asked("and now?")} == {
            "sk-ant-entered-in-the-page"
        }
        page.goto(f"{up.address}/settings")
        page.get_by_role("button", name="Remove the key").click()
        page.goto(f"{up.address}/")
        say_in(page, "hello")
        expect(page.get_by_role("log")).to_contain_text("I am not Claude")
        assert up.text.count("turns started") == 1
        assert not any(b"entered-in-the-page" in file.read_bytes() for file in files_of(up))


def test_a_folder_that_is_chosen_in_the_page_is_the_one_after_a_restart(
    start_up: StartUp, page: Page, tmp_path: Path
) -> None:
    for name in ("sample-vault", "own"):
        (tmp_path / name).mkdir()
    up = start_up({"VAULT_PATH": ""})
    assert "/sample-vault" in up.wait_log(r"^  vault ")
    page.goto(up.sign_in)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_text("Use a folder of your own").click()
    page.get_by_label("Another folder").fill(str(tmp_path / "own"))
    page.get_by_role("button", name="Use this folder").click()
    expect(page.get_by_role("status")).to_contain_text("This is your folder now.")
    page.get_by_role("link", name="Start chatting with the demo").click()
    say_in(page, "write a note about pears")
    expect(page.get_by_role("log")).to_contain_text("the note is in Notes/pears.md")
    assert (tmp_path / "own/Notes/pears.md").is_file()
    page.goto("about:blank")  # it would say that nobody is there
    up.stop()
    again = start_up({"VAULT_PATH": ""})
    assert again.wait_log(r"^  vault ").endswith(str(tmp_path / "own"))


def files_of(up: RunningUp) -> list[Path]:
    return [path for path in up.home.rglob("*") if path.is_file()]


def test_a_password_and_a_key_are_made_on_the_settings_page(start_up: StartUp, page: Page) -> None:
    with ScriptedModel() as model:
        up = start_up({"ANTHROPIC_BASE_URL": model.url})
        signed_in(page, up)
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page.get_by_role("link", name="Settings").click()
        page.get_by_label("New password", exact=True).fill("quinces in October")
        page.get_by_label("New password confirmation").fill("quinces in October")
        page.get_by_role("button", name="Set password").click()
        expect(page.get_by_role("status")).to_contain_text("Your password is set")
        page.get_by_text("Make a key", exact=True).click()
        page.get_by_label("What it is for").fill("laptop")
        page.get_by_role("button", name="Make the key").click()
        page.get_by_role("button", name="Copy").click()
        expect(page.get_by_role("button", name="Copied")).to_be_visible()
        key = page.evaluate("navigator.clipboard.readText()")
        assert page.request.get(f"{up.address}/api/chat", headers={"x-api-key": key}).ok
        page.get_by_role("button", name="Sign out").click()
        page.get_by_label("Name").fill("admin")
        page.get_by_label("Password").fill("quinces in October")
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("button", name="Send")).to_be_enabled()
