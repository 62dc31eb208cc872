"""Ways out that are tried, and refused, in each wall, as root and as a plain user. Whatever could harm the
machine if a wall did not hold is small, and ends by itself."""

import os
import shutil
import socket
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from agents_app.launcher import MARK, end_everything, marked, new_mark
from agents_app.sandboxes import ENGINES, engine, placeholders
from agents_app.sandboxes.base import CannotConfine
from agents_app.sandboxes.bubblewrap import Bubblewrap
from agents_app.sandboxes.looking import look_through
from tests.contracts.runs import CANARY, Runs
from tests.contracts.walled import SMALL, give, launch, project_of, run
from tests.plain_user import acting_as

BELIEVED = (
    *(".claude/settings.json", ".claude/skills/trap/SKILL.md", ".mcp.json", ".vscode/tasks.json", ".envrc"),
    *(".agents/trap.md", "Agents/default.md", ".git/hooks/post-commit", ".git/config"),
)


def each_of(scripts: Sequence[str]) -> str:
    """Each in a shell of its own, whatever becomes of the others."""
    return "; ".join(f"echo tried; ({script}) >/dev/null" for script in scripts)


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_an_agent_that_ends_meanwhile_keeps_no_read_only_one_from_starting(walled: Runs) -> None:
    let_go = placeholders.hold(walled.vault, walled.vault / "Notes", walled.vault.parent / "locks")
    given = launch(walled, "echo ran", ())
    let_go()
    done = walled.run(given)
    assert done.stdout == "ran\n", done.stderr


def test_no_agent_opens_the_wall_of_another(walled: Runs) -> None:
    """It could, by removing the names that are held for the other: their mounts go with them."""
    let_go = placeholders.hold(walled.vault, walled.vault / "Notes", walled.vault.parent / "locks")
    names = [name for name in placeholders.NAMES if name != ".envrc"]
    tries = [f"cd Notes && rm -rf {name}; mkdir {name} && echo EVIL > {name}/x" for name in names]
    run(walled, each_of(tries), None)
    assert all(placeholders.is_ours(walled.vault / "Notes" / name) for name in names)
    let_go()


@pytest.mark.parametrize("patterns", [None, ("Chat/**",), ()])
def test_files_of_other_chats_are_not_seen_nor_moved_into_sight(
    walled: Runs, patterns: tuple[str, ...] | None
) -> None:
    """The session's own are there, and the others in no listing, whatever is done to their folders."""
    day = walled.vault / "Chat/assets/2026-11-20"
    day.mkdir(parents=True)
    (day / "own.md").write_text("OWN")
    (day / "others.md").write_text("OTHERS")
    give(walled, walled.vault / "Chat")
    moves = ("mv Chat/assets/2026-11-20 Chat/moved", "mv Chat/assets Chat/moved", "mv Chat moved")
    script = f"{each_of(moves)}; cat {day}/own.md; ls {day}; grep -rs OTHERS . ; echo ran"
    given = launch(walled, script, patterns, closed=(walled.vault / "Chat/assets",))
    done = walled.run(replace(given, readable=(*given.readable, day / "own.md")))
    assert done.stdout.replace("tried\n", "") == "OWNown.md\nran\n", done.stderr
    assert (day / "others.md").read_text() == "OTHERS"


@pytest.mark.parametrize("mode", ["000", "111", "444"])
def test_what_one_closes_to_us_the_next_does_not_see(walled: Runs, mode: str) -> None:
    """The server runs as the user that they are too: what it cannot look into, it could not hide."""
    (walled.vault / "Project/.git/hooks").mkdir(parents=True)
    (walled.vault / "Project/.git/HEAD").touch()
    (walled.vault / "Project/.env").write_text("SECRET")
    for each in (project := walled.vault / "Project", *project.rglob("*")):
        os.chown(each, walled.vault.stat().st_uid, -1)
    for closed in (project / ".git", project):
        done = run(walled, f"chmod {mode} {closed}")
        assert f"{closed.stat().st_mode:o}".endswith(mode), done.stderr
    opened = f"chmod 755 {project} {project}/.git; echo EVIL > {project}/.git/hooks/post-commit"
    done = run(walled, f"{opened}; cat {project}/.env; echo ran")
    assert done.stdout == "ran\n", done.stderr
    assert files(project) == {".git/HEAD": b"", ".env": b"SECRET"}


