"""What the server writes in the place of an agent: exactly this, exactly there, all of it or nothing."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from agents_app.carrying import carrier, edits
from agents_app.carrying.carrier import Carrier
from agents_app.sandboxes import placeholders
from agents_app.sandboxes.base import MASK, READ_ONLY, READ_WRITE
from permissions_app.gate import Carried
from permissions_app.rules.tools import ToolCall


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    (tmp_path / "vault/Plans").mkdir(parents=True)
    (tmp_path / "vault/Plans/CLAUDE.md").write_text("Prune in May.\nPick in May.\n")
    (tmp_path / "vault/Plans/Pears.md").write_text("Pears.\n")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/CLAUDE.md").write_text("theirs")
    return tmp_path / "vault"


def carry(vault: Path, tool: str, name: str = "Plans/CLAUDE.md", **given: Any) -> Carried:
    call = ToolCall("t", tool, {"file_path": "as the agent says it", **given})
    return Carrier(vault, lambda place: READ_ONLY).carry_out(call, vault / name)


def edit(old: Any, new: Any, **more: Any) -> dict[str, Any]:
    return {"old_string": old, "new_string": new, **more}


def steering(vault: Path) -> str:
    return (vault / "Plans/CLAUDE.md").read_text()


def test_a_file_is_written_and_the_agent_is_told_not_to_do_it_again(vault: Path) -> None:
    carried = carry(vault, "Write", content="New.")
    assert steering(vault) == "New."
    assert not carried.is_error
    assert carried.text.startswith(
        "Done: Parachute wrote Plans/CLAUDE.md for you, because the wall keeps it read-only. "
        "Do not write it again."
    )


def test_a_new_file_gets_its_folders(vault: Path) -> None:
    assert not carry(vault, "Write", "a/b/CLAUDE.md", content="New.").is_error
    assert (vault / "a/b/CLAUDE.md").read_text() == "New."


def test_a_control_file_stays_the_file_on_which_walls_are_mounted(vault: Path) -> None:
    path = vault / "Plans/CLAUDE.md"
    path.chmod(0o640)
    before = path.stat()
    carry(vault, "Write", content="x")
    after = path.stat()
    assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode)


def test_any_other_is_replaced_as_a_whole_and_keeps_its_mode(vault: Path) -> None:
    path = vault / "Plans/Pears.md"
    path.chmod(0o640)
    with path.open() as reader:
        carry(vault, "Write", "Plans/Pears.md", content="x")
        assert reader.read() == "Pears.\n"
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("x", 0o640)
    assert sorted(os.listdir(vault / "Plans")) == ["CLAUDE.md", "Pears.md"]


class TestEdits:
    def test_the_one_place_is_changed(self, vault: Path) -> None:
        carry(vault, "Edit", **edit("Pick in May", "Pick in June"))
        assert steering(vault) == "Prune in May.\nPick in June.\n"

    def test_all_places_where_it_says_so(self, vault: Path) -> None:
        carry(vault, "Edit", **edit("May", "June", replace_all=True))
        assert steering(vault) == "Prune in June.\nPick in June.\n"

    def test_two_are_made_in_order(self, vault: Path) -> None:
        carry(vault, "MultiEdit", edits=[edit("Prune", "Cut"), edit("Cut in", "Cut back in")])
        assert steering(vault).startswith("Cut back in May.")

    def test_an_empty_text_makes_a_new_file(self, vault: Path) -> None:
        carry(vault, "Edit", "AGENTS.md", **edit("", "New."))
        assert (vault / "AGENTS.md").read_text() == "New."

    def test_lines_that_end_as_on_windows_go_on_to(self, vault: Path) -> None:
        (vault / "Plans/CLAUDE.md").write_bytes(b"a\r\nb\r\n")
        carry(vault, "Edit", **edit("a\nb", "a\nc"))
        assert (vault / "Plans/CLAUDE.md").read_bytes() == b"a\r\nc\r\n"

    @pytest.mark.parametrize(
        ("tool", "given", "why"),
        [
            ("Edit", edit("May", "June"), "occurs 2 times"),
            ("Edit", edit("May", "June", replace_all="yes"), "occurs 2 times"),
            ("Edit", edit("July", "June"), edits.NOT_FOUND),
            ("Edit", edit("", "June"), edits.NOT_FOUND),
            ("Edit", edit("May", "May"), edits.UNCHANGED),
            ("Edit", edit(1, "May"), edits.BROKEN),
            ("Edit", edit("Pick in May", "\ud800"), edits.NOT_TEXT),
            ("MultiEdit", {"edits": [edit("Prune", "Cut"), edit("July", "x")]}, edits.NOT_FOUND),
            ("MultiEdit", {"edits": []}, edits.BROKEN),
            ("MultiEdit", {"edits": ["x"]}, edits.BROKEN),
            ("Write", {}, edits.BROKEN),
            ("Write", {"content": "x" * (edits.LARGEST + 1)}, edits.TOO_LARGE),
            ("Edit", edit("May", "x" * edits.LARGEST, replace_all=True), edits.TOO_LARGE),
            ("NotebookEdit", {"new_source": "x"}, carrier.NOT_HERE),
        ],
        ids=range(14),
    )
    def test_what_cannot_be_done_changes_nothing_and_says_why(
        self, vault: Path, tool: str, given: dict[str, Any], why: str
    ) -> None:
        before = steering(vault)
        carried = carry(vault, tool, **given)
        assert carried.is_error
        assert why in carried.text
        assert steering(vault) == before


class TestNothingElseIsTouched:
    def refused(self, vault: Path, name: str, *tools: str) -> None:
        given = {"content": "x", **edit("theirs", "x")}
        for tool in tools or ("Write", "Edit"):
            assert carry(vault, tool, name, **given).is_error
        assert (vault.parent / "outside/CLAUDE.md").read_text() == "theirs"
        assert os.listdir(vault.parent / "outside") == ["CLAUDE.md"]

    def test_where_a_link_took_the_place_of_the_file(self, vault: Path) -> None:
        (vault / "AGENTS.md").symlink_to(vault.parent / "outside/CLAUDE.md")
        self.refused(vault, "AGENTS.md")

    def test_where_a_link_took_the_place_of_a_folder(self, vault: Path) -> None:
        (vault / "Away").symlink_to(vault.parent / "outside")
        self.refused(vault, "Away/CLAUDE.md")
        self.refused(vault, "Away/new/CLAUDE.md", "Write")

    def test_where_the_link_goes_to_nothing(self, vault: Path) -> None:
        (vault / "AGENTS.md").symlink_to(vault.parent / "outside/new")
        self.refused(vault, "AGENTS.md")

    def test_where_a_fifo_lies(self, vault: Path) -> None:
        os.mkfifo(vault / "AGENTS.md")
        self.refused(vault, "AGENTS.md")

    def test_where_a_folder_is_in_the_way(self, vault: Path) -> None:
        (vault / "AGENTS.md").mkdir()
        self.refused(vault, "AGENTS.md")

    def test_where_a_file_is_in_the_way(self, vault: Path) -> None:
        self.refused(vault, "Plans/Pears.md/CLAUDE.md")

    def test_where_a_folder_holds_the_name_for_walls(self, vault: Path) -> None:
        """A file in its place would lie open behind each of them."""
        (vault / ".git").write_text("gitdir: elsewhere")
        let_go = placeholders.hold(vault, vault, vault.parent / "locks")
        self.refused(vault, ".mcp.json")
        let_go()

    def test_where_the_file_has_a_second_name(self, vault: Path) -> None:
        os.link(vault / "Plans/Pears.md", vault / "AGENTS.md")
        self.refused(vault, "AGENTS.md")
        assert (vault / "Plans/Pears.md").read_text() == "Pears.\n"

    def test_where_it_is_no_text(self, vault: Path) -> None:
        (vault / "AGENTS.md").write_bytes(b"\xff\xfe")
        self.refused(vault, "AGENTS.md", "Edit")

    def test_where_it_lies_outside(self, vault: Path) -> None:
        carrier = Carrier(vault, lambda place: READ_ONLY)
        call = ToolCall("t", "Write", {"content": "x"})
        assert not carrier.wants(call, vault.parent / "outside/CLAUDE.md", is_approved=True)


@pytest.mark.parametrize("name", ["Plans/CLAUDE.md", "Plans/Pears.md"])
def test_on_a_full_disk_the_old_text_stays(vault: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = (vault / name).read_text()
    pwrite, rename = os.pwrite, os.rename

    def full(*given: Any, **more: Any) -> None:
        monkeypatch.setattr(os, "pwrite", pwrite)
        monkeypatch.setattr(os, "rename", rename)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    monkeypatch.setattr(os, "rename", full)
    carried = carry(vault, "Write", name, content="x")
    assert "The disk is full." in carried.text
    assert (vault / name).read_text() == before


def test_what_the_wall_leaves_open_is_the_agents_own_unless_a_person_allowed_it(vault: Path) -> None:
    carrier = Carrier(vault, lambda place: READ_WRITE)
    write, read, notebook = (ToolCall("t", name, {}) for name in ("Write", "Read", "NotebookEdit"))
    place = vault / "Plans/Pears.md"
    assert not carrier.wants(write, place, is_approved=False)
    assert carrier.wants(write, place, is_approved=True)
    assert not carrier.wants(notebook, place, is_approved=True)
    assert not carrier.wants(read, place, is_approved=True)


@pytest.mark.parametrize("is_approved", [False, True])
def test_what_the_wall_hides_nobody_writes(vault: Path, is_approved: bool) -> None:
    """It would lie there as a new file, and no mask on it."""
    write = ToolCall("t", "Edit", {})
    assert not Carrier(vault, lambda place: MASK).wants(write, vault / "prod", is_approved=is_approved)
