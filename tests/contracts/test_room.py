"""What a session keeps in its own folder is bounded, with the real CLI behind each wall."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from agents_app.model.demo.wire import say
from agents_app.runtimes.base import RunFailed
from agents_app.runtimes.claude import quota
from agents_app.runtimes.claude.quota import DEEPEST, Quota, is_over
from agents_app.runtimes.claude.runtime import ClaudeRuntime
from agents_app.runtimes.events import Ended
from agents_app.sandboxes import ENGINES
from agents_app.sandboxes.limits import MB
from permissions_app.rules.setting import Trust
from sessions_app.history import transcripts
from tests.contracts.conftest import Sandboxes
from tests.contracts.stage import Stage, door_to
from tests.depth import few_of
from tests.plain_user import dig, folder_of_a_plain_user
from tests.scripted_model import ScriptedModel, calls

MOST = 20 * MB
FILLS = 'head -c 30000000 /dev/zero > "${TMPDIR:-$CLAUDE_CONFIG_DIR}/large"; sleep 60; echo survived'


@pytest.fixture(params=few_of(["bubblewrap", *ENGINES], "bubblewrap"))
async def stage(
    request: pytest.FixtureRequest, sandboxes: Sandboxes, vault: Path, settings: Any, monkeypatch: Any
) -> AsyncIterator[Stage]:
    monkeypatch.setattr(quota, "LOOKS_EVERY", 0.05)
    settings.PARACHUTE_LIMITS = replace(settings.PARACHUTE_LIMITS, scratch=MOST)
    trust = Trust.SANDBOXED if request.param in ENGINES else Trust.VAULT
    with ScriptedModel() as model:
        model.script("keep a little", [say("Kept.")])
        model.script("fill it", [calls("Bash", command=FILLS)])
        model.script("go on", [say("I go on.")])
        async with door_to(model.url) as door:
            runtime = ClaudeRuntime(door)
            yield Stage(runtime, sandboxes(request.param), vault, Path(settings.PARACHUTE_HOME), trust)
            await runtime.close()


async def test_who_fills_it_is_ended_and_goes_on_with_an_empty_one(stage: Stage) -> None:
    await stage.play("keep a little")
    with pytest.raises(RunFailed) as failed:
        await stage.play("fill it")
    assert (failed.value.code, "20 MB" in failed.value.message) == ("scratch_full", True)
    assert not is_over(stage.config, MOST // 20)
    heard = await stage.play("go on", resume=True)
    assert isinstance(heard[-1], Ended)
    assert heard[-1].response == "I go on."
    assert b"keep a little" in (transcripts.raw(stage.session_id) or b"")


def test_what_is_counted_is_what_it_takes_on_the_disk(tmp_path: Path) -> None:
    with (tmp_path / "with a hole").open("wb") as file:
        file.truncate(50 * MB)
    (tmp_path / "link").symlink_to("/usr")
    assert not is_over(tmp_path, MB)
    (tmp_path / "full").write_bytes(b"x" * 2 * MB)
    assert is_over(tmp_path, MB)


def test_a_folder_that_is_too_deep_counts_as_full(tmp_path: Path) -> None:
    (tmp_path / "/".join("d" * (DEEPEST + 1))).mkdir(parents=True)
    assert is_over(tmp_path, MB)


def test_so_do_too_many_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quota, "MOST_ENTRIES", 9)
    for number in range(10):
        (tmp_path / str(number)).touch()
    assert is_over(tmp_path, MB)


@pytest.mark.parametrize("mode", [0, 0o111, 0o444])
@pytest.mark.parametrize("closed", [".", "projects", "projects/vault", "scratch", "scratch/inner"])
def test_what_it_closed_to_us_counts_as_full_and_is_emptied(closed: str, mode: int) -> None:
    session = uuid4()
    with folder_of_a_plain_user() as folder:
        for inner in ("own/projects/vault", "own/scratch/inner"):
            (folder / inner).mkdir(parents=True)
        own = folder / "own"
        for file in (f"projects/vault/{session}.jsonl", "scratch/inner/long"):
            (own / file).write_text("x")
        (own / closed).chmod(mode)
        assert is_over(own, MOST)
        Quota(own, session, MOST).empty()
        assert not is_over(own, MOST)
        left = [str(path.relative_to(own)) for path in own.rglob("*") if path.is_file()]
        assert left == [f"projects/vault/{session}.jsonl"]


def test_one_that_is_deeper_than_any_path_is_emptied(tmp_path: Path) -> None:
    dig(tmp_path, 3_000)
    assert is_over(tmp_path, MOST)
    Quota(tmp_path, uuid4(), MOST).empty()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("link", ["projects", "projects/vault", "projects/vault/scratch", "links"])
def test_what_a_link_leads_to_is_not_removed(tmp_path: Path, link: str) -> None:
    (outside := tmp_path / "outside/of/it").mkdir(parents=True)
    (note := outside / "note.md").write_text("Quinces.")
    at = tmp_path / "own" / link
    at.parent.mkdir(parents=True)
    at.symlink_to(tmp_path / "outside")
    Quota(tmp_path / "own", uuid4(), MOST).empty()
    assert note.read_text() == "Quinces."
    assert not at.is_symlink()


def test_of_transcripts_only_its_own_stays(tmp_path: Path) -> None:
    session = uuid4()
    (project := tmp_path / "projects/vault").mkdir(parents=True)
    for name in (f"{session}.jsonl", f"{uuid4()}.jsonl", "large"):
        (project / name).write_text("x")
    Quota(tmp_path, session, MOST).empty()
    assert [path.name for path in project.iterdir()] == [f"{session}.jsonl"]
    Quota(tmp_path, session, 1).empty()
    assert list(project.iterdir()) == []