def test_nothing_is_planted_where_one_made_folders_read_only(walled: Runs) -> None:
    """The names are held all the same, and the folders look as they did."""
    git, locks = walled.vault / ".git", walled.vault.parent / "locks"
    run(walled, f"chmod 555 {git} {walled.vault / 'Notes'}")
    with acting_as(walled.vault.stat().st_uid):
        let_go = placeholders.hold_repositories(walled.vault, [git], locks)
        hold = placeholders.hold(walled.vault, walled.vault / "Notes", locks)
    assert git.stat().st_mode & 0o777 == (walled.vault / "Notes").stat().st_mode & 0o777 == 0o555
    tries = (
        f"chmod 755 {git}; rm -rf {git}/commondir; echo EVIL > {git}/commondir",
        "chmod 755 Notes; mkdir Notes/.vscode; echo EVIL > Notes/.vscode/tasks.json",
    )
    run(walled, each_of(tries))
    with acting_as(walled.vault.stat().st_uid):
        hold()
        let_go()
    assert not any(b"EVIL" in content for content in files(walled.vault).values())
    assert not {"commondir", ".vscode"} & {path.name for path in walled.vault.rglob("*")}


@pytest.mark.parametrize("parked", ["n/.git", "n/.git/objects", "n/.git/refs/heads", "n/.GIT"])
@pytest.mark.parametrize("patterns", [None, ()])
def test_what_one_parks_in_a_folder_called_git_the_next_does_not_see(
    walled: Runs, parked: str, patterns: tuple[str, ...] | None
) -> None:
    project_of(walled)
    run(walled, f"mkdir -p {parked} && mv Project {parked}/x")
    there = walled.vault / parked / "x"
    assert (there / ".env").exists()
    done = run(walled, f"cat {there}/.env; echo EVIL >> {there}/.git/config; echo ran", patterns)
    assert done.stdout == "ran\n", done.stderr
    assert (there / ".git/config").read_bytes() == b""


@pytest.mark.parametrize("change", ["mv Project Elsewhere", "chmod 000 Project", "chmod 444 Project"])
@pytest.mark.parametrize("patterns", [None, ()])
def test_who_moves_or_closes_what_is_hidden_while_a_wall_is_built_keeps_it_from_starting(
    walled: Runs, change: str, patterns: tuple[str, ...] | None
) -> None:
    project_of(walled)
    given = launch(walled, "chmod 755 Project; cat */.env; echo ran", patterns)
    subprocess.run(change, shell=True, check=True, cwd=walled.vault)
    with acting_as(walled.vault.stat().st_uid):
        try:
            shown_to_it = " ".join(walled.sandbox.confine(given).argv)
        except CannotConfine:
            return
    assert change.startswith("mv") or f"{walled.vault}/Project/.env" in shown_to_it
    done = walled.run(given)
    assert "SECRET" not in done.stdout
    assert "ran" not in done.stdout or change.startswith("chmod")


GIT_TRICKS = {
    "more settings": ("", "echo EVIL > Project/.git/config.worktree"),
    "hooks are a link": ("", "cd Linked/.git && rm hooks && mkdir hooks && echo EVIL > hooks/post-commit"),
    "a store of its own": ("", "echo EVIL > store/config; echo EVIL > store/hooks/x; mv store away"),
    "a submodule without HEAD": (
        "mv Project/.git/modules/sm/HEAD H",
        "echo EVIL > Project/.git/modules/sm/commondir; mv H Project/.git/modules/sm/HEAD",
    ),
    "a worktree's settings": ("", "echo EVIL > Project/.git/worktrees/Tree/config.worktree"),
    "worktrees moved": (
        "",
        "cd Project/.git; mv worktrees away; mkdir -p worktrees/Tree; echo EVIL > worktrees/Tree/commondir",
    ),
    "modules moved": (
        "",
        "cd Project/.git; mv modules away; mkdir -p modules/sm; echo EVIL > modules/sm/config",
    ),
    "a submodule moved": (
        "cd Project/.git/modules; mv sm ../sm || mv ../modules ../away",
        "cd Project/.git; echo EVIL > sm/config; echo EVIL > away/sm/config",
    ),
}


