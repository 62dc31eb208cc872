"""What somebody does first, in a real Chromium: the demo, a key, a folder, a password."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from agents_app.model.demo.wire import say
from tests.browser.house import ready
from tests.processes.running import RunningUp, StartUp
from tests.scripted_model import ScriptedModel

pytestmark = [pytest.mark.processes, pytest.mark.browser]


def signed_in(page: Page, up: RunningUp) -> None:
    page.goto(up.sign_in)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(lambda url: "/signin" not in url)
    if page.url.endswith("/welcome"):  # where the environment leaves something to choose
        page.get_by_role("link", name="Start chatting").click()
    expect(page.get_by_label("Message", exact=True)).to_be_visible()


def say_in(page: Page, message: str) -> None:
    """And waits for the end of the answer: the first of a new home starts everything that answers."""
    ready(page)
    before = page.locator(".turn[data-over]").count()
    page.get_by_label("Message", exact=True).fill(message)
    page.keyboard.press("Enter")
    expect(page.locator(".turn[data-over]")).to_have_count(before + 1)


def test_without_a_key_the_demo_answers_and_says_so(start_up: StartUp, page: Page) -> None:
    up = start_up()
    (up.vault / "Welcome.md").write_text("A note about pears.\n")
    signed_in(page, up)
    expect(page.get_by_text("demo", exact=True).first).to_be_visible()
    say_in(page, "read Welcome.md")
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
        page.goto("about:blank")  # it would say that nobody is there
        up.stop()  # files that come and go cannot be looked through
        assert up.text.count("turns started") == 1
        assert not any(b"entered-in-the-page" in file.read_bytes() for file in files_of(up))


@pytest.mark.depth
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
        expect(page.get_by_label("Message", exact=True)).to_be_visible()
