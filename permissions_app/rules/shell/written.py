"""Which words of a command name what it writes, and whether it does no more than read with the others."""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace

from permissions_app.rules.shell.awk import read_awk
from permissions_app.rules.shell.danger import is_system_file
from permissions_app.rules.shell.git_code import subcommand_at
from permissions_app.rules.shell.interpreters import AWKS, SEDS, TARS, awk_program, sed_script
from permissions_app.rules.shell.known_options import KNOWN
from permissions_app.rules.shell.options import Given, Option, Spec, read, spec, with_dashes
from permissions_app.rules.shell.sed import read_sed
from permissions_app.rules.shell.words import UNKNOWN, Word

_ALL = frozenset(
    {
        *(
            "tee",
            "mv",
            "rm",
            "rmdir",
            "touch",
            "truncate",
            "shred",
            "chmod",
            "chown",
            "chgrp",
            "mkdir",
            "unlink",
        ),
        *("patch", "wipefs", "mkswap", "blkdiscard", "sponge", "fdisk", "sfdisk", "parted", "ln"),
    }
)
_INTO = frozenset({"cp", "mv", "install", "rsync", "scp", "ln"})  # the last word is where the others go
_COPY = spec(
    "abdfHilLnpPrRsSTuvxZCDt:g:m:o:",
    "archive attributes-only backup? copy-contents force interactive link dereference no-* preserve? parents "
    "recursive reflink? remove-destination sparse= strip-trailing-slashes symbolic-link suffix= "
    "target-directory= update? verbose one-file-system compare directory group= mode= owner= strip relative",
)
# What they write is said by options.
_OUTPUTS: dict[str, tuple[Spec, frozenset[str]]] = {
    "sort": (KNOWN["sort"].spec, frozenset({"-o", "--output"})),
    "tar": (KNOWN["tar"].spec, frozenset({"-C", "--directory"})),
    "curl": (
        spec(
            "#0123456aBfgGiIjJklLMnNOpqRsSvVZA:b:c:C:d:D:e:E:F:h:H:K:m:o:P:Q:r:t:T:u:U:w:x:X:y:Y:z:",
            "output= output-dir= dump-header= cookie-jar= trace= trace-ascii= stderr= libcurl= etag-save= "
            "hsts= "
            "alt-svc= form= form-string= data= data-raw= data-binary= data-urlencode= json= header= "
            "request= url= "
            "user= user-agent= referer= cookie= upload-file= cert= key= cacert= max-time= "
            "connect-timeout= retry= "
            "retry-delay= write-out= proxy= range= resolve= rate= limit-rate= silent show-error fail "
            "location "
            "verbose include head insecure compressed remote-name remote-name-all remote-time create-dirs "
            "get "
            "no-progress-meter progress-bar fail-with-body http1.1 http2 ipv4 ipv6 continue-at= "
            "oauth2-bearer=",
        ),
        frozenset(
            {"-o", "--output", "--output-dir", "-D", "--dump-header", "-c", "--cookie-jar", "--trace"}
            | {"--trace-ascii", "--stderr", "--libcurl", "--etag-save", "--hsts", "--alt-svc"}
        ),
    ),
    "wget": (
        spec(
            "cdbqvFNSxpkKrEHmLnphV46o:a:e:i:B:t:O:T:w:Q:P:U:A:R:D:I:X:l:",
            "output-document= directory-prefix= output-file= append-output= quiet recursive level= no-* "
            "accept= "
            "reject= user-agent= header= post-data= post-file= timeout= tries= continue timestamping mirror "
            "page-requisites convert-links show-progress input-file= spider",
        ),
        frozenset({"-O", "--output-document", "-P", "--directory-prefix", "-o", "--output-file"})
        | {"-a", "--append-output"},
    ),
    "gcc": (spec("cSEgwvo:I:L:l:O::D:W::f::m::s", "output="), frozenset({"-o", "--output"})),
    "pandoc": (
        spec("sNioct:f:r:w:o:V:M:F:L:H:B:A:T:d:", "output= extract-media= from= to= standalone toc"),
        frozenset({"-o", "--output", "--extract-media"}),
    ),
    "unzip": (spec("lpotqnuvxjaCLXZzd:P:"), frozenset({"-d"})),
    "shuf": (
        spec("ezrn:i:o:", "output= head-count= input-range= echo repeat random-source="),
        frozenset({"-o", "--output"}),
    ),
    "openssl": (spec(long="out= in= keyout= inkey=", one_dash=True), frozenset({"--out", "--keyout"})),
    "ssh": (KNOWN["ssh"].spec, frozenset({"-E"})),
    "psql": (KNOWN["psql"].spec, frozenset({"-o", "--output", "-L", "--log-file"})),
    "git": (spec("o:", "output= output-directory="), frozenset({"-o", "--output", "--output-directory"})),
}
_OUTPUTS |= dict.fromkeys(("g++", "cc", "c++", "clang", "clang++"), _OUTPUTS["gcc"])
_OUTPUTS |= dict.fromkeys(("gtar", "bsdtar"), _OUTPUTS["tar"])
_READS_AS_TEXT = (
    "cat tac bat batcat head tail less more wc grep egrep fgrep rg ag ack zgrep ls stat file diff cmp "
    "comm cut tr jq tree du df test [ basename dirname realpath readlink md5sum sha1sum sha256sum "
    "sha512sum b2sum cksum xxd od hexdump strings nl fold fmt column paste join rev echo printf cd "
    "pushd lsblk blkid findmnt smartctl udevadm shellcheck fd fdfind find gfind source . zcat "
    "pygmentize glow wdiff colordiff delta exa eza lsd open xdg-open which type command export read "
    "mapfile getfacl lsattr look expand unexpand base64 iconv lsof fuser gh mkdocs cloc tokei sort scp "
    "rsync cp install zip curl wget pandoc zipinfo ssh psql dd alias trap eval xargs [[ cal date seq "
    "expr bc ps kill declare"
)
_READS = frozenset(_READS_AS_TEXT.split())
_GIT_READS_AS_TEXT = (
    "diff log show status add commit blame grep ls-files ls-tree check-ignore check-attr shortlog "
    "rev-parse rev-list cat-file whatchanged stage push fetch branch tag reset diff-tree diff-index "
    "diff-files merge-base describe reflog name-rev range-diff annotate hash-object update-index notes "
    "format-patch archive remote config clean bisect for-each-ref count-objects fsck help version"
)
_GIT_READS = frozenset(_GIT_READS_AS_TEXT.split())


