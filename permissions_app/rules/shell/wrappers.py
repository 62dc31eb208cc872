"""Commands that only start another: where that begins among their words."""

import re
from dataclasses import dataclass, replace

from permissions_app.rules.shell.options import Given, Spec, read, spec
from permissions_app.rules.shell.words import Word


@dataclass(frozen=True)
class Wrapper:
    spec: Spec
    before: int = 0  # words before the command that are no options
    transparent: bool = False  # a pattern for the command inside holds for it
    assigns: bool = False
    alone: frozenset[str] = frozenset()  # options that make it ask about commands instead of starting one
    writes: frozenset[str] = frozenset()  # options whose value is a file that it writes
    codes: frozenset[str] = frozenset()  # options whose value is a command line
    is_part: bool = False  # its program does other things too, and may run files of the folder
    is_unsure: bool = False  # it has options that this table does not know


@dataclass(frozen=True)
class Inside:
    command: list[Word]
    given: Given  # its own options


def _wrapper(
    short: str = "",
    long: str = "",
    *,
    before: int = 0,
    transparent: bool = False,
    alone: str = "",
    writes: str = "",
) -> Wrapper:
    options = spec(short, f"{long} help version")
    return Wrapper(
        options, before, transparent, alone=frozenset(alone.split()), writes=frozenset(writes.split())
    )


_TIMEOUT = _wrapper(
    "k:s:vfp",
    "kill-after= signal= verbose foreground preserve-status",
    before=1,
    transparent=True,
)
_UNSURE = Wrapper(spec(), is_unsure=True)
WRAPPERS = {
    "env": Wrapper(
        spec(
            "iu:C:0S:vP:a:",
            "ignore-environment unset= chdir= null split-string= debug argv0= block-signal? default-signal? "
            "ignore-signal? list-signal-handling help version",
        ),
        assigns=True,
    ),
    "nohup": _wrapper(transparent=True),
    "time": _wrapper(
        "f:o:apvqVlh",
        "format= output= append portability verbose quiet",
        transparent=True,
        writes="-o --output",
    ),
    "timeout": _TIMEOUT,
    "gtimeout": _TIMEOUT,
    "nice": _wrapper("n:0123456789", "adjustment=", transparent=True),
    "ionice": _wrapper("c:n:p:P:u:t", "class= classdata= pid= pgid= uid= ignore", transparent=True),
    "stdbuf": _wrapper("i:o:e:", "input= output= error=", transparent=True),
    "setsid": _wrapper("cfwhV", "ctty fork wait"),
    "exec": _wrapper("cla:"),
    "command": _wrapper("pvV", alone="-v -V"),
    "builtin": _wrapper(),
    "coproc": _UNSURE,
    "chrt": _wrapper(
        "abdfimoprRvhVT:P:D:",
        "all-tasks batch deadline fifo idle max other pid rr reset-on-fork sched-runtime= sched-period= "
        "sched-deadline= verbose",
        before=1,
    ),
    "taskset": _wrapper("apchV", "all-tasks pid cpu-list", before=1),
    "flock": replace(
        _wrapper(
            "sxeunoFhVw:E:c:",
            "shared exclusive unlock nonblock nb timeout= wait= conflict-exit-code= close no-fork verbose "
            "command=",
            before=1,
        ),
        codes=frozenset({"-c", "--command"}),
    ),
    "chroot": _wrapper("", "groups= userspec= skip-chdir", before=1),
    "busybox": _wrapper(),
    "toybox": _wrapper(),
    "caffeinate": _wrapper("disumt:w:"),
    "unbuffer": _wrapper("p"),
    "xvfb-run": _wrapper(
        "aln:s:e:f:p:w:h",
        "auto-servernum listen-tcp server-num= server-args= error-file= auth-file= xauth-protocol= wait=",
    ),
    "dbus-run-session": _wrapper("", "config-file= dbus-daemon="),
    "fakeroot": _wrapper("l:f:i:s:b:hvu", "lib= faked= unknown-is-real fd-base="),
    "chronic": _wrapper("ve"),
    "ifne": _wrapper("n"),
    "systemd-cat": _wrapper("ht:p:", "identifier= priority= stderr-priority= level-prefix= namespace="),
    "ssh-agent": _wrapper("cskdDTa:E:O:P:t:"),
    "gpg-agent": _wrapper(
        "vqsch",
        "daemon server supervised verbose quiet sh csh no-detach enable-ssh-support homedir= options= "
        "log-file= default-cache-ttl= max-cache-ttl=",
    ),
    "-": _wrapper(),
    **dict.fromkeys(("firejail", "bwrap", "unshare", "nsenter", "setpriv", "prlimit"), _UNSURE),
    **dict.fromkeys(("strace", "ltrace", "setarch", "linux32", "linux64", "fakechroot", "proot"), _UNSURE),
    **dict.fromkeys(("systemd-inhibit", "cgexec", "chpst", "setuidgid", "envdir", "runcon"), _UNSURE),
    **dict.fromkeys(("direnv", "capsh", "runuser", "setcap", "start-stop-daemon", "dbus-launch"), _UNSURE),
    **dict.fromkeys(("flatpak-spawn", "host-spawn", "distrobox-host-exec", "systemd-nspawn"), _UNSURE),
    **dict.fromkeys(("with-contenv", "daemonize", "sg", "newgrp", "i386", "coreutils"), _UNSURE),
    **dict.fromkeys(("tini", "dumb-init", "s6-setsid", "catchsegv", "ld.so", "execlineb"), _UNSURE),
    **dict.fromkeys(("xterm", "x-terminal-emulator", "gnome-terminal", "konsole", "urxvt"), _UNSURE),
}


