"""What stands around a conversation: its files, its title, the list, the choices, how light the page is."""

import re
import threading
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Route, expect

from agents_app.model.demo.wire import Failure, say
from tests.browser.house import LOADED, House, Tab, painted, ready
from tests.browser.test_every_page import assert_is_for_everybody
from tests.depth import few_of
from tests.pages.test_chat_page import SMALL

pytestmark = [pytest.mark.processes, pytest.mark.browser]

PASTED = """(field) => {
  const data = new DataTransfer();
  data.items.add(new File(["pasted words"], "pasted.txt", { type: "text/plain" }));
  field.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
}"""
DROPPED = """(place) => {
  const data = new DataTransfer();
  data.items.add(new File(["dropped words"], "<b>dropped.md", { type: "text/markdown" }));
  const drop = (name) => new DragEvent(name, { dataTransfer: data, bubbles: true, cancelable: true });
  place.dispatchEvent(drop("dragover"));
  place.dispatchEvent(drop("drop"));
}"""


def test_files_are_chosen_pasted_and_dropped_and_reach_the_agent(
    house: House, tab: Tab, tmp_path: Path
) -> None:
    chosen = tmp_path / "chosen.txt"
    chosen.write_text("chosen words")
    tab.open().page.locator("#picker").set_input_files(chosen)
    tab.message.evaluate(PASTED)
    tab.page.locator("main").evaluate(DROPPED)
    files = tab.page.locator("#files li")
    expect(files).to_have_count(3)
    tab.ask("what is in these files?")
    expect(files).to_have_count(0)
    expect(tab.log.locator(".said .file bdi")).to_have_text(["chosen.txt", "pasted.txt", "<b>dropped.md"])
    told = str(house.model.asked("what is in these files?")[-1].text)
    assert all(f"{how} words" in told for how in ("chosen", "pasted", "dropped"))
    with tab.page.expect_download() as download:
        tab.log.locator(".said .file").first.click()
    assert download.value.path().read_text() == "chosen words"


def test_what_is_no_use_is_refused_in_a_sentence_and_what_was_written_stays(tab: Tab, tmp_path: Path) -> None:
    program, huge = tmp_path / "tree.png", tmp_path / "huge.txt"
    program.write_bytes(b"\x7fELF" + b"\0" * 100)
    huge.write_bytes(b"x" * (21 << 20))
    tab.open().page.locator("#picker").set_input_files(huge)
    expect(tab.page.get_by_role("alert")).to_contain_text("larger than 20 MB")
    expect(tab.page.locator("#files li")).to_have_count(0)
    tab.page.locator("#picker").set_input_files(program)
    tab.message.fill("look")
    tab.message.press("Enter")
    expect(tab.page.get_by_role("alert")).to_contain_text("tree.png")
    expect(tab.message).to_have_value("look")
    tab.page.get_by_role("button", name="Leave out: tree.png").click()
    tab.ask("look")
    tab.complaints.clear()  # a browser says on its console that it was 422


def test_a_chat_is_renamed_for_every_tab(tab: Tab, other_tab: Tab) -> None:
    tab.open_past("an untitled thing")
    other_tab.open("/")
    expect(other_tab.page.locator("#chats")).to_contain_text("an untitled thing")
    tab.page.locator("#more > summary").click()
    tab.page.get_by_role("button", name="Rename").click()
    tab.page.get_by_role("dialog").get_by_role("textbox").fill("Pears & <i>plums</i>")
    tab.page.keyboard.press("Enter")
    expect(tab.page.get_by_role("heading", level=1)).to_have_text("Pears & <i>plums</i>")
    expect(tab.page).to_have_title("Pears & <i>plums</i> · Parachute")
    expect(other_tab.page.locator("#chats")).to_contain_text("Pears & <i>plums</i>")
    expect(other_tab.page.locator("#chats")).not_to_contain_text("an untitled thing")


def test_a_chat_gets_tags_and_folders_that_its_agent_is_told_of(house: House, tab: Tab) -> None:
    (house.up.vault / "Beds, old").mkdir()
    tab.open_past("a tagged thing")

    def write(choice: str, line: str, last: str) -> None:
        tab.page.locator("#more > summary").click()
        tab.page.get_by_role("button", name=choice).click()
        tab.page.get_by_role("dialog").get_by_role("textbox").fill(line)
        with tab.page.expect_response(lambda got: last in got.url + (got.request.post_data or "")):
            tab.page.keyboard.press("Enter")

    write("Tags…", "Fruit,  autumn ,", "autumn")
    find = tab.page.get_by_role("searchbox", name="Find a chat")
    find.fill("#autumn")
    expect(tab.page.locator("#chats a")).to_have_text(["a tagged thing"])
    write("Context…", "Beds, old", "Beds, old")
    (told,) = house.program.http.get(f"/api/chat/{tab.session}/contexts").json()["contexts"]
    assert told["path"] == "Beds, old"
    write("Tags…", "fruit", "autumn")
    find.fill("#fruit")
    expect(tab.page.locator("#chats a")).to_have_text(["a tagged thing"])
    find.fill("#autumn")
    expect(tab.page.locator("#chats")).to_contain_text("No chat has this tag.")