def written(name: str, arguments: list[Word], is_folder: Callable[[str], bool]) -> list[Word]:
    """The words that name what it writes, as far as its usual options say. `is_folder`: is there one?"""
    texts = [word.text for word in arguments]
    if name in SEDS:
        return _by_sed(arguments, texts)
    if name in AWKS:
        return [Word(path) for path in read_awk(awk_program(texts)[0]).writes]
    if name == "dd":
        return [Word(text[3:]) for text in texts if text.startswith("of=")]
    if name in _INTO:
        return _by_copy(name, arguments, texts, is_folder)
    if name == "uniq":
        return [arguments[at] for at in read(spec("cdDuizf:s:w:"), texts).plain[1:2]]
    if name in {"perl", "ruby", "yq"} and any(_edits(text) for text in texts):
        return [word for word in arguments if not word.text.startswith("-")]
    if name in _ALL:
        return [word for word in arguments if not word.text.startswith("-")]
    if name in {"zip", "7z", "7za"}:
        return [word for word in arguments if not word.text.startswith("-")][name != "zip" :][:1]
    return _by_option(name, arguments, texts)


def moved(arguments: Sequence[Word]) -> list[Word]:
    """What an `mv` takes away."""
    given = read(_COPY, [word.text for word in arguments])
    plain = [arguments[at] for at in given.plain]
    return list(dict.fromkeys(plain if given.has("-t", "--target-directory") else plain[:-1]))


def emptied_by_rsync(arguments: Sequence[Word]) -> list[Word]:
    """Where an `rsync` removes what its source does not have."""
    given = read(KNOWN["rsync"].spec, [word.text for word in arguments])
    removes = any(option.name.startswith("--delete") for option in given.options)
    target = [arguments[at] for at in given.plain[-1:]]
    return target if removes and not (target and _is_elsewhere(target[0])) else []


def _is_elsewhere(target: Word) -> bool:
    """On another machine."""
    return ":" in target.text.partition("/")[0]