def _part(
    subcommands: str, short: str = "", long: str = "", *, before: int = 1, codes: str = ""
) -> dict[str, Wrapper]:
    """What starts a command behind these words. Their options are its program's own too."""
    wrapper = replace(_wrapper(short, long, before=before), is_part=True, codes=frozenset(codes.split()))
    return dict.fromkeys(subcommands.split(), wrapper)


_NPM = ("ysp:w:", "yes no-* package= workspace= workspaces include-workspace-root prefix= silent loglevel=")
_NPX = {"": replace(_wrapper(f"{_NPM[0]}q", f"{_NPM[1]} quiet ignore-existing"), is_part=True)}
_UVX = "q p:", "quiet python= from= with= with-editable= with-requirements= isolated offline refresh"
# Of programs that do more than that: behind which of their words it begins; "" where behind any.
PARTS: dict[str, dict[str, Wrapper]] = {
    "npm": _part("exec x", *_NPM) | _part("explore", *_NPM, before=2),
    **dict.fromkeys(("npx", "bunx"), _NPX),
    "yarn": _part("exec dlx", "sqp:", "cwd= silent quiet package="),
    "pnpm": _part(
        "exec dlx",
        "C:rswF:",
        "dir= recursive silent workspace-root filter= filter-prod= parallel stream reporter= package= "
        "report-summary no-bail workspace-concurrency=",
    ),
    "bun": _part("x", "b", "cwd= bun silent"),
    "poetry": _part(
        "run", "qvnC:P:", "quiet verbose no-interaction directory= project= no-plugins no-cache ansi no-ansi"
    ),
    "uv": _part(
        "run",
        "qvnUmsp:w:i:f:P:",
        "quiet verbose no-* offline locked frozen exact isolated active module script gui-script all-extras "
        "all-groups all-packages dev only-dev refresh upgrade reinstall native-tls managed-python extra= "
        "group= only-group= with= with-editable= with-requirements= env-file= package= python= project= "
        "directory= index= default-index= index-url= extra-index-url= find-links= cache-dir= color= "
        "config-file= link-mode= resolution= prerelease= upgrade-package= refresh-package= "
        "reinstall-package= exclude-newer= python-preference= allow-insecure-host=",
    ),
    "uvx": {"": replace(_wrapper(*_UVX), is_part=True)},
    "pipx": _part("run", "vq", "verbose quiet spec= python= no-cache pypi system-site-packages"),
    "pdm": _part("run", "qvsp:", "quiet verbose site-packages project= env-file= no-lock"),
    "pipenv": _part("run", "qv", "quiet verbose bare site-packages"),
    "hatch": _part("run", "qve:p:", "quiet verbose env= project= no-color color data-dir= cache-dir="),
    "rye": _part("run", "p:", "pyproject="),
    "pixi": _part("run", "qve:x", "quiet verbose environment= manifest-path= frozen locked executable"),
    "conda": _part("run", "n:p:v", "name= prefix= verbose cwd= no-capture-output live-stream"),
    **dict.fromkeys(("mamba", "micromamba"), _part("run", "n:p:a:", "name= prefix= cwd= attach=")),
    "bundle": _part("exec", "", "gemfile= keep-file-descriptors no-keep-file-descriptors verbose no-color"),
    "rustup": _part("run", "qv", "quiet verbose install", before=2),
    "cargo": _part(
        "watch",
        "qcNBx:s:w:i:d:C:E:L:",
        "quiet clear exec= shell= watch= ignore= delay= workdir= why poll no-vcs-ignores no-dot-ignores "
        "no-gitignore no-ignore postpone features= notify use-shell= env=",
        codes="-s --shell",
    ),
    "fnm": _part("exec", "", "using= using-file version-file-strategy= log-level= fnm-dir="),
    "volta": _part("run", "", "node= npm= pnpm= yarn= bundled-npm no-pnpm no-yarn quiet verbose"),
    **dict.fromkeys(("rbenv", "pyenv", "asdf"), _part("exec")),
}

