"""Skills of a vault: what is told of them, and what of a zip is taken."""

import io
import os
import shutil
import stat
import zipfile
from pathlib import Path
from typing import Any

import pytest

from agents_app.tools.skills import services
from agents_app.tools.skills.found import LARGEST, Unusable, skills_of
from agents_app.tools.skills.given import GivenSkill, write_plugin
from agents_app.tools.skills.unpacking import unpacked
from sessions_app.access.caller import Caller
from sessions_app.access.models import Workspace
from sessions_app.errors import Conflict, Forbidden, Invalid
from sessions_app.threads import in_thread
from tests.agents_app.engine import Engine

pytestmark = pytest.mark.django_db(transaction=True)

TEXT = "---\nname: pruning\ndescription: When to prune.\n---\n\nIn March.\n"


def lay(vault: Path, name: str, text: str = TEXT) -> Path:
    folder = vault / ".claude/skills" / name
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(text.replace("pruning", name))
    return folder


def packed(files: dict[str, str | bytes], by: int = zipfile.ZIP_DEFLATED, **links: str) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", by) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
        for name, target in links.items():
            made = zipfile.ZipInfo(name)
            made.external_attr = (stat.S_IFLNK | 0o777) << 16
            archive.writestr(made, target)
    return held.getvalue()


def spoilt(zipped: bytes) -> bytes:
    at = zipped.index(b"SKILL.md") + len(b"SKILL.md")
    return zipped[:at] + b"\xff" * 8 + zipped[at + 8 :]


def test_each_is_listed_with_its_description_or_what_is_wrong_and_keeps_no_other_from_it(vault: Path) -> None:
    lay(vault, "pruning")
    (lay(vault, "leads-out") / "notes.md").symlink_to("/etc/passwd")
    (lay(vault, "secret") / ".env").write_text("KEY=x")
    lay(vault, "other-name", "---\nname: pruned\ndescription: x\n---\n")
    lay(vault, "silent", "---\nname: silent\n---\n")
    lay(vault, "plain", "No front matter.\n")
    lay(vault, "With Blank")
    os.mkfifo(lay(vault, "pipe") / "x")
    (vault / ".claude/skills/empty").mkdir()
    (vault / ".claude/skills/linked").symlink_to("/etc")
    found = {each.name: each for each in skills_of(vault)}
    assert found.pop("pruning").description == "When to prune."
    said = {
        "leads-out": "link",
        "secret": "secret",
        "other-name": "calls it",
        "silent": "no description",
        "plain": "front matter",
        "With Blank": "small letters",
        "pipe": "special file",
        "empty": "no SKILL.md",
        "linked": "cannot be read",
    }
    assert found.keys() == said.keys()
    assert {name: words in found[name].error for name, words in said.items()} == dict.fromkeys(said, True)


def test_what_the_cli_is_given_has_a_name_a_description_and_no_more_in_front(
    vault: Path, tmp_path: Path
) -> None:
    more = "allowed-tools: Bash\nhooks: {Stop: []}"
    hostile = f"---\nname: pruning\ndescription: 'Cut: \"now\"'\n{more}\n---\nIn March.\n"
    folder = lay(vault, "pruning", hostile)
    (folder / "bin").mkdir()
    (folder / "bin/cut").write_text("#!/bin/sh\n")
    (folder / "bin/cut").chmod(0o755)
    config = tmp_path / "config"
    config.mkdir()
    given = [GivenSkill("pruning", "", ""), GivenSkill("gone", "", "")]
    assert write_plugin(vault, given, config, config / "own/skills")
    made = config / "own/skills/skills/pruning"
    head, body = (made / "SKILL.md").read_text().removeprefix("---\n").split("\n---\n")
    assert head == 'name: pruning\ndescription: "Cut: \\"now\\""'
    assert body.strip() == "In March."
    assert (made / "bin/cut").stat().st_mode & 0o111
    assert not write_plugin(vault, given[1:], config, config / "own/skills")
    assert not (config / "own/skills").exists(), "nothing of the process before is left"
    (tmp_path / "linked").symlink_to(tmp_path)  # as a home that was moved to another disk
    moved = tmp_path / "linked/config"
    assert [write_plugin(vault, given, moved, moved / "own/skills") for _ in range(2)] == [True, True]
    shutil.rmtree(config / "own/skills")
    (config / "own/skills").symlink_to(vault)
    assert write_plugin(vault, given, config, config / "own/skills"), "a link is taken away, and not followed"
    assert (vault / "Welcome.md").exists()
    shutil.rmtree(config / "own")
    (config / "own").symlink_to(vault)
    with pytest.raises(OSError, match="link"):
        write_plugin(vault, given, config, config / "own/skills")


