"""Variables by which other programs start commands."""

import re
from collections.abc import Iterable

from permissions_app.rules.shell.known_options import is_plain_ssh

_RUNS = re.compile(
    r"BASH_ENV|ENV|PROMPT_COMMAND|PS4|GIT_SSH_COMMAND|GIT_SSH|GIT_EDITOR|GIT_SEQUENCE_EDITOR|GIT_PAGER|"
    r"GIT_EXTERNAL_DIFF|GIT_PROXY_COMMAND|GIT_ASKPASS|SSH_ASKPASS|SUDO_ASKPASS|GIT_CONFIG(_.*)?|"
    r"GIT_EXEC_PATH|"
    r"GIT_TEMPLATE_DIR|EDITOR|VISUAL|PAGER|MANPAGER|LESSOPEN|LESSCLOSE|BROWSER|LD_PRELOAD|LD_AUDIT|"
    r"DYLD_.*|PYTHONSTARTUP|PYTHONBREAKPOINT|PERL5OPT|PERL5DB|RUBYOPT|RUSTC_WRAPPER|TAR_OPTIONS|RSYNC_RSH|"
    r"CVS_RSH|"
    r"PSQL_PAGER|PSQL_EDITOR|BASH_FUNC_.*|SHELLOPTS|BASHOPTS|ZDOTDIR|MAKEFLAGS|NODE_OPTIONS|"
    r"JAVA_TOOL_OPTIONS|"
    r"_JAVA_OPTIONS|FZF_DEFAULT_COMMAND|SSH_PROXY_COMMAND"
)
# Editors and pagers as people name them, a number of processors, an amount of memory, a warning less.
_HARMLESS = re.compile(
    r"|true|:|cat|less( -\w+)*|more|vi|vim|nvim|nano|emacs|code( --wait| -w)?|/bin/(true|cat)|"
    r"/usr/bin/(true|cat)|"
    r"-j ?\d*|--(max-[\w-]+|stack-size)=\d+|--no-[\w-]+|--openssl-legacy-provider|"
    r"--experimental-vm-modules|-Xm[xs]\w+|"
    r"-W ?\w*|/dev/null|firefox|chromium|none"
)


def runs_by(variable: str, values: Iterable[str]) -> bool:
    """May what it is set to be started as a command?"""
    return _RUNS.fullmatch(variable) is not None and not all(
        _HARMLESS.fullmatch(value) or (variable in {"GIT_SSH_COMMAND", "RSYNC_RSH"} and is_plain_ssh(value))
        for value in values
    )
