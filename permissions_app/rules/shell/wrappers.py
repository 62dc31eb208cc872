"""Commands that only start another: where that begins among their words."""

from dataclasses import dataclass

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
    "flock": _wrapper(
        "sxeunoFhVw:E:c:",
        "shared exclusive unlock nonblock nb timeout= wait= conflict-exit-code= close no-fork verbose "
        "command=",
        before=1,
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
    "-": _wrapper(),
    **dict.fromkeys(("firejail", "bwrap", "unshare", "nsenter", "setpriv", "prlimit"), _UNSURE),
    **dict.fromkeys(("strace", "ltrace", "setarch", "linux32", "linux64", "fakechroot", "proot"), _UNSURE),
    **dict.fromkeys(("systemd-inhibit", "cgexec", "chpst", "setuidgid", "envdir", "runcon"), _UNSURE),
    **dict.fromkeys(("direnv", "capsh", "runuser", "setcap", "start-stop-daemon", "dbus-launch"), _UNSURE),
}

# They start commands too; which of their words these are is not said here.
STARTERS = frozenset(
    {
        *("valgrind", "numactl", "torsocks", "proxychains", "proxychains4", "faketime", "rlwrap", "dotenv"),
        *("nodemon", "watchexec", "concurrently", "cross-env", "hatch", "pdm", "rye", "pipenv", "pixi"),
        *("mise", "asdf", "nix", "nix-shell", "conda", "mamba", "micromamba", "rbenv", "pyenv", "hyperfine"),
        *("op", "doppler", "infisical", "chamber", "aws-vault", "dtach", "abduco", "cmake", "perf", "rr"),
    }
)

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


def inside(wrapper: Wrapper, words: list[Word]) -> Inside:
    """The words of the command that it starts, and the options that it was given itself."""
    texts = [word.text for word in words]
    given = read(wrapper.spec, texts, until=wrapper.before, start=1)
    plain = given.plain[wrapper.before :]
    while wrapper.assigns and plain and ("=" in texts[plain[0]] or texts[plain[0]] == "-"):
        plain = plain[1:]
    return Inside([words[at] for at in plain], given)
