"""What agents behind a wall see of /etc."""

import os
import shutil
from pathlib import Path

import pytest

from agents_app.sandboxes import etc_copy
from agents_app.sandboxes.base import CannotConfine, Launch
from agents_app.sandboxes.bubblewrap import Bubblewrap


@pytest.fixture
def etc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine's."""
    etc = tmp_path / "etc"
    (etc / "ssl/certs").mkdir(parents=True)
    (etc / "ssl/private").mkdir()
    for name in (
        "shadow",
        "passwd",
        "services",
        "ssl/certs/all.crt",
        "ssl/private/key.pem",
        "ssl/openssl.cnf",
    ):
        (etc / name).write_text(f"the machine's {name}\n")
    (etc / "ssl/certs/one.pem").symlink_to("/usr/share/one.crt")
    (etc / "localtime").symlink_to("/usr/share/zoneinfo/Etc/UTC")
    monkeypatch.setattr(etc_copy, "ETC", etc)
    return etc


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    return tmp_path / "walls"


def test_it_is_what_is_harmless_and_our_own_names(etc: Path, kept: Path) -> None:
    copy = etc_copy.current(kept)
    files = {str(path.relative_to(copy)) for path in copy.rglob("*") if not path.is_dir()}
    theirs = {"services", "ssl/certs/all.crt", "ssl/certs/one.pem", "ssl/openssl.cnf", "localtime"}
    assert files == theirs | {path.name for path in etc_copy.OURS.iterdir()}
    assert "machine" not in (copy / "passwd").read_text()
    assert (copy / "ssl/certs/all.crt").read_text() == "the machine's ssl/certs/all.crt\n"
    links = {name: str((copy / name).readlink()) for name in ("localtime", "ssl/certs/one.pem")}
    assert links == {"localtime": "/usr/share/zoneinfo/Etc/UTC", "ssl/certs/one.pem": "/usr/share/one.crt"}


def test_it_is_made_once(etc: Path, kept: Path) -> None:
    first = etc_copy.current(kept)
    (first / "services").write_text("the same still\n")
    assert etc_copy.current(kept) == first
    assert (first / "services").read_text() == "the same still\n"
    assert list(kept.iterdir()) == [first]


@pytest.mark.parametrize("name", ["services", "ssl/certs/all.crt"])
def test_what_was_installed_since_is_in_it(etc: Path, kept: Path, name: str) -> None:
    first = etc_copy.current(kept)
    (etc / "new").write_text("of today\n")
    (etc / "new").rename(etc / name)
    assert (etc_copy.current(kept) / name).read_text() == "of today\n"
    assert first.is_dir()  # walls that stand show it


def test_one_that_nobody_needs_any_more_is_removed(etc: Path, kept: Path) -> None:
    old, begun = etc_copy.current(kept), kept / f"{etc_copy.BEING_MADE}x"
    begun.mkdir()
    (etc / "services").write_text("of today, and longer\n")
    newest = etc_copy.current(kept)
    etc_copy.remove_old(kept)
    assert old.is_dir()
    for each in (old, begun):
        os.utime(each, (0, 0))
    etc_copy.remove_old(kept)
    assert list(kept.iterdir()) == [newest]


def test_what_cannot_be_read_is_left_out_and_said(
    etc: Path, kept: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def closed(source: object, *given: object, **more: object) -> None:
        raise PermissionError(13, "Permission denied", str(source))

    monkeypatch.setattr(shutil, "copyfile", closed)
    copy = etc_copy.current(kept)
    assert (copy / "ssl/certs").is_dir() and not (copy / "services").exists()
    assert f"Agents behind a wall do not see all of {etc / 'services'}" in caplog.text


def test_where_no_copy_can_be_kept_no_wall_is_built(etc: Path, tmp_path: Path, vault: Path) -> None:
    (tmp_path / "no folder").write_text("")
    wall = Bubblewrap(kept=tmp_path / "no folder")
    with pytest.raises(CannotConfine, match="/etc could not be copied"):
        wall.confine(Launch(("/bin/true",), {}, vault, vault))
    assert "/etc could not be copied" in (wall.unavailable() or "")


def test_a_vault_in_etc_is_refused(vault: Path) -> None:
    folder = Path("/etc/ssl")
    with pytest.raises(CannotConfine, match="/etc/ssl lies in /etc"):
        Bubblewrap().confine(Launch(("/bin/true",), {}, folder, folder))


def test_what_is_hidden_in_etc_is_hidden_already(vault: Path) -> None:
    confined = Bubblewrap().confine(Launch(("/bin/true",), {}, vault, vault, masked=(Path("/etc/ssl"),)))
    assert "/etc/ssl" not in confined.argv
