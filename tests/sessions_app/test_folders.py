"""The server's own file access: no link is followed, nothing hangs, a file is the old one or the new one."""

import os
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sessions_app.files import folders
from sessions_app.files.folders import Folder, remove_all
from tests.plain_user import acting_as, dig, folder_of_a_plain_user

SOON = 30.0  # seconds, on a busy machine


@pytest.fixture
def inside(tmp_path: Path) -> Path:
    (tmp_path / "inside" / "below").mkdir(parents=True)
    (tmp_path / "inside" / "note.md").write_text("ours")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("secret")
    return tmp_path / "inside"


def open_handles() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_a_file_is_read(inside: Path) -> None:
    with Folder.at(inside) as folder:
        assert folder.read("note.md") == b"ours"


def test_names_are_listed_in_order(inside: Path) -> None:
    with Folder.at(inside) as folder:
        assert folder.names() == ["below", "note.md"]


def test_a_link_is_removed_and_not_what_it_leads_to(inside: Path) -> None:
    (inside / "link").symlink_to(inside.parent / "outside" / "secret")
    with Folder.at(inside) as folder:
        folder.remove("link")
        folder.remove("note.md")
        assert folder.names() == ["below"]
        for elsewhere in ("../outside/secret", ".."):
            with pytest.raises(OSError):
                folder.remove(elsewhere)
    assert (inside.parent / "outside" / "secret").exists()


def test_a_link_is_not_read(inside: Path) -> None:
    (inside / "link").symlink_to(inside.parent / "outside" / "secret")
    with Folder.at(inside) as folder, pytest.raises(OSError):
        folder.read("link")


def test_a_link_is_not_entered(inside: Path) -> None:
    (inside / "link").symlink_to(inside.parent / "outside")
    with Folder.at(inside) as folder, pytest.raises(OSError), folder.below("link"):
        pass


@pytest.mark.parametrize("make", [False, True])
def test_a_link_in_the_middle_is_not_passed(inside: Path, make: bool) -> None:
    (inside / "below" / "link").symlink_to(inside.parent / "outside")
    with Folder.at(inside) as folder, pytest.raises(OSError), folder.below("below", "link", "x", make=make):
        pass
    assert os.listdir(inside.parent / "outside") == ["secret"]


def test_a_dangling_link_makes_no_folder(inside: Path) -> None:
    (inside / "link").symlink_to(inside.parent / "new")
    with Folder.at(inside) as folder, pytest.raises(OSError), folder.below("link", make=True):
        pass
    assert not (inside.parent / "new").exists()


def test_a_folder_that_is_swapped_for_a_link_stays_the_one_that_was_opened(inside: Path) -> None:
    with Folder.at(inside) as folder, folder.below("below") as below:
        (inside / "below").rename(inside / "moved")
        (inside / "below").symlink_to(inside.parent / "outside")
        with pytest.raises(FileNotFoundError):
            below.read("secret")
        below.write("new.md", b"ours")
    assert (inside / "moved" / "new.md").read_bytes() == b"ours"
    assert os.listdir(inside.parent / "outside") == ["secret"]


@pytest.mark.parametrize("name", ["", ".", "..", "../outside/secret", "/etc/passwd", "below/x"])
def test_only_single_names_are_taken(inside: Path, name: str) -> None:
    with Folder.at(inside) as folder:
        for use in (folder.read, lambda it: folder.write(it, b""), lambda it: folder.below(it).__enter__()):
            with pytest.raises(FileNotFoundError):
                use(name)


def test_a_fifo_does_not_hang(inside: Path) -> None:
    os.mkfifo(inside / "fifo")
    with Folder.at(inside) as folder, pytest.raises(FileNotFoundError):
        folder.read("fifo")


