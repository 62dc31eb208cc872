"""The pages of agents: what a file means, what waits, what it is told; and who may change what."""

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agents_app.models import AgentRights
from sessions_app.access.caller import Caller
from tests.pages.browsing import Enter

GARDENER = """---
name: Gardener
description: Keeps the notes on plants
tools: [Read, Write]
write_permissions: ["Garden/**"]
spawn: [reader]
---

You keep the garden.
"""
ONE = "/agents/of/gardener"


@pytest.fixture
def file(vault: Path) -> Path:
    (vault / "Agents").mkdir()
    found = vault / "Agents" / "gardener.md"
    found.write_text(GARDENER)
    return found


def text_of(page: Any) -> str:
    return " ".join(page.content.decode().split())


def hash_in(page: Any) -> str:
    return str(page.context["agent"].definition.wanted.hash)


def test_a_list_names_each_file_and_what_is_wrong_in_it(as_ada_in: Client, file: Path) -> None:
    (file.parent / "broken.md").write_text("---\nmodel: [a]\n---\n")
    (file.parent / "a b&c<i>.md").write_text("---\nname: x\n---\n")
    (file.parent / "odd.md").write_text("---\ntools: [Reed]\n---\n")
    page = text_of(as_ada_in.get("/agents"))
    assert "Keeps the notes on plants" in page
    assert "line 2" in page
    assert "Is Read meant?" in page, "though it can be used"
    assert "asks for more" in page
    assert "text was expected, and this is a list" in page
    assert "<i>" not in page


def test_one_agent_is_shown_as_it_is_understood_beside_its_file(as_ada_in: Client, file: Path) -> None:
    page = text_of(as_ada_in.get(ONE))
    assert all(word in page for word in ("Read, Write", "Garden/**", "You keep the garden.", "Start a chat"))
    assert "/?agent=gardener&amp;workspace=default" in page
    assert as_ada_in.get("/agents/of/nobody").status_code == 404


def test_an_owner_accepts_with_one_click_what_they_have_read(
    as_ada_in: Client, enter: Enter, ben: User, file: Path
) -> None:
    before = as_ada_in.get(ONE)
    assert "+ reader" in text_of(before)
    bens = enter(ben)
    assert "An owner of this workspace can accept it" in text_of(bens.get(ONE))
    assert "owner" in text_of(bens.post(f"{ONE}/accept", {"hash": hash_in(before)}, follow=True))
    stale = as_ada_in.post(f"{ONE}/accept", {"hash": "0" * 64}, follow=True)
    assert "asks for something else by now" in text_of(stale)
    after = as_ada_in.post(f"{ONE}/accept", {"hash": hash_in(before)}, follow=True)
    assert after.context["agent"].pending == []
    assert "counts from the next message on" in text_of(after)


def test_a_file_is_edited_and_never_over_a_newer_one(as_ada_in: Client, file: Path) -> None:
    digest = as_ada_in.get(f"{ONE}/edit").context["digest"]
    fresh = GARDENER.replace("keep", "love")
    form = {"content": fresh.replace("\n", "\r\n"), "digest": digest}
    assert as_ada_in.post(f"{ONE}/edit", form).status_code == 302
    assert file.read_text() == fresh
    late = as_ada_in.post(f"{ONE}/edit", {"content": "---\nname: Mine\n---\n", "digest": digest})
    assert late.status_code == 409
    assert "name: Mine" in text_of(late), "what was typed is still there"
    assert file.read_text() == fresh


def test_what_is_wrong_is_not_saved_and_stays_in_the_form(as_ada_in: Client, file: Path) -> None:
    digest = as_ada_in.get(f"{ONE}/edit").context["digest"]
    page = as_ada_in.post(f"{ONE}/edit", {"content": "---\nmodel: [mine]\n---\n", "digest": digest})
    assert page.status_code == 422
    assert "line 2: model: text was expected" in text_of(page)
    assert "model: [mine]" in text_of(page)
    assert file.read_text() == GARDENER


def test_one_is_made_and_deleted(as_ada_in: Client, vault: Path) -> None:
    text = as_ada_in.get("/agents/new").context["text"]
    made = as_ada_in.post("/agents/new", {"name": "Night Reader", "content": text, "digest": ""})
    assert made["Location"] == "/agents/of/night-reader?workspace=default"
    assert (vault / "Agents" / "night-reader.md").read_text() == text.replace("\r\n", "\n")
    again = as_ada_in.post("/agents/new", {"name": "night-reader", "content": text, "digest": ""})
    assert again.status_code == 409
    bad = as_ada_in.post("/agents/new", {"name": "../x", "content": text, "digest": ""})
    assert bad.status_code == 422
    as_ada_in.post("/agents/of/night-reader/delete")
    assert not (vault / "Agents" / "night-reader.md").exists()


def test_what_it_is_told_is_shown_with_its_tokens(as_ada_in: Client, file: Path, vault: Path) -> None:
    (vault / "CLAUDE.md").write_text("Be <b>brief</b>.")
    own = text_of(as_ada_in.get(f"{ONE}/told"))
    assert "You keep the garden." in own
    assert "5 tokens" in own
    assert "CLAUDE.md" not in own
    preset = text_of(as_ada_in.get("/agents/of/default/told"))
    assert "Be &lt;b&gt;brief&lt;/b&gt;." in preset


def test_who_only_looks_changes_nothing(enter: Enter, vi: User, file: Path) -> None:
    page = enter(vi)
    assert "Edit" not in text_of(page.get(ONE))
    assert "Start a chat" not in text_of(page.get(ONE))
    assert page.post(f"{ONE}/edit", {"content": "---\nname: x\n---\n", "digest": ""}).status_code == 403
    page.post(f"{ONE}/delete")
    assert file.read_text() == GARDENER


def test_cy_sees_none_of_it(enter: Enter, cy: User, as_cy: Caller, file: Path) -> None:
    page = enter(cy)
    for where in ("/agents", ONE, f"{ONE}/told", f"{ONE}/edit", "/agents/new"):
        assert page.get(f"{where}?workspace=default").status_code == 404
    for where in (f"{ONE}/accept", f"{ONE}/delete"):
        assert page.post(f"{where}?workspace=default").status_code == 404
    assert file.exists()


def test_the_console_shows_what_waits_and_its_owner_accepts_it_there(
    as_ada_in: Client, enter: Enter, ben: User, file: Path
) -> None:
    as_ada_in.get("/agents")
    listed = as_ada_in.get("/admin/agents_app/agentrights/")
    assert "spawn" in text_of(listed)
    form = {"action": "accept", "_selected_action": [AgentRights.objects.get(slug="gardener").pk]}
    User.objects.filter(pk=ben.pk).update(is_staff=True, is_superuser=True)  # and no owner of the workspace
    refused = enter(ben).post("/admin/agents_app/agentrights/", form, follow=True)
    assert "Only an owner of this workspace" in text_of(refused)
    as_ada_in.post("/admin/agents_app/agentrights/", form)
    assert as_ada_in.get(ONE).context["agent"].pending == []


def test_nobody_gets_in(client: Client, file: Path, workspace: object) -> None:
    for where in ("/agents", ONE, f"{ONE}/told", f"{ONE}/edit", "/agents/new", f"{ONE}/accept"):
        assert client.get(where)["Location"].startswith("/signin")
