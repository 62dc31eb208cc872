"""A summary that a person can read, and that gives no secret away to whoever reads it."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from sessions_app.storable import storable

LONGEST = 500  # characters of a summary
LONGEST_VALUE = 200
LOOKED_AT = 1_000  # characters of one value that are looked at; a secret that ends beyond is cut off with it
MASK = "•••"

_TELLING_NAME = (
    r"(?:[a-z0-9_-]{0,40}(?:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key"
    r"|account[_-]?key|credentials?|authorization|cookie|_key)[a-z0-9_-]{0,40}|pwd|pass|auth|key)"
)
_VALUE = r"(\\?\$?\\?\"[^\"\\]*(?:\\?\")?|\$?'[^']*'?|[^\s\"'&;|,)]+)"
_IS_TELLING = re.compile(_TELLING_NAME, re.IGNORECASE)


def _given_to(program: str, flag: str, between: str = r"[\s=]*", value: str = _VALUE) -> re.Pattern[str]:
    """To this program alone the flag means a secret: to others -p is a port, or a folder with its parents."""
    return re.compile(rf"(\b(?:{program})\s(?:[^\s|;&]{{1,200}}\s+){{0,20}}?(?:{flag}){between}(?!-)){value}")


_FLAGS = (
    _given_to(
        r"(?:docker|podman|nerdctl|helm\s+registry|az)\s+login|twine\s+upload|mongo[a-z]{0,8}"
        r"|security\s+[a-z]{1,10}-keychain",
        "-p",
    ),
    _given_to(r"security\s+add-[a-z]{1,10}-password|ldap[a-z]{1,10}", "-w"),
    _given_to(r"zip|unzip|sqlcmd", "-[a-zA-Z]{0,6}P"),
    _given_to(r"7z[arz]?|rar|unrar", "-h?p", between=""),  # without a value behind it, it asks for one
    _given_to(r"redis-cli|valkey-cli|https?|xhs?", "-a"),
    _given_to(r"gh\s+secret\s+set", "-b|--body"),
    # what has no = in it is a file
    _given_to(r"curl", "-[a-zA-Z]{0,6}b", r"\s*", r"(\"[^\"=]*=[^\"]*\"?|'[^'=]*=[^']*'?|[^\s\"'=]*=\S+)"),
)
_PATTERNS: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(r"(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]*-----|\Z)"),
        MASK,
    ),
    (re.compile(r"(?i)\b(authorization|cookie|set-cookie)(\"?\s*[:=]\s*)[^\"'\r\n]+"), rf"\1\2{MASK}"),
    (re.compile(r"(?i)\b(bearer|basic|digest)\s+[\w.~+/=-]{6,}"), rf"\1 {MASK}"),
    (re.compile(r"(?i)([a-z0-9]://)[^/\s@:]*:[^/\s]*@"), rf"\1{MASK}@"),  # user:password@host
    (re.compile(r"(?i)([a-z0-9]://)[^/\s@:]{12,}@"), rf"\1{MASK}@"),  # token@host
    (re.compile(rf"(?i)(?<![a-z0-9])({_TELLING_NAME})(\\?[\"']?\s*[:=]\s*){_VALUE}"), rf"\1\2{MASK}"),
    *((pattern, rf"\1{MASK}") for pattern in _FLAGS),
    (re.compile(rf"(?i)(?<![\w-])(--?{_TELLING_NAME})(\s+){_VALUE}"), rf"\1\2{MASK}"),
    # ALTER USER ada WITH LOGIN PASSWORD 'x', IDENTIFIED BY 'x'
    (
        re.compile(
            r"(?i)(\b(?:(?:user|role)\s+\S{1,100}\s+(?:\w{1,20}\s+){0,6}?password"
            r"|identified\s+(?:with\s+\S{1,40}\s+)?by)\s+)\\?(?:'[^']*'?|\"[^\"]*\"?)"
        ),
        rf"\1{MASK}",
    ),
    # .netrc; without its machine, what is no plain word: there are sentences about logins and passwords
    (re.compile(r"(\b(?:machine\s+\S{1,100}|default)\s+login\s+\S{1,100}\s+password\s+)\S+"), rf"\1{MASK}"),
    (re.compile(r"(\blogin\s+\S{1,100}\s+password\s+)(?=[a-z]{0,100}[^a-z\s.,;:!?'\")])\S+"), rf"\1{MASK}"),
    (
        re.compile(r"(\bvault\s+login\s+(?:-\S{1,100}\s+){0,6})(?=[^\s=\d]{0,100}\d)[^\s=]{6,}(?![^\s=]*=)"),
        rf"\1{MASK}",
    ),
    # aws configure set aws_secret_access_key …, npm config set //registry/:_authToken …
    (re.compile(rf"(?i)(\sset\s+(?:[^\s\"']{{1,80}}[:.])?{_TELLING_NAME})(\s+){_VALUE}"), rf"\1\2{MASK}"),
    (re.compile(rf"(?i)(\"{_TELLING_NAME}\"\s*,\s*\"value\"\s*:\s*){_VALUE}"), rf"\1{MASK}"),
    # curl -u ada:password, mysql -ppassword, sshpass -p password
    (re.compile(r"(?i)(\s(?:-[a-z]{0,6}u|--(?:proxy-)?user)[\s=]*)([^\s:]{1,100}):(\S+)"), rf"\1\2:{MASK}"),
    (re.compile(r"(?i)(\b(?:mysql|mariadb)[\w-]{0,20}\s(?:[^\s|;&]+\s+){0,20}?-p)(\S+)"), rf"\1{MASK}"),
    (re.compile(r"(?i)(\bsshpass\s+-p\s*)(\S+)"), rf"\1{MASK}"),
    (re.compile(r"(?i)(//hooks\.slack\.com/|//discord(?:app)?\.com/api/webhooks/)([^\s\"']+)"), rf"\1{MASK}"),
    (re.compile(r"(?<!\d)\d{6,12}:AA[\w-]{20,}"), MASK),  # of a bot, in an address too
    (
        re.compile(
            r"\b(?:sk-[\w-]{8,}|para_[\w-]{8,}|gh[pousr]_\w{16,}|github_pat_\w{16,}|glpat-[\w-]{10,}"
            r"|[sr]k_(?:live|test)_\w{8,}|GOCSPX-[\w-]{8,}|hvs\.[\w-]{8,}|SG\.[\w.-]{16,}"
            r"|xox[abeprs]-[\w-]{8,}|AKIA[0-9A-Z]{12,}|ASIA[0-9A-Z]{12,}|AIza[\w-]{20,}|ya29\.[\w.-]{10,}"
            r"|hf_\w{16,}|npm_\w{16,}|pypi-[\w-]{16,}|dckr_pat_[\w-]{16,}|AGE-SECRET-KEY-1\w{16,}"
            r"|(?:dop_v1_|shpat_|gsk_|xai-|sbp_|lin_api_)[A-Za-z0-9]{16,}|whsec_[\w+/=]{16,}|ATATT3x[\w=-]{16,}"
            r"|[MNO][\w-]{22,30}\.[\w-]{6,7}\.[\w-]{27,45}"  # of a bot of Discord
            r"|eyJ[\w-]{6,}\.[\w-]{6,}(?:\.[\w-]*)?)"
        ),
        MASK,
    ),
)


def masked(text: str) -> str:
    for pattern, instead in _PATTERNS:
        text = pattern.sub(instead, text)
    return text


def about(arguments: Mapping[str, Any], path: str = "") -> str:
    """In a line: the command, the path or the address, or else all that was given."""
    named = arguments.get("command") or path or arguments.get("url")
    return in_a_line(named) if named else _cut(summary(arguments))


def in_a_line(text: Any) -> str:
    return _cut(_shown(text))


def summary(arguments: Mapping[str, Any]) -> str:
    """`name: value` of each argument, in the order in which the model gave them, until it is long enough."""
    text = ""
    for name, value in arguments.items():
        if len(text) > LONGEST:
            break
        text += f"{', ' if text else ''}{str(name)[:LONGEST_VALUE]}: {_value(str(name), value)}"
    stored: str = storable(text)
    return stored if len(stored) <= LONGEST else stored[: LONGEST - 1] + "…"


def _value(name: str, value: Any) -> str:
    if _IS_TELLING.fullmatch(name):
        return MASK
    if isinstance(value, Mapping):
        inner = (f"{_cut(str(key))}: {_one(str(key), each)}" for key, each in value.items())
        return _cut("{" + _enough(inner) + "}")
    if isinstance(value, list | tuple):
        return _cut("[" + _enough(_one("", each) for each in value) + "]")
    return _one(name, value)


def _enough(parts: Iterator[str]) -> str:
    text = next(parts, "")
    while len(text) <= LONGEST_VALUE and (part := next(parts, None)) is not None:
        text += f", {part}"
    return text


def _one(name: str, value: Any) -> str:
    """What lies deeper is text: a model can nest as deep as it likes."""
    return MASK if _IS_TELLING.fullmatch(name) else _cut(_shown(value))


def _shown(value: Any) -> str:
    return masked(_line(value)[:LOOKED_AT])


def _line(value: Any) -> str:
    return " ".join(str(value)[: 20 * LOOKED_AT].split())


def _cut(line: str) -> str:
    return line if len(line) <= LONGEST_VALUE else line[: LONGEST_VALUE - 1] + "…"