def test_a_chat_is_archived_and_another_is_deleted(house: House, tab: Tab, other_tab: Tab) -> None:
    tab.open_past("to be archived")
    tab.page.locator("#more > summary").click()
    tab.page.get_by_role("button", name="Archive", exact=True).click()
    expect(tab.page.get_by_text("What would you like to do?")).to_be_visible()
    expect(tab.page.locator("#chats")).not_to_contain_text("to be archived")
    tab.page.get_by_role("button", name="Archived chats").click()
    tab.page.locator("#chats a", has_text="to be archived").click()
    tab.page.locator("#more > summary").click()
    tab.page.get_by_role("button", name="Take out of the archive").click()
    expect(tab.page.locator("#chats")).to_contain_text("to be archived")
    tab.open_past("to be deleted")
    other_tab.open(f"/chat/{tab.session}")
    tab.page.locator("#more > summary").click()
    tab.page.get_by_role("button", name="Delete…").click()
    tab.page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(tab.page.get_by_text("What would you like to do?")).to_be_visible()
    expect(other_tab.page.get_by_role("alert")).to_contain_text("not there any more")
    expect(other_tab.message).to_have_count(0)
    assert "to be deleted" not in str(house.program.http.get("/api/chat?archived=any").json())


def test_the_list_tells_what_works_now(house: House, tab: Tab, other_tab: Tab) -> None:
    gate = house.model.hold()
    house.model.script("listed work", [say("Wor", gate, "ked.")])
    other_tab.open("/")
    tab.open().say("listed work")
    row = other_tab.page.locator("#chats a", has_text="listed work")
    expect(row.locator(".dot.live")).to_be_visible()
    gate.release()
    expect(row.locator(".dot")).to_have_count(0)


def test_model_and_trust_are_chosen_in_place(house: House, tab: Tab) -> None:
    tab.open().page.get_by_label("Model").select_option("opus")
    tab.ask("with another model")
    assert house.program.session(tab.session)["model"] == "opus"
    with tab.page.expect_response("**/api/chat/*"):
        tab.page.get_by_label("Model").select_option("haiku")
    tab.page.reload()
    expect(tab.page.get_by_label("Model")).to_have_value("haiku")
    tab.open().page.get_by_label("What the agent may reach").select_option("Whole computer")
    tab.ask("with the whole computer")
    assert house.program.session(tab.session)["trustLevel"] == "full"


def test_what_is_written_while_a_message_is_sent_stays(house: House, tab: Tab) -> None:
    ready(tab.open().page)

    def write_on(route: Route) -> None:
        tab.message.press_sequentially(" and more")
        route.continue_()

    tab.page.route("**/api/chat", write_on)
    tab.message.fill("first")
    tab.message.press("Enter")
    expect(tab.message).to_have_value(" and more")
    tab.page.reload()
    expect(tab.message).to_have_value(" and more")


def test_a_message_whose_answer_was_lost_is_said_once(house: House, tab: Tab) -> None:
    ready(tab.open().page)
    lost = [True]

    def lose(route: Route) -> None:
        route.fetch()
        route.abort() if lost.pop() else route.continue_()

    tab.page.route("**/api/chat", lose, times=1)
    tab.message.fill("said once")
    tab.message.press("Enter")
    expect(tab.page.get_by_role("alert")).to_contain_text("cannot be reached")
    tab.message.press("Enter")
    tab.page.wait_for_url("**/chat/*")
    listed = house.program.http.get("/api/chat?search=said once").json()
    assert listed["total"] == 1
    tab.complaints.clear()  # a browser says on its console that the request failed


def test_a_failed_message_is_sent_again_with_its_files(house: House, tab: Tab, tmp_path: Path) -> None:
    is_mended = threading.Event()
    refused = Failure(400, "invalid_request_error", "It was scripted to fail.")
    house.model.script("with a file", [lambda asked: say("Fine.") if is_mended.is_set() else refused])
    (tmp_path / "note.txt").write_text("words of a note")
    tab.open().page.locator("#picker").set_input_files(tmp_path / "note.txt")
    tab.say("with a file")
    again = tab.log.get_by_role("button", name="Send again")
    expect(again).to_be_visible()
    is_mended.set()
    tab.message.fill("meanwhile")
    again.click()
    expect(tab.log).to_contain_text("Fine.")
    expect(tab.log.locator(".said .file bdi")).to_have_text(["note.txt", "note.txt"])
    assert "words of a note" in str(house.model.asked("with a file")[-1].text)
    expect(tab.message).to_have_value("meanwhile")