@pytest.mark.parametrize("trick", GIT_TRICKS)
def test_a_repository_is_not_made_to_run_what_an_agent_wrote(walled: Runs, trick: str) -> None:
    project = project_of(walled)
    (project / ".git/worktrees/Tree").mkdir(parents=True)
    (project / ".git/worktrees/Tree/HEAD").write_text("ref: refs/heads/tree\n")
    (project / ".git/worktrees/Tree/commondir").write_text("../..\n")
    for store in (walled.vault / "store", project / ".git/modules/sm"):
        (store / "objects").mkdir(parents=True)
        (store / "HEAD").write_text("ref: refs/heads/main\n")
        (store / "config").touch()
    (walled.vault / "Linked/.git/objects").mkdir(parents=True)
    (walled.vault / "Linked/.git/hooks").symlink_to("../githooks")
    give(walled, walled.vault)
    locks = walled.vault.parent / "locks"
    for script in GIT_TRICKS[trick]:
        with acting_as(walled.vault.stat().st_uid):
            found = [*look_through(walled.vault).repositories]
            let_go = placeholders.hold_repositories(walled.vault, found, locks)
        run(walled, script or "true")
        with acting_as(walled.vault.stat().st_uid):
            let_go()
    assert [path for path, content in files(walled.vault).items() if b"EVIL" in content] == []
    assert (walled.vault / "store/config").exists()


OUTSIDE = ("/usr", "/usr/bin/sh", "/etc/passwd", "/root/x", "/proc/1/root/x", "nowhere", "x" * 300)
INSIDE = (
    "..",
    "../Notes",
    ".netrc",
    "../Project",
    "../Project/.env",
    "../Project/CLAUDE.md",
    "../.git/config",
)


@pytest.mark.parametrize("patterns", [None, (), ("Chat/artifacts/*",)])
def test_links_with_the_name_of_a_secret_keep_nobody_from_starting(
    walled: Runs, patterns: tuple[str, ...] | None
) -> None:
    project = project_of(walled)
    (project / "CLAUDE.md").write_text("plan")
    links = (f"mkdir L{n}; ln -s {to} L{n}/.netrc" for n, to in enumerate((*OUTSIDE, *INSIDE)))
    run(walled, "; ".join(links))
    done = run(walled, "ls Notes Chat L0 >/dev/null && cat Project/CLAUDE.md && echo ran", patterns)
    assert (done.stdout, done.stderr) == ("planran\n", ""), done.stderr


def test_what_a_link_with_the_name_of_a_secret_points_to_is_hidden(walled: Runs) -> None:
    (walled.vault / "Notes/prod").write_text("SECRET")
    (walled.vault / "Chat/.env").symlink_to("../Notes/prod")
    done = run(walled, "cat Chat/.env Notes/prod; echo ran")
    assert done.stdout == "ran\n", done.stderr
    (walled.vault / "keys/ssh").mkdir(parents=True)
    (walled.vault / "keys/ssh/id_rsa").write_text("SECRET")
    (walled.vault / ".ssh").symlink_to("keys/ssh")
    done = run(walled, "cat .ssh/id_rsa keys/ssh/id_rsa; echo ran")
    assert done.stdout == "ran\n", done.stderr


@pytest.mark.parametrize("pattern", ["Chat/artifacts/*", "Chat/*", "*", "**", "**/*"])
def test_what_lies_in_a_writable_folder_keeps_nobody_from_starting(walled: Runs, pattern: str) -> None:
    run(walled, "cd Chat/artifacts; mkdir -- - .ssh; mkdir -m 000 c; touch .env")
    let_go = placeholders.hold(walled.vault, walled.vault / "Chat", walled.vault.parent / "locks")
    done = run(walled, f"echo x > {pattern.partition('*')[0]}new && echo ran", (pattern,))
    let_go()
    assert (done.stdout, done.stderr) == ("ran\n", ""), done.stderr


def test_a_name_that_is_no_text_keeps_nobody_from_starting(walled: Runs) -> None:
    run(walled, "mkdir -p $(printf '\\377')/.git")
    with acting_as(walled.vault.stat().st_uid):
        found = [*look_through(walled.vault).repositories]
        assert len(found) == 2
        placeholders.hold_repositories(walled.vault, found, walled.vault.parent / "locks")()
    if walled.sandbox.name == "bubblewrap":
        assert run(walled, "echo ran").stdout == "ran\n"
    else:
        with pytest.raises(CannotConfine, match="Give it a name that is text"):
            run(walled, "echo ran")


@pytest.mark.parametrize(("name", "floors"), [("d", 100), ("d" * 250, 20)])
def test_a_folder_that_is_too_deep_keeps_nobody_from_starting(walled: Runs, name: str, floors: int) -> None:
    dig = f"for i in $(seq {floors}); do touch .env CLAUDE.md; mkdir {name} && cd -P {name} || exit; done"
    run(walled, f"cd Notes; {dig}")
    done = run(walled, "echo ran")
    assert (done.stdout, done.stderr) == ("ran\n", ""), done.stderr