# They start commands too; which of their words these are is not said here.
STARTERS = frozenset(
    {
        *("valgrind", "numactl", "torsocks", "proxychains", "proxychains4", "faketime", "rlwrap", "dotenv"),
        *("nodemon", "watchexec", "concurrently", "cross-env", "hatch", "pdm", "rye", "pipenv", "pixi"),
        *("mise", "asdf", "nix", "nix-shell", "conda", "mamba", "micromamba", "rbenv", "pyenv", "hyperfine"),
        *("op", "doppler", "infisical", "chamber", "aws-vault", "dtach", "abduco", "cmake", "perf", "rr"),
        *("nvm", "volta", "fnm", "rustup", "heroku", "dotenvx", "env-cmd", "wsl", "toolbox", "distrobox"),
        *("pee", "mispipe", "onchange", "chokidar", "reflex", "daemon", "fzf", "sk", "gdb", "corepack"),
        *("ts", "tsp", "foreman", "honcho", "ansible", "vagrant", "pandoc", "run-parts", "cpio"),
    }
)

# Each of their words may be a whole command line.
CODE_IN_WORDS = frozenset(
    {"hyperfine", "watchexec", "nodemon", "concurrently", "pee", "mispipe", "nix-shell", "fzf", "sk"}
)

_LOADER = re.compile(r"ld-(linux|musl).*\.so.*")  # `/lib64/ld-linux-x86-64.so.2 /bin/sh`

XARGS = spec(
    "0a:d:E:e::I:i::J:L:l::n:oprR:s:S:tP:x",
    "null arg-file= delimiter= eof? replace? max-lines? max-args= max-procs= interactive open-tty "
    "no-run-if-empty max-chars= show-limits verbose exit process-slot-var= help version",
)
WATCH = spec(
    "bcdegn:pq:rtwxChv",
    "beep color no-color differences? errexit chgexit interval= precise equexit= no-rerun no-title no-wrap "
    "exec help version",
)


def of(name: str, words: list[Word]) -> Wrapper | None:
    """How it starts another command; None where it does not."""
    if _LOADER.fullmatch(name):
        return _UNSURE
    if name not in PARTS:
        return WRAPPERS.get(name)
    parts = PARTS[name]
    if "" in parts:
        return parts[""]
    texts = [word.text for word in words]
    given = read(next(iter(parts.values())).spec, texts, until=0, start=1)
    first = texts[given.plain[0]] if given.plain else ""
    if first in parts or not given.strange:
        return parts.get(first)
    # An option that is not known may have taken the first word for its value.
    hidden = next((parts[text] for text in texts if text in parts), None)
    return hidden and replace(hidden, is_unsure=True)


def inside(wrapper: Wrapper, words: list[Word]) -> Inside:
    """The words of the command that it starts, and the options that it was given itself."""
    texts = [word.text for word in words]
    given = read(wrapper.spec, texts, until=wrapper.before, start=1)
    plain = given.plain[wrapper.before :]
    while wrapper.assigns and plain and ("=" in texts[plain[0]] or texts[plain[0]] == "-"):
        plain = plain[1:]
    return Inside([words[at] for at in plain], given)
