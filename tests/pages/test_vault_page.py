"""The vault's page: a folder beside a note, links between notes, and who gets in."""

import os
import re
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import Client

from parachute_site.pages.markup import markdown
from parachute_site.pages.vault import Links
from sessions_app.search import indexing
from tests.pages.browsing import Enter

pytestmark = pytest.mark.django_db
VAULT = "/vault/of/default"


@pytest.fixture
def quinces(vault: Path) -> None:
    (vault / "Garden").mkdir()
    (vault / "Garden/Quinces.md").write_text(
        "---\ntags: [fruit]\n---\n# Quinces\n\nSee [[Welcome]]. <script>x</script>"
    )


def test_a_note_is_read_beside_its_folder_and_asked_about(as_ada_in: Client, quinces: None) -> None:
    page = as_ada_in.get(f"{VAULT}?path=Garden/Quinces.md").content.decode()
    assert f'<a href="{VAULT}/named?name=Welcome">Welcome</a>' in page
    assert '<h3 id="at-quinces">Quinces</h3>' in page
    assert "tags: [fruit]" in page
    assert "<script>x" not in page
    assert "/?workspace=default&amp;say=About+Garden%2FQuinces.md%3A+" in page
    raw = as_ada_in.get(f"{VAULT}?path=Garden/Quinces.md&raw").content.decode()
    assert "# Quinces" in raw
    begun = as_ada_in.get("/?workspace=default&say=About+Garden%2FQuinces.md%3A+").content.decode()
    assert ">About Garden/Quinces.md: </textarea>" in begun


def test_a_name_leads_to_its_note_and_else_to_a_search(as_ada_in: Client, quinces: None) -> None:
    indexing.index_changed()
    assert as_ada_in.get(f"{VAULT}/named?name=Quinces")["Location"] == f"{VAULT}?path=Garden/Quinces.md"
    assert as_ada_in.get(f"{VAULT}/named?name=Medlars")["Location"] == "/search?q=Medlars"
    assert as_ada_in.get("/vault")["Location"] == VAULT


def test_a_chat_of_the_program_before_is_gone_on_with(as_ada_in: Client, quinces: None, vault: Path) -> None:
    (vault / "agent-chats").mkdir()
    (vault / "agent-chats/pears.md").write_text("old" * 40_000 + "\n### Assistant\n\nPick <them> late.")
    go_on = "/?workspace=default&amp;prior=agent-chats%2Fpears.md"
    assert f'href="{go_on}"' in as_ada_in.get(f"{VAULT}?path=agent-chats/pears.md").content.decode()
    assert "Go on with" not in as_ada_in.get(f"{VAULT}?path=Garden/Quinces.md").content.decode()
    begun = as_ada_in.get(go_on.replace("&amp;", "&")).content.decode()
    (prior,) = re.findall(r'<template id="prior">(.*?)</template>', begun, re.DOTALL)
    assert prior.endswith("Pick &lt;them&gt; late.") and len(prior) < 100_100
    for path in ("Garden/Quinces.md", "agent-chats/none.md", "agent-chats/../.env", "%00"):
        assert 'id="prior"' not in as_ada_in.get(f"/?workspace=default&prior={path}").content.decode()


def test_a_link_to_what_is_not_there_says_which_note_has_it_and_offers_the_folder(
    as_ada_in: Client, quinces: None, vault: Path
) -> None:
    def follow(path: str, note: str) -> str:
        answer = as_ada_in.get(
            f"{VAULT}?path={path}", headers={"Referer": f"http://testserver{VAULT}?path={note}"}
        )
        assert answer.status_code == 404
        return str(answer.content.decode())

    (vault / ".env").write_text("KEY=x")
    note = f'<a href="{VAULT}?path=Garden/Quinces.md"><bdi>'
    page = follow("Garden/Beds/Pears.md", "Garden/Quinces.md")
    assert "This note links to it: " + note in page
    assert f'<a class="button" href="{VAULT}?path=Garden">The folder</a>' in page
    assert 'href="/search?q=Pears"' in page
    assert "links to it" not in follow("Pears.md", ".env")
    assert "The folder</a>" in follow("x/" * 2_000, "Garden")


def test_a_paragraph_of_a_note_fills_its_lines_and_breaks_where_it_says_so(
    as_ada_in: Client, vault: Path
) -> None:
    (vault / "Poem.md").write_text("Wrapped by\nan editor.\n\nRoses  \nare red.\n")
    page = as_ada_in.get(f"{VAULT}?path=Poem.md").content.decode()
    assert "<p>Wrapped by\nan editor.</p>\n<p>Roses<br>\nare red.</p>" in page


@pytest.mark.parametrize("path", ["?path=.env", "?path=../x", "?path=%00", "?path=nothing"])
def test_what_is_not_there_is_not_found(as_ada_in: Client, vault: Path, path: str) -> None:
    (vault / ".env").write_text("KEY=x")
    assert as_ada_in.get(VAULT + path).status_code == 404


def test_who_is_not_in_it_does_not_get_in_and_who_reads_drops_nothing(
    enter: Enter, cy: User, vi: User, as_ada_in: Client, browser: Client
) -> None:
    for path in (VAULT, f"{VAULT}/named?name=Welcome"):
        assert enter(cy).get(path).status_code == 404
        assert browser.get(path).status_code == 302
    assert 'id="capture"' in as_ada_in.get(f"{VAULT}?path=captures").content.decode()
    assert 'id="capture"' not in enter(vi).get(f"{VAULT}?path=captures").content.decode()


