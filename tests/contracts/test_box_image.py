"""The image of the read-only box: what is in it, and how its recipe finds a base. The recipe itself runs,
with a real engine, whenever there is no image of it yet (tests/engines/image.py)."""

import shutil
import subprocess
from pathlib import Path

import pytest

from agents_app.sandboxes.container_engine import Engine
from tests.engines.fixtures import Engines
from tests.engines.image import NAME, RECIPE, box_image
from tests.engines.missing import BrokenRecipe, NotTested

LOGS = 'echo "$(basename "$0") $*" >> "$(dirname "$0")/said"'
NEEDED = ("bash", "env", "dirname", "basename", "cat", "awk")


@pytest.mark.depth
def test_it_has_the_tools_and_nothing_that_makes_somebody_else(engines: Engines) -> None:
    engine = engines("docker").engine
    tools = [f"/usr/bin/{name}" for name in ("bash", "git", "jq", "python3", "rg")]
    script = f"ls {' '.join(tools)}; find / -xdev -perm /6000 -type f"
    done = engine.run("run", "--rm", "--network", "none", engine.image, "sh", "-c", script)
    assert done.stdout.decode().split() == tools


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """The only ones that the recipe finds; the engine's cannot fetch a base."""
    for name in NEEDED:
        (tmp_path / name).symlink_to(str(shutil.which(name)))
    program(tmp_path / "docker", f'{LOGS}; case "$*" in *BASE=*|import*|rmi*) cat;; *) exit 1;; esac')
    return tmp_path


def program(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def build(programs: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        (RECIPE / "build", "box:1"),
        env={"PATH": str(programs)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def said(programs: Path) -> list[str]:
    return (programs / "said").read_text().splitlines()


def test_where_the_base_can_be_fetched_it_is_built_on_that(programs: Path) -> None:
    program(programs / "docker", LOGS)
    assert build(programs).returncode == 0
    assert said(programs) == [f"docker build --tag box:1 {RECIPE}"]


def test_elsewhere_on_one_that_is_made_of_packages_and_goes_again(programs: Path) -> None:
    program(programs / "mmdebstrap", LOGS)
    assert build(programs).returncode == 0
    first, *rest = said(programs)
    assert first == f"docker build --tag box:1 {RECIPE}"
    assert sorted(rest[:2])[0] == "docker import - box:1-base"
    assert rest[2:] == [
        f"docker build --network host --build-arg BASE=box:1-base --tag box:1 {RECIPE}",
        "docker rmi box:1-base",
    ]


def test_without_what_makes_one_it_is_said_what_to_install(programs: Path) -> None:
    done = build(programs)
    assert done.returncode == 1
    assert "apt-get install mmdebstrap" in done.stderr
    assert said(programs) == [f"docker build --tag box:1 {RECIPE}"]


class TestWhereThereIsNone:
    """The tests that need the image are skipped where it cannot be made, and fail where it could be."""

    @pytest.fixture(autouse=True)
    def _keeps_nothing(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "kept"))

    def bring(self, programs: Path) -> None:
        with box_image(Engine("docker", NAME, "tests", environment={"PATH": str(programs)})):
            pass

    def test_without_a_container_that_takes_packages_it_is_not_tested(self, programs: Path) -> None:
        with pytest.raises(NotTested, match="apt-get install mmdebstrap"):
            self.bring(programs)

    def test_with_one_a_recipe_that_makes_none_is_broken(self, programs: Path) -> None:
        program(programs / "docker", 'case "$*" in *apt-get*update) ;; *) exit 1;; esac')
        with pytest.raises(BrokenRecipe, match="makes no image"):
            self.bring(programs)

    def test_with_one_on_a_base_that_is_made_it_is_broken_too(self, programs: Path) -> None:
        program(programs / "docker", 'case "$*" in *host*apt-get*update|import*) ;; *) exit 1;; esac')
        program(programs / "mmdebstrap", "true")
        with pytest.raises(BrokenRecipe, match="makes no image"):
            self.bring(programs)

    def test_with_one_an_image_that_does_not_run_is_broken(self, programs: Path) -> None:
        program(programs / "docker", 'case "$*" in build*|*apt-get*update) ;; *) exit 1;; esac')
        with pytest.raises(BrokenRecipe, match="runs no container"):
            self.bring(programs)
