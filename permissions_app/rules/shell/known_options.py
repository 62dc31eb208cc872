"""The options of programs that can run code which are known to run none. Whatever else they are given, nobody
can say what it does."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from permissions_app.rules.shell.options import Spec, read, spec

Check = Callable[[str], bool]


@dataclass(frozen=True)
class Known:
    spec: Spec
    until: int | None = None  # words that are no options, after which its own options end
    checks: dict[str, Check] = field(default_factory=dict)  # which values of an option are harmless


def fits(pattern: str) -> Check:
    compiled = re.compile(pattern, re.DOTALL)
    return lambda value: compiled.fullmatch(value) is not None


def _never(value: str) -> bool:
    return False


def is_plain_ssh(text: str) -> bool:
    """A command for reaching another machine that runs nothing on this one."""
    name, *rest = text.split() or [""]
    has_code = re.search(r"[\\'\"`$;&|<>\n]", text)
    return name in {"ssh", "/usr/bin/ssh"} and not has_code and is_harmless(KNOWN["ssh"], rest)


def is_harmless(known: Known, texts: Sequence[str]) -> bool:
    given = read(known.spec, texts, until=known.until)
    return not given.strange and all(
        option.value is not None and check(option.value)
        for name, check in known.checks.items()
        for option in given.values(name)
    )


_MODULE = fits(r"(?!data:|https?:)[\w@./~+-]+")
_COMPRESSES = fits(
    r"(gzip|pigz|bzip2|pbzip2|lbzip2|xz|pixz|zstd|zstdmt|lz4|lzop|lzip|lzma|brotli|cat)( -[\w=-]+)*"
)
# Not ProxyCommand, LocalCommand, KnownHostsCommand, PKCS11Provider, Include and the like.
_SSH_SETTING = fits(
    r"(?i:addkeystoagent|addressfamily|batchmode|bindaddress|checkhostip|ciphers|compression|"
    r"connectionattempts|"
    r"connecttimeout|controlmaster|controlpath|controlpersist|exitonforwardfailure|forwardagent|"
    r"hashknownhosts|"
    r"hostkeyalgorithms|hostkeyalias|hostname|identitiesonly|identityfile|ipqos|kexalgorithms|loglevel|macs|"
    r"numberofpasswordprompts|passwordauthentication|port|preferredauthentications|proxyjump|"
    r"pubkeyacceptedalgorithms|"
    r"pubkeyacceptedkeytypes|pubkeyauthentication|requesttty|sendenv|serveralivecountmax|serveraliveinterval|"
    r"stricthostkeychecking|tcpkeepalive|updatehostkeys|user|userknownhostsfile|visualhostkey)[ =][^`$|;&]*"
)
_PHP_SETTING = fits(r"(?!.*(auto_|extension|include|data:|disable_)).*")
_SSH_OPTIONS = "46AaCfGgKkMNnqsTtVvXxYyB:b:c:D:e:i:J:L:l:m:O:o:p:Q:R:S:W:w:E:"
_VIM = "RMmnbyZlLerdDo::O::p::v"

KNOWN: dict[str, Known] = {
    "ssh": Known(spec(_SSH_OPTIONS), 2, {"-o": _SSH_SETTING}),
    "scp": Known(spec("346ABCOpqRrTvc:i:J:l:o:P:X:"), None, {"-o": _SSH_SETTING}),
    "sftp": Known(spec("46AaCfNpqrvB:c:i:J:l:o:P:R:s:"), None, {"-o": _SSH_SETTING}),
    "rsync": Known(
        spec(
            "vqarRbudlLkKHpEAXogDtUNSnWxyzcCmIOJihP0sF46VT:B:e:f:",
            "verbose quiet archive recursive relative no-* backup update links copy-links safe-links "
            "hard-links "
            "copy-unsafe-links copy-dirlinks keep-dirlinks perms executability acls xattrs owner group "
            "devices "
            "specials times omit-dir-times sparse dry-run whole-file one-file-system existing delete "
            "ignore-existing delete-before delete-during delete-delay delete-after delete-excluded force "
            "remove-source-files numeric-ids size-only fuzzy compress cvs-exclude prune-empty-dirs partial "
            "progress stats human-readable itemize-changes checksum inplace append append-verify dirs mkpath "
            "ignore-errors ignore-times list-only open-noatime preallocate super fake-super version help "
            "ignore-missing-args delete-missing-args secluded-args protect-args blocking-io 8-bit-output "
            "backup-dir= suffix= chmod= chown= usermap= groupmap= max-delete= max-size= min-size= "
            "partial-dir= timeout= contimeout= modify-window= temp-dir= compare-dest= copy-dest= link-dest= "
            "compress-level= compress-choice= skip-compress= exclude= exclude-from= include= include-from= "
            "filter= files-from= from0 address= port= out-format= log-file= log-file-format= password-file= "
            "bwlimit= info= debug= rsh= rsync-path= iconv= protocol= checksum-choice= outbuf= stop-after=",
        ),
        None,
        {"-e": is_plain_ssh, "--rsh": is_plain_ssh, "--rsync-path": _never},
    ),
    "tar": Known(
        spec(
            "AcdrtuxvzjJZapPkmnshlSwWUoOBGif:C:T:X:b:g:H:K:L:N:V:I:",
            "create extract get list append update diff compare concatenate catenate delete verbose gzip "
            "gunzip "
            "bzip2 xz lzma lzip lzop zstd compress auto-compress no-auto-compress file= directory= exclude= "
            "exclude-from= files-from= strip-components= exclude-vcs exclude-vcs-ignores exclude-caches "
            "exclude-backups exclude-tag= exclude-ignore= one-file-system preserve-permissions dereference "
            "same-permissions same-owner no-same-owner no-same-permissions numeric-owner owner= group= mode= "
            "mtime= transform= xform= wildcards no-wildcards anchored no-anchored ignore-case keep-old-files "
            "skip-old-files keep-newer-files overwrite unlink-first to-stdout totals null no-null "
            "verbatim-files-from "
            "sort= format= posix label= checkpoint? checkpoint-action= to-command= use-compress-program= "
            "rsh-command= rmt-command= info-script= new-volume-script= sparse touch warning= "
            "show-transformed-names "
            "absolute-names recursion no-recursion newer= newer-mtime= after-date= hard-dereference "
            "blocking-factor= "
            "listed-incremental= level= multi-volume remove-files verify test-label full-time utc help "
            "version "
            "xattrs no-xattrs acls no-acls selinux no-selinux delay-directory-restore record-size= "
            "quoting-style= "
            "starting-file= occurrence? ignore-failed-read ignore-zeros pax-option= block-number",
        ),
        None,
        {
            "-I": _COMPRESSES,
            "--use-compress-program": _COMPRESSES,
            "--checkpoint-action": fits("dot|echo|bell"),
            **dict.fromkeys(
                ("--to-command", "--rsh-command", "--rmt-command", "--info-script", "--new-volume-script"),
                _never,
            ),
        },
    ),
    "sort": Known(
        spec(
            "bdfghiMnRrVcCmsuzk:o:S:t:T:",
            "ignore-leading-blanks dictionary-order ignore-case general-numeric-sort ignore-nonprinting "
            "month-sort "
            "human-numeric-sort numeric-sort random-sort random-source= reverse sort= version-sort "
            "batch-size= "
            "check? merge key= output= stable buffer-size= field-separator= temporary-directory= "
            "parallel= unique "
            "zero-terminated debug files0-from= compress-program= help version",
        ),
        None,
        {"--compress-program": _COMPRESSES},
    ),
    "sed": Known(
        spec(
            "nrEszubi::e:f:l:I::Ha",
            "quiet silent debug expression= file= follow-symlinks in-place? line-length= posix "
            "regexp-extended "
            "separate sandbox unbuffered null-data zero-terminated binary help version",
        )
    ),
    "awk": Known(
        spec(
            "F:v:f:e:E:OPcCghknNrStVsW:",
            "field-separator= assign= file= source= exec= posix traditional re-interval sandbox lint? bignum "
            "characters-as-bytes use-lc-numeric optimize no-optimize csv help version",
        ),
        0,
        {"-W": fits("version|posix|interactive")},
    ),
    "python": Known(
        spec(
            "bBdEhiIOPqRsSuvVx?W:X:m:",
            "help version help-env help-xoptions help-all check-hash-based-pycs=",
            ends="-m",
        ),
        0,
    ),
    "node": Known(
        spec(
            "hvcir:C:",
            "help version check interactive v8-options test watch watch-path= watch-preserve-output inspect? "
            "inspect-brk? inspect-port= require= import= loader= experimental-loader= conditions= env-file= "
            "env-file-if-exists= enable-source-maps preserve-symlinks preserve-symlinks-main title= "
            "use-openssl-ca "
            "test-reporter= test-reporter-destination= test-name-pattern= test-skip-pattern= test-only "
            "test-timeout= "
            "test-concurrency= unhandled-rejections= stack-trace-limit= icu-data-dir= dns-result-order= "
            "throw-* "
            "max-* no-* trace-* experimental-strip-types experimental-vm-modules experimental-test-* "
            "expose-gc "
            "experimental-modules experimental-json-modules experimental-specifier-resolution= harmony* "
            "cpu-prof "
            "heap-prof prof pending-deprecation abort-on-uncaught-exception tls-* stack-size=",
        ),
        0,
        dict.fromkeys(("-r", "--require", "--import", "--loader", "--experimental-loader"), _MODULE),
    ),
    "perl": Known(spec("acnpsSTtuUvVwWXF:I:i::0::l::"), 0),
    "ruby": Known(
        spec(
            "acdhlnpsSvwWyF:I:r:C:i::0::K:E:T::",
            "version verbose help copyright yjit jit enable= disable= encoding= external-encoding= "
            "internal-encoding= debug dump= yydebug",
        ),
        0,
        {"-r": _MODULE},
    ),
    "php": Known(
        spec(
            "c:d:z:f:S:t:nqlsiwvmh", "help version ini define= file= server= docroot= no-php-ini syntax-check"
        ),
        0,
        {"-d": _PHP_SETTING, "--define": _PHP_SETTING},
    ),
    "vim": Known(spec(_VIM, "help version clean noplugin not-a-term ttyfail startuptime= literal")),
    "gdb": Known(
        spec(
            long="q quiet silent batch nx n nh args p= pid= c= core= d= directory= e= exec= s= symbols= se= "
            "cd= tty= tui w nw help h version v readnow statistics return-child-result "
            "ex= eval-command= x= command= ix= iex= init-command= init-eval-command=",
            one_dash=True,
            ends="--args",
        ),
        None,
        dict.fromkeys(
            (
                "--ex",
                "--eval-command",
                "--x",
                "--command",
                "--ix",
                "--iex",
                "--init-command",
                "--init-eval-command",
            ),
            _never,
        ),
    ),
    "lldb": Known(spec("p:n:c:f:bwxXhv", "attach-pid= attach-name= core= file= batch wait-for help version")),
    "nc": Known(
        spec(
            "46bCDdFhklNnrStUuvZzI:i:M:m:O:P:p:q:s:T:V:W:w:X:x:",
            "ssl listen keep-open wait= send-only recv-only udp verbose nodns idle-timeout= crlf "
            "source-port= "
            "source= ssl-verify proxy= proxy-type= version help output= append-output broker chat delay= "
            "max-conns= allow= deny= no-shutdown ssl-cert= ssl-key= ssl-trustfile=",
        )
    ),
    "sqlite3": Known(
        spec(
            long="header noheader headers csv json column line list html table markdown box quote tabs ascii "
            "readonly bail batch interactive version help echo stats memtrace safe nofollow separator= "
            "newline= "
            "nullvalue=",
            one_dash=True,
        )
    ),
    "psql": Known(
        spec(
            "d:h:U:p:F:R:P:v:T:c:f:o:L:AtxqlabeEsSXwWn1Hz0V?",
            "dbname= host= username= port= field-separator= record-separator= pset= set= variable= "
            "table-attr= "
            "command= file= output= log-file= no-align tuples-only expanded quiet list echo-all echo-errors "
            "echo-queries echo-hidden single-step single-line no-psqlrc no-password password no-readline "
            "html csv "
            "single-transaction field-separator-zero record-separator-zero version help?",
        )
    ),
    "mysql": Known(
        spec(
            "u:h:P:p::D:S:e:NBtsvqABbCfHIinrTUVwX",
            "user= host= port= password? database= socket= execute= skip-column-names batch table silent "
            "verbose "
            "quick no-auto-rehash comments compress force html xml raw safe-updates vertical version help "
            "default-character-set= protocol= ssl-* ssl-mode= connect-timeout= max-allowed-packet= "
            "column-names "
            "default-auth= skip-* reconnect local-infile? no-beep defaults-group-suffix= show-warnings",
        )
    ),
}
_SAME = {
    "tar": ("gtar", "bsdtar"),
    "sort": ("gsort",),
    "sed": ("gsed",),
    "awk": ("gawk", "mawk", "nawk"),
    "node": ("nodejs",),
    "vim": ("vi", "nvim", "view", "vimdiff", "gvim", "rvim"),
    "nc": ("ncat", "netcat"),
    "mysql": ("mariadb",),
}
KNOWN |= {other: KNOWN[name] for name, others in _SAME.items() for other in others}
_VERSIONED = re.compile(r"(?:(python|pypy)|(perl)|(ruby|jruby)|(php))[\d.]*")


def known(name: str) -> Known | None:
    if name in KNOWN:
        return KNOWN[name]
    found = _VERSIONED.fullmatch(name)
    if found is None:
        return None
    return KNOWN[("python", "perl", "ruby", "php")[(found.lastindex or 1) - 1]]