def test_a_vault_that_was_closed_is_given_back_all_the_same(walled: Runs) -> None:
    with acting_as(walled.vault.stat().st_uid):
        let_go = placeholders.hold(walled.vault, walled.vault, walled.vault.parent / "locks")
        walled.vault.chmod(0)
        let_go()
        walled.vault.chmod(0o755)


def test_a_read_only_vault_stays_one(walled: Runs) -> None:
    before = files(walled.vault)
    vault, ours = walled.vault, walled.vault.parent / "home/claude/ours"
    tries = (
        f"mount -o remount,bind,rw {vault}; echo x > {vault}/Notes/plan.md",
        f"unshare -Urm mount -o remount,bind,rw {vault}; echo x > {vault}/Notes/plan.md",
        f"umount -l {vault}; echo x > {vault}/Notes/plan.md; echo x > {vault}/x",
        f"ln -s {vault}/Notes/plan.md {ours}/l; echo x > {ours}/l",
        f"ln {vault}/Notes/plan.md {ours}/h && echo x > {ours}/h",
        f"echo x > /proc/1/root{vault}/Notes/plan.md; echo x > /proc/self/cwd/Notes/plan.md",
    )
    assert run(walled, each_of(tries), ()).stdout == "tried\n" * len(tries)
    assert files(walled.vault) == before


def test_only_the_folders_of_its_patterns_are_written(walled: Runs) -> None:
    (walled.vault / "Chat/artifacts/deep").mkdir()
    script = (
        "for at in . Notes Chat Chat/artifacts Chat/artifacts/deep; do echo x > $at/new && echo $at; done"
    )
    assert run(walled, script, ("Chat/artifacts/*",)).stdout.split() == ["Chat/artifacts"]


def test_a_link_is_not_a_way_out_of_a_writable_folder(walled: Runs) -> None:
    before = files(walled.vault)
    script = "cd Chat/artifacts; ln -s ../../Notes way; echo x > way/plan.md; echo x > way/new"
    run(walled, script, ("Chat/artifacts/*",))
    assert files(walled.vault) == before


def test_a_folder_that_is_swapped_for_a_link_after_it_was_looked_at_starts_nothing(walled: Runs) -> None:
    given = launch(walled, "cat Chat/artifacts/secret", ("Chat/artifacts/*",))
    shutil.move(walled.vault / "Chat/artifacts", walled.vault / "Chat/before")
    elsewhere = walled.vault.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "secret").write_text("SECRET")
    (walled.vault / "Chat/artifacts").symlink_to(elsewhere)
    done = walled.run(given)
    assert done.returncode != 0
    assert "SECRET" not in done.stdout


def test_a_file_that_steers_agents_and_is_a_link_shows_nothing_of_the_host(walled: Runs) -> None:
    home = walled.vault.parent / "home"
    for name in ("AGENTS.md", "CLAUDE.md"):
        (walled.vault / name).symlink_to(home / ("secret" if name == "AGENTS.md" else "claude/theirs"))
    assert "SECRET" not in run(walled, "cat AGENTS.md; grep -r . CLAUDE.md").stdout


def test_what_other_programs_would_believe_is_not_planted(walled: Runs) -> None:
    (walled.vault / ".git/config").write_text("[core]")
    before = files(walled.vault)
    let_go = placeholders.hold(walled.vault, walled.vault, walled.vault.parent / "home/locks")
    tries = [script for path in BELIEVED for script in plantings(path)]
    try:
        done = run(walled, each_of(tries))
    finally:
        let_go()
    assert done.stdout == "tried\n" * len(tries), done.stderr
    assert files(walled.vault) == before
    left = {entry.name for entry in walled.vault.iterdir()}
    assert left == {".claude", ".env", ".git", "Chat", "Notes"}


def plantings(path: str) -> tuple[str, ...]:
    top = path.partition("/")[0]
    return (
        f"mkdir -p $(dirname {path}); echo trap > {path}",
        f"mv {top} gone; mkdir -p $(dirname {path}); echo trap > {path}",
        f"rm -rf {top}; ln -s Notes {top}; echo trap > {path}",
        f"mkdir fresh; echo trap > fresh/x; mv -T fresh {top}; umount {top}; mv -T fresh {top}; rm -rf fresh",
    )


