"""How a command may begin, for a pattern: what could run anything is none."""

import re

from permissions_app.rules.shell.danger import BECOME_ROOT
from permissions_app.rules.shell.interpreters import is_interpreter
from permissions_app.rules.shell.runners import SHELLS
from permissions_app.rules.shell.wrappers import STARTERS, WRAPPERS

ANY_COMMAND = "*"  # the `bash: true` of a session's metadata

# One word of them says nothing about what will happen.
WITH_SUBCOMMANDS = frozenset(
    {
        *("git", "gh", "npm", "yarn", "pnpm", "pip", "pip3", "uv", "poetry", "cargo", "go", "bundle"),
        *("docker", "podman", "kubectl", "helm", "terraform", "systemctl", "brew", "apt", "apt-get"),
        *("dotnet", "mvn", "gradle", "composer"),
    }
)
# They run what others wrote, or what their words say.
_RUNS_ANYTHING = frozenset(
    {
        *("xargs", "find", "gfind", "eval", "source", ".", "trap", "alias", "watch", "script", "entr"),
        "ssh",
        *("make", "gmake", "just", "task", "rake", "ninja", "cmake", "tox", "nox", "pre-commit"),
        *("npx", "bunx", "pipx", "uvx", "parallel", "socat", "tmux", "screen", "at", "batch", "crontab"),
        *("systemd-run", "expect", "m4", "ed", "docker-compose", "vagrant", "ansible", "ansible-playbook"),
    }
).union(SHELLS, WRAPPERS, STARTERS, BECOME_ROOT)
# With a slash it is a file, which the session may be able to write.
_NAME = re.compile(r"\w[\w.+-]*|\[")
# Of programs that run scripts, hooks or other programs by many of their words: the words that do one thing.
_KNOWN_SUBCOMMANDS = {
    "npm": "test t tst install i ci add uninstall remove rm update outdated ls list view info show audit "
    "fund pack "
    "version prune dedupe search docs why explain ping whoami start stop restart",
    "yarn": "test install add remove up upgrade outdated list info why audit version pack",
    "pnpm": "test t install i add remove rm update up outdated list ls why audit prune store",
    "uv": "add remove sync lock pip venv version tree export cache python",
    "poetry": "add remove install update lock show check version build search env",
    "bundle": "install update outdated list show info check add remove",
    "go": "build test vet fmt mod get list version env doc clean install work",
    "cargo": "build test check clippy fmt doc add remove update tree search metadata clean bench fetch "
    "version",
    "docker": "ps images logs inspect build pull push tag stop start restart rm rmi stats top port "
    "version info diff "
    "history network volume events wait kill",
    "kubectl": "get describe logs top version explain api-resources cluster-info rollout diff wait",
    "git": "status diff log show add commit push pull fetch branch checkout switch restore merge rebase "
    "stash tag "
    "reset revert cherry-pick blame grep rm mv clean remote clone init ls-files ls-tree rev-parse "
    "rev-list describe "
    "shortlog reflog worktree archive apply am format-patch cat-file check-ignore check-attr gc fsck notes "
    "range-diff whatchanged merge-base for-each-ref count-objects name-rev show-ref sparse-checkout",
    "gh": "pr issue repo run workflow release browse search status label gist cache project auth",
    "pip": "install uninstall list show freeze check download wheel index cache",
}
_KNOWN_SUBCOMMANDS |= {"podman": _KNOWN_SUBCOMMANDS["docker"], "pip3": _KNOWN_SUBCOMMANDS["pip"]}
_SUBCOMMANDS = {name: frozenset(words.split()) for name, words in _KNOWN_SUBCOMMANDS.items()}
_RUNNERS = {
    "composer": {"exec", "run", "run-script", "create-project", "global"},
    "dotnet": {"run", "exec", "tool", "new"},
    "terraform": {"console", "apply", "init"},
    "helm": {"plugin", "test"},
    "systemctl": {"edit", "link", "set-environment", "import-environment"},
    "gradle": {"run"},
    "mvn": {"exec:java", "exec:exec"},
}


def is_too_free(words: tuple[str, ...]) -> bool:
    """Would such a prefix let through whatever a model likes?"""
    if not words or words == (ANY_COMMAND,) or not _NAME.fullmatch(words[0]):
        return True
    name = words[0]
    if name in _RUNS_ANYTHING or is_interpreter(name):
        return True
    if name not in WITH_SUBCOMMANDS:
        return False
    if len(words) < 2 or words[1].startswith("-"):
        return True
    # Some take a part of a word for it (`npm rum`), or one that they do not know for a script.
    return words[1] not in _SUBCOMMANDS[name] if name in _SUBCOMMANDS else words[1] in _RUNNERS.get(name, ())