def test_what_is_no_file_is_not_read(inside: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(inside)  # the path of a socket must be short
    with socket.socket(socket.AF_UNIX) as own, Folder.at(inside) as folder:
        own.bind("socket")
        for name in ("socket", "below", "missing"):
            with pytest.raises(OSError):
                folder.read(name)


def test_a_file_that_would_fill_the_memory_is_not_read(inside: Path) -> None:
    with (inside / "huge").open("wb") as file:
        file.truncate(folders.LARGEST_FILE + 1)  # it takes no room on the disk
    with Folder.at(inside) as folder, pytest.raises(OSError):
        folder.read("huge")


def test_refusals_leave_no_handle_open(inside: Path) -> None:
    os.mkfifo(inside / "fifo")
    (inside / "link").symlink_to("below")
    before = open_handles()
    for _ in range(10):
        with Folder.at(inside) as folder:
            for name in ("fifo", "below", "link", "missing"):
                with pytest.raises(OSError):
                    folder.read(name)
            with pytest.raises(OSError), folder.below("below", "missing"):
                pass
    assert open_handles() == before


def test_a_file_is_replaced_as_a_whole(inside: Path) -> None:
    with Folder.at(inside) as folder, (inside / "note.md").open() as reader:
        folder.write("note.md", b"new")
        assert reader.read() == "ours"
        assert folder.read("note.md") == b"new"
        assert folder.names() == ["below", "note.md"]


def test_a_write_that_fails_leaves_the_old_file_and_nothing_beside_it(
    inside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("no")

    monkeypatch.setattr(os, "rename", fail)
    with Folder.at(inside) as folder:
        with pytest.raises(OSError, match="no"):
            folder.write("note.md", b"new")
        assert folder.read("note.md") == b"ours"
        assert folder.names() == ["below", "note.md"]


def test_a_write_replaces_a_link_and_not_what_it_points_at(inside: Path) -> None:
    secret = inside.parent / "outside" / "secret"
    (inside / "link").symlink_to(secret)
    os.link(secret, inside / "hard")
    with Folder.at(inside) as folder:
        folder.write("link", b"ours")
        folder.write("hard", b"ours")
    assert secret.read_text() == "secret"
    assert not (inside / "link").is_symlink()


def test_a_folder_in_the_place_of_a_file_is_left(inside: Path) -> None:
    with Folder.at(inside) as folder:
        with pytest.raises(OSError):
            folder.write("below", b"x")
        assert folder.names() == ["below", "note.md"]


def test_folders_are_made_on_the_way(inside: Path) -> None:
    for _ in range(2):
        with Folder.at(inside) as folder, folder.below("a", "b", make=True) as deep:
            deep.write("c", b"x")
    assert (inside / "a" / "b" / "c").read_bytes() == b"x"


def test_what_is_added_replaces_nothing(inside: Path) -> None:
    with Folder.at(inside) as folder:
        assert [folder.add("note.md", b"new"), folder.add("note.md", b"newer")] == ["note-2.md", "note-3.md"]
        assert [folder.read(name) for name in folder.names()[1:]] == [b"new", b"newer", b"ours"]


def test_what_is_added_follows_no_link(inside: Path) -> None:
    (inside / "photo.png").symlink_to(inside.parent / "outside" / "secret")
    (inside / "photo-2.png").symlink_to(inside.parent / "new")
    with Folder.at(inside) as folder:
        assert folder.add("photo.png", b"x") == "photo-3.png"
    assert os.listdir(inside.parent / "outside") == ["secret"]
    assert not (inside.parent / "new").exists()


def test_many_that_add_at_once_get_a_name_each(inside: Path) -> None:
    with Folder.at(inside) as folder, ThreadPoolExecutor(8) as pool:
        names = list(pool.map(lambda n: folder.add("photo.png", b"%d" % n), range(120)))
        assert [folder.read(name) for name in names] == [b"%d" % n for n in range(120)]


def test_an_addition_that_fails_leaves_nothing(inside: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("no")

    monkeypatch.setattr(os, "rename", fail)
    with Folder.at(inside) as folder:
        with pytest.raises(OSError, match="no"):
            folder.add("photo.png", b"x")
        assert folder.names() == ["below", "note.md"]


def test_what_is_gone_is_removed_without_a_word(inside: Path) -> None:
    with Folder.at(inside) as folder:
        for name in ("note.md", "note.md"):
            folder.remove(name)
        with pytest.raises(OSError):
            folder.remove("below")
        assert folder.names() == ["below"]


class TestOverwriting:
    def test_it_stays_the_same_file(self, inside: Path) -> None:
        before = (inside / "note.md").stat().st_ino
        with Folder.at(inside) as folder:
            folder.overwrite("note.md", b"x")
        assert ((inside / "note.md").read_text(), (inside / "note.md").stat().st_ino) == ("x", before)

    def test_what_is_no_file_is_left_alone(self, inside: Path) -> None:
        os.mkfifo(inside / "fifo")
        (inside / "link").symlink_to(inside.parent / "outside" / "secret")
        with Folder.at(inside) as folder:
            for name in ("fifo", "link", "below", "missing"):
                with pytest.raises(OSError):
                    folder.overwrite(name, b"x")
        assert (inside.parent / "outside" / "secret").read_text() == "secret"

    def test_where_it_fails_the_old_content_is_there(
        self, inside: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pwrite = os.pwrite

        def half(handle: int, content: bytes, at: int) -> int:
            if at:
                monkeypatch.setattr(os, "pwrite", pwrite)
                raise OSError("no")
            return pwrite(handle, content[:2], at)

        monkeypatch.setattr(os, "pwrite", half)
        with Folder.at(inside) as folder, pytest.raises(OSError, match="no"):
            folder.overwrite("note.md", b"something longer")
        assert (inside / "note.md").read_text() == "ours"


def test_a_folder_is_removed_with_all_that_is_in_it_and_through_no_link(inside: Path) -> None:
    (inside / "link").symlink_to(inside.parent / "outside")
    (inside / "below/link").symlink_to(inside.parent / "outside")
    os.mkfifo(inside / "below/pipe")
    (inside / "below/note.md").touch()
    remove_all(inside)
    assert [path.name for path in inside.parent.iterdir()] == ["outside"]
    assert (inside.parent / "outside/secret").read_text() == "secret"


def test_two_may_remove_it_at_once(tmp_path: Path) -> None:
    """Who deletes a chat, and the worker whose turn in it ends."""
    with ThreadPoolExecutor(3) as pool:
        for number in range(50):
            for branch in "abcdef":
                (inner := tmp_path / str(number) / branch / "b/c/d/e").mkdir(parents=True)
                (inner / "note.md").touch()
            together = threading.Barrier(3)

            def remove(path: Path = tmp_path / str(number), together: threading.Barrier = together) -> None:
                together.wait(SOON)
                remove_all(path)

            for done in [pool.submit(remove) for _ in range(3)]:
                done.result(SOON)
    assert not list(tmp_path.iterdir())


def test_one_that_is_deeper_than_any_path_is_removed(inside: Path) -> None:
    dig(inside, 3_000)
    handles = open_handles()
    remove_all(inside)
    assert not inside.exists()
    assert open_handles() == handles


@pytest.mark.parametrize("mode", [0, 0o111, 0o444, 0o555])
def test_what_an_agent_closed_to_us_is_removed(mode: int) -> None:
    with folder_of_a_plain_user() as folder:
        (inner := folder / "its/own/folder").mkdir(parents=True)
        (inner / "note.md").touch(mode=0)
        for closed in (inner, inner.parent, folder / "its"):
            closed.chmod(mode)
        remove_all(folder / "its")
        assert list(folder.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="Only root can make what another user cannot remove.")
def test_what_cannot_be_removed_keeps_nobody_from_the_rest() -> None:
    with folder_of_a_plain_user() as folder:
        (theirs := folder / "its/theirs").mkdir(parents=True)
        (folder / "its/own").mkdir()
        (folder / "its/note.md").touch()
        with acting_as(0):
            os.chown(theirs, 0, 0)
            (theirs / "note.md").touch()
        with pytest.raises(PermissionError, match="theirs"):
            remove_all(folder / "its")
        assert [path.name for path in (folder / "its").iterdir()] == ["theirs"]