def test_a_zip_is_taken_with_or_without_its_folder(workspace: Workspace, as_ada: Caller, vault: Path) -> None:
    made = services.upload(as_ada, workspace, packed({"SKILL.md": TEXT, "more/form.md": "A form"}))
    assert (made.name, made.files) == ("pruning", ("SKILL.md", "more/form.md"))
    with pytest.raises(Conflict):
        services.upload(as_ada, workspace, packed({"SKILL.md": TEXT}))
    services.switch(as_ada, workspace, "pruning", on=True)
    services.remove(as_ada, workspace, "pruning")
    assert services.listed(workspace) == []
    services.upload(as_ada, workspace, packed({"pruning/SKILL.md": TEXT, "__MACOSX/x": ""}))
    assert [(each.skill.name, each.is_on) for each in services.listed(workspace)] == [("pruning", False)]
    assert os.listdir(vault / ".claude/skills") == ["pruning"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"no zip", "no zip"),
        (packed({"README.md": "x"}), "no SKILL.md"),
        (packed({"SKILL.md": TEXT.replace("name: pruning\n", "")}), "says no name"),
        (packed({"SKILL.md": TEXT}, by=zipfile.ZIP_BZIP2), "plain zip"),
        (spoilt(packed({"SKILL.md": TEXT * 9})), "no zip"),
        (packed({"SKILL.md": TEXT, "../out.md": "x"}), "no path inside"),
        (packed({"SKILL.md": TEXT, "/etc/x": "x"}), "no path inside"),
        (packed({"SKILL.md": TEXT, "a\\..\\x": "x"}), "no path inside"),
        (packed({"SKILL.md": TEXT, "con:": "x"}), "no path inside"),
        (packed({"SKILL.md": TEXT, "con.md": "x"}), "no path inside"),
        (packed({"./SKILL.md": TEXT}), "no plain path"),
        (packed({"SKILL.md": TEXT}, link="/etc/passwd"), "link"),
        (packed({"SKILL.md": TEXT, ".env": "KEY=x"}), "secret"),
        (packed({"SKILL.md": TEXT, "skill.MD": TEXT}), "twice"),
        (packed({"SKILL.md": TEXT, "a/b/c/d/e/f/g/h": "x"}), "deep"),
        (packed({"SKILL.md": TEXT, **{f"{n}.md": "" for n in range(400)}}), "more than 300 files"),
        (packed({"SKILL.md": TEXT, "bomb": b"\0" * (LARGEST + 1)}), "more than 10 MB"),
        (packed({"SKILL.md": TEXT.replace("pruning", "../x")}), "small letters"),
        (packed({"pruning/SKILL.md": TEXT + "x" * 300_000}), "bytes"),
    ],
)
def test_what_climbs_out_leads_elsewhere_or_is_too_much_is_refused_and_leaves_nothing(
    content: bytes, said: str, workspace: Workspace, as_ada: Caller, as_ben: Caller, vault: Path
) -> None:
    with pytest.raises(Invalid, match=said):
        services.upload(as_ada, workspace, content)
    with pytest.raises(Forbidden):
        services.upload(as_ben, workspace, content)
    assert not (vault / ".claude").exists()


def test_a_zip_that_says_less_of_itself_than_comes_out_is_refused() -> None:
    content = bytearray(packed({"SKILL.md": TEXT, "bomb": b"\0" * (LARGEST + 1)}))
    real = (LARGEST + 1).to_bytes(4, "little")
    with pytest.raises(Unusable):
        unpacked(bytes(content.replace(real, (10).to_bytes(4, "little"))))


async def test_an_agent_has_those_that_its_file_or_its_workspace_names(
    engine: Engine, workspace: Workspace, as_ada: Caller, vault: Path
) -> None:
    def files() -> None:
        for name in ("pruning", "sowing"):
            lay(vault, name)
        (lay(vault, "wrong") / "x").symlink_to("/etc")
        (vault / "Agents").mkdir()
        for name, says in {
            "names": "skills: [sowing, wrong, gone]",
            "all": "skills: all",
            "without": "skills: all\ntools: [Read]",
        }.items():
            (vault / f"Agents/{name}.md").write_text(f"---\nname: {name}\n{says}\n---\n")

    def given() -> list[str]:
        return [each.name for each in engine.runtime.requests[-1].skills]

    async def played(agent: str) -> list[Any]:
        written = await engine.answer("hi", agent=agent)
        return [
            each.payload["title"]
            for each in written
            if each.type == "warning" and "skill" in each.payload["code"]
        ]

    await in_thread(files)()
    assert (await played("default"), given()) == ([], [])
    await in_thread(services.switch)(as_ada, workspace, "pruning", on=True)
    assert (await played("default"), given()) == ([], ["pruning"])
    left_out = ["The skill gone is left out", "The skill wrong is left out"]
    assert (await played("names"), given()) == (left_out, ["pruning", "sowing"])
    assert (await played("all"), given()) == (["The skill wrong is left out"], ["pruning", "sowing"])
    assert (await played("without"), given()) == ([], [])
