"""Where a wall's control group is made, on systems of either version."""

from pathlib import Path

import pytest

from agents_app.sandboxes.control_groups import groups_for
from agents_app.sandboxes.limits import Limits


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "system.slice/parachute.service").mkdir(parents=True)
    (tmp_path / "cgroup.controllers").write_text("cpu memory pids\n")
    (tmp_path / "system.slice/cgroup.subtree_control").write_text("memory pids\n")
    (tmp_path / "system.slice/parachute.service/cgroup.subtree_control").write_text("\n")
    return tmp_path


def own(folder: Path, *lines: str) -> Path:
    (folder / "own").write_text("".join(f"{line}\n" for line in lines))
    return folder / "own"


def test_beside_a_service_that_may_have_none_below_it(root: Path) -> None:
    (group,) = groups_for("m", Limits(processes=7), root, own(root, "0::/system.slice/parachute.service"))
    assert group.folder == root / "system.slice/parachute-m"
    assert (group.files["pids.max"], "memory.max" in group.files) == ("7", True)


def test_none_where_the_system_gives_none(root: Path) -> None:
    (root / "system.slice/cgroup.subtree_control").write_text("cpu\n")
    assert groups_for("m", Limits(), root, own(root, "0::/system.slice/parachute.service")) == ()
    assert groups_for("", Limits(), root, own(root, "0::/")) == ()


def test_below_its_own_in_the_older_version(tmp_path: Path) -> None:
    (tmp_path / "memory/service").mkdir(parents=True)
    (tmp_path / "pids").mkdir()
    groups = groups_for("m", Limits(), tmp_path, own(tmp_path, "8:pids:/", "4:memory:/service", "0::/"))
    assert [each.folder for each in groups] == [
        tmp_path / "pids/parachute-m",
        tmp_path / "memory/service/parachute-m",
    ]