def test_a_session_of_200_messages_is_painted_at_once_and_light(house: House, tab: Tab) -> None:
    session = house.past(turns=100)
    empty = min(painted(tab, "/") for _ in range(3))
    full = min(painted(tab, f"/chat/{session}") for _ in range(3))
    loaded = tab.page.evaluate(LOADED)
    expect(tab.log).to_contain_text("question 99")
    print(f"painted after {full:.0f} ms (an empty chat: {empty:.0f} ms), {loaded / 1000:.0f} KB loaded")
    assert loaded < SMALL
    assert full < 2.5 * empty  # under 300 ms on a machine of its own; another may be slow, but not by so much


@pytest.mark.parametrize("width", few_of([390, 1280], 390))
def test_acting_without_asking_is_switched_off_and_on_by_keyboard(
    house: House, browser: Browser, width: int
) -> None:
    tab = house.tab(browser, width=width)
    tab.open_past("a careful thing")
    tab.page.locator("#more > summary").press("Enter")
    acts = tab.page.get_by_role("switch", name="Act without asking")
    expect(acts).to_be_checked()
    assert_is_for_everybody(tab.page)
    acts.press("Space")
    expect(acts).not_to_be_checked()
    assert kept(house, tab)["trustMode"] is False
    assert_is_for_everybody(tab.page)
    tab.page.reload()
    ready(tab.page)
    tab.page.locator("#more > summary").press("Enter")
    expect(acts).not_to_be_checked()
    acts.press("Enter")
    expect(acts).to_be_checked()
    assert kept(house, tab)["trustMode"] is True
    tab.close()


@pytest.mark.parametrize("width", few_of([390, 1280], 390))
def test_what_was_allowed_is_listed_and_taken_back(house: House, browser: Browser, width: int) -> None:
    tab = house.tab(browser, width=width)
    tab.open_past("a careful thing")
    tab.page.locator("#more > summary").press("Enter")
    allowed = tab.page.get_by_role("list", name="Allowed in this chat without asking")
    expect(allowed.get_by_role("listitem")).to_have_text(["writeChat/artifacts/*"])
    assert_is_for_everybody(tab.page)
    allowed.get_by_role("button", name="Take back Chat/artifacts/*").press("Enter")
    expect(allowed).to_be_hidden()
    assert kept(house, tab)["write"] == []
    tab.close()


def test_without_a_wall_it_is_off_and_an_operator_may_switch_it_on(house: House, tab: Tab) -> None:
    tab.open().page.locator("#trust").select_option("full")
    tab.ask("on the whole computer")
    tab.page.locator("#more > summary").click()
    acts = tab.page.get_by_role("switch", name="Act without asking")
    expect(acts).not_to_be_checked()
    expect(tab.page.get_by_text("No wall stands around this chat")).to_be_visible()
    assert_is_for_everybody(tab.page)
    acts.click()
    expect(acts).to_be_checked()
    tab.page.reload()
    ready(tab.page)
    tab.page.locator("#more > summary").click()
    expect(acts).to_be_checked()


def test_what_the_switch_means_is_said_of_the_trust_that_is_chosen(tab: Tab) -> None:
    """Also to who hears the page."""
    tab.open().ask("a careful thing, or anything")
    tab.page.locator("#more > summary").click()
    here = tab.page.get_by_text("It writes in this folder without asking you.")
    anywhere = tab.page.get_by_text("It runs commands, and reads and writes anywhere on this computer")
    acts = tab.page.get_by_role("switch", name="Act without asking")
    expect(here).to_be_visible()
    expect(anywhere).to_be_hidden()
    expect(acts).to_have_accessible_description(
        re.compile("^It writes in this folder.*named, it asks all the same.$")
    )
    tab.open().page.locator("#trust").select_option("full")
    tab.ask("anything")
    tab.page.locator("#more > summary").click()
    expect(anywhere).to_be_visible()
    expect(here).to_be_hidden()
    expect(acts).to_have_accessible_description(
        re.compile("^It runs commands.*No wall stands around this chat")
    )
    tab.page.reload()
    ready(tab.page)
    tab.page.locator("#more > summary").click()
    expect(anywhere).to_be_visible()


def kept(house: House, tab: Tab) -> dict[str, object]:
    found: dict[str, object] = house.program.http.get(f"/api/chat/{tab.session}/permissions").json()
    return found["permissions"]  # type: ignore[return-value]