@pytest.mark.parametrize(
    ("written", "leads_to"),
    [
        ("[x](Pond.md)", "/vault/of/w?path=Garden/Pond.md"),
        ("[x](../Welcome.md#the-top)", "/vault/of/w?path=Welcome.md#at-the-top"),
        ("[[The pond#Its fish, and frogs|x]]", "/vault/of/w/named?name=The+pond#at-its-fish-and-frogs"),
        ("[x](/Daily/x.md)", "/vault/of/w?path=Daily/x.md"),
        ("[x](The%20pond.md)", "/vault/of/w?path=Garden/The%20pond.md"),
        ("[x](<The pond.md>)", "/vault/of/w?path=Garden/The%20pond.md"),
        ("[[The pond|x]]", "/vault/of/w/named?name=The+pond"),
        ("![[The pond|x]]", "/vault/of/w/named?name=The+pond"),
    ],
)
def test_links_of_a_note_lead_to_notes(written: str, leads_to: str) -> None:
    assert markdown(written, links=Links("w", "Garden")) == f'<p><a href="{leads_to}">x</a></p>\n'


@pytest.mark.parametrize(
    "written", ["[x](../../out.md)", "[x](javascript:alert(1))", "[x](//elsewhere.example/x)", "[x](#here)"]
)
def test_what_leads_out_of_the_vault_leads_nowhere(written: str) -> None:
    assert "href" not in markdown(written, links=Links("w", "Garden"))


PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("![a pear](pear.png)", 'src="/api/workspaces/w/vault/file?path=Garden/pear.png" alt="a pear"'),
        ("![](/pear.png)", 'src="/api/workspaces/w/vault/file?path=pear.png" alt=""'),
        ("![[pear.PNG|300]]", 'src="/vault/of/w/named?name=pear.PNG&amp;folder=Garden" alt=""'),
        ("![[pear.png|a pear]]", 'src="/vault/of/w/named?name=pear.png&amp;folder=Garden" alt="a pear"'),
    ],
)
def test_a_picture_of_the_vault_is_shown(written: str, shown: str) -> None:
    found = markdown(written, links=Links("w", "Garden"))
    assert f"<img {shown}" in found


@pytest.mark.parametrize(
    "written",
    [
        "![x](https://elsewhere.example/x.png)",
        "![x](//elsewhere.example/x.png)",
        "![x](../../x.png)",
        "![x](data:image/png;base64,AA)",
        '<img src="https://elsewhere.example/x.png">',
        '![x" src="https://elsewhere.example/x.png](javascript:x)',
    ],
)
def test_no_picture_is_loaded_from_elsewhere(written: str) -> None:
    found = markdown(written, links=Links("w", "Garden"))
    assert re.findall(r'<img src="(?!/api/workspaces/w/)', found) == []
    assert not re.search(r'<[^>]*src="[^"]*elsewhere', found)


def test_a_picture_is_found_beside_its_note_or_above_and_has_a_page(
    as_ada_in: Client, quinces: None, vault: Path
) -> None:
    (vault / "pear.png").write_bytes(PNG)
    led = as_ada_in.get(f"{VAULT}/named?name=pear.png&folder=Garden")["Location"]
    assert led == "/api/workspaces/default/vault/file?path=pear.png"
    assert f'<img src="{led}" alt="pear.png">' in as_ada_in.get(f"{VAULT}?path=pear.png").content.decode()
    nowhere = as_ada_in.get(f"{VAULT}/named?name=none.png&folder={'x/' * 2_000}")["Location"]
    assert nowhere == "/search?q=none.png"


def test_a_link_leads_to_a_heading_of_its_note_and_in_a_chat_nowhere() -> None:
    text = "## Fish, & *frogs*\n\n[x](#fish--frogs) [[#Fish, & frogs|y]]"
    place = "at-fish--frogs"
    found = markdown(text, links=Links("w", is_note=True))
    assert f'<h4 id="{place}">' in found
    assert f'<a href="#{place}">x</a> <a href="#{place}">y</a>' in found
    assert "at-" not in markdown("## Fish\n\n[x](#fish)", links=Links("w"))


def test_in_code_nothing_is_a_link_and_a_name_cannot_break_out_of_one() -> None:
    assert "href" not in markdown("`[[Pond]]`\n\n```\n[[Pond]]\n```", links=Links("w"))
    broken = markdown('[[x" onclick="y]] [x](a"b.md)', links=Links("w"))
    tags = re.findall(r"<a [^>]*>", broken)
    assert [re.fullmatch(r'<a href="[^"]*">', tag) is not None for tag in tags] == [True, True]


def test_names_that_are_no_text_keep_no_page_from_being_shown(as_ada_in: Client, vault: Path) -> None:
    (vault / ".mcp.json").write_text('{"a\\ud800": {"command": "true"}}')
    skill = vault / ".claude/skills/pruning"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: pruning\ndescription: When.\n---\n")
    (skill / os.fsdecode(b"caf\xe9.md")).write_text("x")
    for page in ("/tools", "/tools/skills/of/pruning"):
        assert as_ada_in.get(page).status_code == 200