def only_reads(name: str, texts: Sequence[str]) -> bool:
    """Is all that it may write said by `written`?"""
    if name == "git":
        at = subcommand_at(texts)
        return at is not None and texts[at] in _GIT_READS
    if name in SEDS or name in AWKS or name == "uniq":
        return True
    if name in _OUTPUTS and name not in TARS and read(_OUTPUTS[name][0], texts).strange:
        return False
    if name in TARS:
        return not any("x" in text.lstrip("-")[:6] for text in texts[:1]) and "--extract" not in texts
    return name in _READS


def _edits(text: str) -> bool:
    return text.startswith("-") and (text.startswith("--in-p") or (text[1:2] != "-" and "i" in text[1:8]))


def _by_sed(arguments: list[Word], texts: list[str]) -> list[Word]:
    script, stands = sed_script(texts)
    given = read(KNOWN["sed"].spec, texts)
    files = [arguments[at] for at in given.plain if at not in stands]
    edited = files if given.has("-i", "--in-place", "-I") else []
    return [*edited, *(Word(path) for path in read_sed(script).writes)]


def _by_copy(
    name: str, arguments: list[Word], texts: list[str], is_folder: Callable[[str], bool]
) -> list[Word]:
    given = read(
        KNOWN["rsync"].spec if name == "rsync" else KNOWN["scp"].spec if name == "scp" else _COPY, texts
    )
    plain = [arguments[at] for at in given.plain]
    folders = [_value(arguments, option) for option in given.values("-t", "--target-directory")]
    if name in {"rsync", "scp"} or not folders:
        *sources, target = plain or [Word("")]
        if name in {"rsync", "scp"} and _is_elsewhere(target):
            return []
        folders = [target] if target.text else []
        is_one = len(sources) == 1 and name not in {"rsync", "scp"} and "-T" not in texts
        if is_one and not target.text.endswith(("/", ".")) and not is_folder(target.text):
            sources = []
    else:
        sources = plain
    # What a link leads to may be written through it; one to a file of the system changes nothing there.
    linked = [word for word in plain if not is_system_file(word.text)] if name == "ln" else []
    moved = plain if name == "mv" else linked
    return [*folders, *moved, *(_in(folder, source) for folder in folders for source in sources)]


def _in(folder: Word, source: Word) -> Word:
    """`cp templates/CLAUDE.md .` makes a `CLAUDE.md`."""
    name = os.path.basename(source.text.rstrip("/").rpartition(":")[2])  # noqa: PTH119
    pattern = f"{folder.text}/{os.path.basename(source.pattern)}" if source.pattern else None  # noqa: PTH119
    return Word(f"{folder.text.rstrip('/') or '/'}/{name}".replace("//", "/"), pattern)


def _by_option(name: str, arguments: list[Word], texts: list[str]) -> list[Word]:
    if name not in _OUTPUTS:
        return []
    of, names = _OUTPUTS[name]
    if name in TARS:
        given = read(of, with_dashes(of, texts))
        is_made = given.has("-c", "--create", "-r", "-u", "-A", "--append", "--update")
        names = frozenset({"-f", "--file"}) if is_made else names
        return [Word(o.value or "") for o in given.values(*names) if o.value not in {None, "-"}]
    given = read(of, texts)
    found = [_value(arguments, option) for option in given.values(*names)]
    return [word for word in found if word.text not in {"", "-"}] + _by_address(name, texts, given)


def _by_address(name: str, texts: list[str], given: Given) -> list[Word]:
    """`curl -O` makes a file of the address's last name."""
    if name == "curl" and given.has("-O", "--remote-name", "--remote-name-all"):
        return [Word(os.path.basename(texts[at])) for at in given.plain if texts[at].rpartition("/")[2]]  # noqa: PTH119
    return []


def _value(arguments: list[Word], option: Option) -> Word:
    if option.value_at is not None:
        return arguments[option.value_at]
    return replace(arguments[option.at], text=option.value or "", pattern=None)


def may_steer_unseen(word: Word) -> bool:
    """`$(git rev-parse --git-dir)/hooks/x`: what nobody knows, and then a name that git believes."""
    _, unknown, rest = word.text.rpartition(UNKNOWN)
    return bool(unknown) and not {"hooks", "config", "CLAUDE.md", "AGENTS.md", "settings.json"}.isdisjoint(
        rest.split("/")
    )