def test_secrets_are_nowhere_to_be_found(walled: Runs) -> None:
    """Neither the vault's, nor the server's, nor what another session said."""
    (walled.vault / "Notes/deep").mkdir()
    (walled.vault / "Notes/deep/id_rsa").write_text("SECRET")
    (walled.vault / "Notes/tls.key").write_text("-----BEGIN PRIVATE KEY-----SECRET")
    (walled.vault / "Notes/talk.key").write_text("SLIDES")
    done = run(walled, f"grep -rsh -e SECRET -e SLIDES {walled.vault} {walled.vault.parent}/home; ls -a home")
    assert done.stdout.split() == ["SLIDES"]


def test_neither_the_workers_environment_nor_its_broker_is_reached(walled: Runs) -> None:
    broker = walled.vault.parent / "home/run/valkey.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(broker))
        listener.listen()
        script = f"cat /proc/[0-9]*/environ | tr '\\0' '\\n'; ls {broker} {broker.parent}; exit 0"
        done = run(walled, script)
    assert "PATH=" in done.stdout  # it reads those that are its own
    assert CANARY not in done.stdout
    assert "PARACHUTE_LAUNCH" not in done.stdout
    assert "valkey" not in done.stdout


def test_no_port_of_the_host_answers(walled: Runs) -> None:
    with socket.create_server(("0.0.0.0", 0)) as listener:
        port = listener.getsockname()[1]
        addresses = ["127.0.0.1", socket.gethostbyname(socket.gethostname())]
        tries = [f"(exec 3<>/dev/tcp/{address}/{port}) && echo through" for address in addresses]
        done = run(walled, f"timeout 5 bash -c '{'; '.join(tries)}'")
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()
    assert "through" not in done.stdout


def test_a_fork_bomb_ends_at_the_limit(walled: Runs) -> None:
    if isinstance(walled.sandbox, Bubblewrap) and not walled.sandbox.counts_processes:
        pytest.skip("NOT TESTED: no control groups can be made here, and nothing else counts for root.")
    done = run(walled, "i=0; while [ $i -lt 300 ]; do sleep 4 & i=$((i+1)); done; echo all of them")
    assert "all of them" not in done.stdout
    assert "fork" in done.stderr.lower()


def test_memory_cannot_be_filled(walled: Runs) -> None:
    done = run(walled, "head -c 300000000 /dev/zero | tail | wc -c; head -c 300000000 /dev/zero > /dev/shm/x")
    assert done.stdout.strip() in ("", "0")
    assert done.returncode != 0


def test_scratch_cannot_be_filled(walled: Runs) -> None:
    three = "for i in 1 2 3 4 5; do head -c 3000000 /dev/zero > $at/$i || echo full; done"
    script = f"for at in /tmp /var/tmp $HOME; do {three}; done"
    assert run(walled, script).stdout.split().count("full") >= 3
    run(walled, "head -c 50000000 /dev/zero > Chat/large")
    assert (walled.vault / "Chat/large").stat().st_size <= SMALL.file_size


def test_nothing_outlives_its_turn(walled: Runs) -> None:
    mark = new_mark()
    script = "setsid -f sleep 20; (setsid env -i sleep 20 &) ; nohup sleep 20 >/dev/null & echo ready; read x"
    given = launch(walled, script, environment={"PATH": "/usr/bin:/bin", MARK: mark})
    with walled.started(given) as process:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        assert len(marked(mark)) >= 3
        end_everything(mark)
        walled.sandbox.end(mark)
        assert not marked(mark)
    assert not groups_of(mark)
    if walled.sandbox.name in ENGINES:
        assert not engine(walled.sandbox.name).run("ps", "-aq", "--filter", f"name={mark}").stdout


def groups_of(mark: str) -> list[str]:
    """Wherever they are. Those of other tests come and go meanwhile, which `Path.glob` does not take."""
    return [folder for folder, *_ in os.walk("/sys/fs/cgroup") if folder.endswith(f"/parachute-{mark}")]


def test_more_processors_than_there_are_can_be_allowed(walled: Runs) -> None:
    """As by default, on a machine with one."""
    assert walled.run(launch(walled, "echo ran", limits=replace(SMALL, cpus=500))).stdout == "ran\n"


def test_a_sleeper_is_ended_when_its_time_is_over(walled: Runs) -> None:
    if walled.sandbox.name not in ENGINES:
        pytest.skip("A turn behind bubblewrap may take its time; its computing is counted.")
    short = replace(SMALL, time=1)
    assert walled.run(launch(walled, "sleep 20; echo slept", limits=short)).stdout == ""
