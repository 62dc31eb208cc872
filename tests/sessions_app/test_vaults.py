"""What is told of a folder before it becomes a vault."""

import os
from pathlib import Path

import pytest

from sessions_app.files import vaults
from sessions_app.files.folders import remove_all
from sessions_app.files.vaults import notes_in
from tests.plain_user import dig


def test_notes_are_counted_but_none_in_hidden_folders(tmp_path: Path) -> None:
    for path in ("a.md", "deep/down/b.md", "deep/c.txt", ".trash/d.md"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    assert notes_in(tmp_path) == (2, True)


def test_a_folder_too_big_to_count_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vaults, "MOST_ENTRIES", 2)
    for name in ("a.md", "b.md", "c.md"):
        (tmp_path / name).touch()
    assert notes_in(tmp_path) == (3, False)


def test_a_folder_too_deep_to_count_says_so(tmp_path: Path) -> None:
    (tmp_path / "a.md").touch()
    (tmp_path / "deep").mkdir()
    dig(tmp_path / "deep", 1_500)
    assert notes_in(tmp_path) == (1, False)
    remove_all(tmp_path / "deep")
    assert os.listdir(tmp_path) == ["a.md"]
