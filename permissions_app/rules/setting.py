"""What the rules need to know of a session."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class Trust(StrEnum):
    FULL = "full"  # the whole computer; operators only
    VAULT = "vault"  # this folder
    SANDBOXED = "sandboxed"  # a read-only box with a scratch folder


@dataclass(frozen=True)
class Patterns:
    """What people have allowed a session beyond its trust level: globs of paths in the vault, and prefixes of
    commands."""

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    bash: tuple[str, ...] = ()

    def and_those_of(self, other: "Patterns") -> "Patterns":
        if other == Patterns():
            return self
        return Patterns(self.read + other.read, self.write + other.write, self.bash + other.bash)


@dataclass(frozen=True)
class Setting:
    """`working_directory` is where the CLI stands at this call (the hook's `cwd`), not where the session
    began: a `cd` in Bash moves it, and relative paths of Glob and Grep start there.
    """

    trust: Trust
    behind_wall: bool
    operator: bool
    vault: Path
    working_directory: Path
    home: Path  # $PARACHUTE_HOME
    scratch: Path | None
    own_config: Path | None  # this session's CLAUDE_CONFIG_DIR
    own_servers: frozenset[str]  # MCP servers that we registered
    patterns: Patterns = Patterns()
    trust_mode: bool = True  # "Act without asking"
    agent_writes: tuple[str, ...] | None = None  # `write_permissions` of its agent; None: it has none
    agent_allows: Patterns = Patterns()  # what people accepted of its definition
    has_read_strangers: bool = False  # text of the web or of a stranger: it may have been told what to do
    named_hosts: frozenset[str] = frozenset()  # that a person named in this session
    closed: Path | None = None  # a folder with files of other chats,
    opened: frozenset[Path] = frozenset()  # of which these are its own,
    closed_files: frozenset[Path] = frozenset()  # and these are there now
    accepted_servers: frozenset[str] = frozenset()  # of the vault, that an owner accepted
    asking_servers: frozenset[str] = frozenset()  # those of them whose tools ask on their first use,
    allowed_tools: frozenset[str] = frozenset()  # which these have had in this session
    server_hosts: frozenset[str] = frozenset()  # where the accepted ones are
    held: frozenset[str] = frozenset()  # settings of repositories that its wall shows read-only

    def __post_init__(self) -> None:
        paths = (self.vault, self.working_directory, self.home, self.scratch, self.own_config)
        if not all(path is None or path.is_absolute() for path in paths):
            raise ValueError("The rules compare whole paths: a relative home would leave the real one open")
