"""Servers and skills as a person meets them: what appears in the folder appears here, is accepted, tried, and
given; a skill comes as a zip."""

import io
import json
import shutil
import zipfile
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.house import ON_A_PHONE, House, Tab
from tests.browser.test_every_page import assert_is_for_everybody

pytestmark = [pytest.mark.processes, pytest.mark.browser]

SAMPLE = Path(__file__).resolve().parents[2] / "sample-vault"


@pytest.fixture
def sample(house: House) -> Iterator[Path]:
    vault = house.up.vault
    shutil.copytree(SAMPLE / ".claude", vault / ".claude", dirs_exist_ok=True)
    entries = json.loads((SAMPLE / ".mcp.json").read_text())
    entries["mcpServers"]["Weather now"] = {"command": "true"}
    entries["mcpServers"]["library"] = {
        "type": "http",
        "url": "https://library.example.org/mcp",
        "headers": {"Authorization": "Bearer ${LIBRARY_TOKEN}"},
    }
    (vault / ".mcp.json").write_text(json.dumps(entries))
    yield vault
    shutil.rmtree(vault / ".claude")
    (vault / ".mcp.json").unlink()
    rows = "(KnownServer, WorkspaceSecret, EnabledSkill, SessionServer)"
    house.shell.run(
        f"from agents_app.tools.models import *\nprint([each.objects.all().delete() for each in {rows}])"
    )


def test_what_is_in_the_folder_is_accepted_tried_and_given(tab: Tab, sample: Path) -> None:
    page = tab.open("/tools").page
    page.get_by_role("link", name="garden waits").click()
    expect(page.get_by_text("It never starts until an owner accepts it")).to_be_visible()
    page.get_by_role("button", name="Accept it").click()
    page.get_by_role("button", name="Try it").click()
    expect(page.get_by_text("What a plant has yielded, year by year")).to_be_visible()
    page.get_by_role("button", name="Give it to all").click()
    expect(page.get_by_role("button", name="Only by name")).to_be_visible()
    changed = json.loads((sample / ".mcp.json").read_text())
    changed["mcpServers"]["garden"]["args"].append("--more")
    (sample / ".mcp.json").write_text(json.dumps(changed))
    expect(page.get_by_text("This entry is another than you accepted")).to_be_visible()


def test_a_chat_is_given_one_by_its_menu(tab: Tab, sample: Path) -> None:
    page = tab.open("/tools/servers/garden").page
    page.get_by_role("button", name="Accept it").click()
    tab.open_past("how much did they yield")
    trouble = page.get_by_text("There is no server shed here")
    for has, wants, is_new in (
        ("", "garden, shed", False),
        ("", "garden", True),
        ("garden", "garden", False),
    ):
        page.locator("#more > summary").click()
        page.get_by_role("button", name="Servers…").click()
        expect(page.get_by_text("There are: garden.")).to_be_visible()
        expect(page.get_by_role("textbox", name="Servers of this chat")).to_have_value(has)
        page.get_by_role("textbox", name="Servers of this chat").fill(wants)
        with page.expect_response("**/mcp/garden") if is_new else nullcontext():
            page.get_by_role("button", name="Save").click()
        expect(trouble).to_be_visible(visible="shed" in wants)
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_skill_comes_as_a_zip_and_a_secret_is_kept(tab: Tab, sample: Path, tmp_path: Path) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(
            "pruning/SKILL.md", "---\nname: pruning\ndescription: When to prune.\n---\nIn March.\n"
        )
    page = tab.open("/tools").page
    page.get_by_role("link", name="Add a skill").click()
    file = tmp_path / "pruning.zip"
    file.write_bytes(packed.getvalue())
    page.get_by_label("A zip").set_input_files(file)
    page.get_by_role("button", name="Add it").click()
    expect(page.get_by_text("In March.")).to_be_visible()
    page.get_by_role("button", name="Give it to all").click()
    expect(page.get_by_text("each agent that may use skills")).to_be_visible()
    page.get_by_role("link", name="What servers are given").click()
    page.get_by_role("textbox", name="Name").fill("LIBRARY_TOKEN")
    page.get_by_role("textbox", name="Value").fill("quinces-and-pears")
    page.get_by_role("button", name="Keep it").click()
    expect(page.get_by_role("button", name="Remove LIBRARY_TOKEN")).to_be_visible()
    assert "quinces-and-pears" not in page.content()


def test_a_capture_is_shown_where_it_lies_and_what_is_no_text_is_refused_in_words(
    tab: Tab, house: House, tmp_path: Path
) -> None:
    (tmp_path / "call.md").write_text("Ada called.")
    (tmp_path / "leaf.png").write_bytes(b"\x89PNG\r\n")
    page = tab.open("/vault/of/default?path=captures").page
    page.locator("#dropped").set_input_files(tmp_path / "leaf.png")
    expect(page.get_by_text("leaf.png is no text in UTF-8.")).to_be_visible()
    page.locator("#dropped").set_input_files(tmp_path / "call.md")
    expect(page.get_by_role("heading", name="captures/call.md")).to_be_visible()
    expect(page.get_by_text("Ada called.")).to_be_visible()
    captures = house.up.vault / "captures"
    assert [each.name for each in captures.iterdir()] == ["call.md"]
    shutil.rmtree(captures)


@ON_A_PHONE
def test_they_are_for_everybody(any_tab: Tab, sample: Path) -> None:
    for path in (
        "/tools",
        "/tools/servers/garden",
        "/tools/servers/library",
        "/tools/servers/library/edit",
        "/tools/new",
        "/tools/skills/of/month-in-review",
        "/tools/skills/new",
        "/tools/secrets",
    ):
        assert_is_for_everybody(any_tab.open(path).page)
