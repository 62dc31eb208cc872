"""Where a line stands and what its variables hold: in any reading that is possible, the worst counts."""

import pytest

from tests.permissions_app.room import Room

# `{up}` leads from the vault to the root, `{home}` is the server's own folder.
DANGEROUS = [
    # devices
    "cat x > /dev/shm/../sda",
    "cat x > /dev/fd/../../dev/sda",
    # where a redirection is opened
    "cd /dev && cat x > sda",
    "ls && cd /dev && cat x > sda",
    "cd /dev && ls | cat > sda",
    "cd /dev || exit; cat x > sda",
    # a `cd` that may not happen
    "f() { cd a/b/c; }; rm -rf {up}etc",
    "false && cd a/b/c; rm -rf {up}etc",
    "cd a/b/c & rm -rf {up}etc",
    "bash -c 'cd a/b/c'; rm -rf {up}etc",
    "env cd a/b/c; rm -rf {up}etc",
    "timeout 5 cd a/b/c; rm -rf {up}etc",
    "coproc cd a/b/c; rm -rf {up}etc",
    "(cd a/b/c); rm -rf {up}etc",
    "xargs cd a/b/c; rm -rf {up}etc",
    "if false; then cd a/b/c; fi; rm -rf {up}etc",
    "while false; do cd a/b/c; done; rm -rf {up}etc",
    "case x in y) cd a/b/c;; esac; rm -rf {up}etc",
    "cd nope || cd /; rm -rf *",
    # one that leads elsewhere
    "CDPATH=/; cd etc; rm -rf *",
    "export CDPATH=/; cd etc; rm -rf *",
    "read CDPATH <<< /; cd etc; rm -rf *",
    "HOME=/; rm -rf ~/etc",
    "HOME=/etc; cd; rm -rf ssl",
    "cd /; rm -rf ~+",
    "cd /; cd /tmp; rm -rf ~-/etc",
    "PWD=/; rm -rf ~+",
    "OLDPWD=/etc; cd -; rm -rf ssl",
    "cd /etc; cd /tmp; cd -; rm -rf ssl",
    "pushd /etc; pushd /tmp; popd; rm -rf ssl",
    "pushd /etc; pushd /tmp; pushd; rm -rf ssl",
    "shopt -s cdable_vars; x=/etc; cd x; rm -rf ssl",
    "shopt -s lastpipe; echo x | cd /; rm -rf *",
    "eval 'cd /'; rm -rf *",
    "trap 'cd /' DEBUG; rm -rf *",
    # what runs again, or later
    "for i in 1 2; do rm -rf *; cd /; done",
    "f() { rm -rf *; }; cd / && f",
    "f() { cd /; }; f; rm -rf *",
    "f() { cd /; }; time f; rm -rf *",
    "f() { g; }; g() { rm -rf *; }; cd / && f",
    "a=ls; b=ls; c=ls; while :; do $a x; a=$b; b=$c; c=sudo; done",
    # variables
    "x=ls; read x <<< sudo; $x id",
    "x=ls; read -r y x <<< 'a sudo'; $x id",
    "x=ls; read -ra x <<< sudo; $x id",
    "x=ls; printf -v x sudo; $x id",
    "x=ls; printf -vx %s sudo; $x id",
    'x=ls; declare "x=sudo"; $x id',
    "x=ls; builtin declare 'x=sudo'; $x id",
    "x=ls; declare -a 'x=(sudo)'; $x id",
    "x=ls; x[0]=sudo; $x id",
    "x=ls; x=(sudo); $x id",
    "unset x; : ${x:=sudo}; $x id",
    "x=ls; unset x; echo ${x=sudo}; $x id",
    "x=ls; mapfile -t x <<< sudo; $x id",
    "${x:-sudo} id",
    "x=sudo; ${x%y} id",
    'a=(sudo id); "${a[@]}"',
    'rm -rf "${x:-/}"',
    'x=build; unset x; rm -rf "$x/etc"',
    'timeout "${t:-5}" sudo id',
    # builtins that run code, or rename commands
    "BASH_CMDS[x]=/usr/bin/sudo; x id",
    "BASH_ALIASES[x]='sudo id'; x",
    "hash -p /usr/bin/sudo x; x id",
    "mapfile -C 'sudo id' -c 1 a < f",
    "readarray -c1 -C'sudo id' a < f",
    "compgen -W '$(sudo id)'",
    "compgen -C 'sudo id'",
    "x='$(sudo id)'; echo \"${x@P}\"",
    "test -v 'a[$(sudo id)]'",
    "[ -v 'a[$(sudo id)]' ]",
    "[[ -v 'a[$(sudo id)]' ]]",
    "[[ 'a[$(sudo id)]' -eq 1 ]]",
    "x='a[$(sudo id)]'; echo $((x))",
    "echo $((x)); for x in 'a[$(sudo id)]'; do :; done",
    "x='a[$(sudo id)]'; ((x))",
    "x='a[`sudo id`]'; echo ${y[x]}",
    "let 'a[$(sudo id)]'",
    "unset 'a[$(sudo id)]'",
    "read 'a[$(sudo id)]' <<< x",
    "printf -v 'a[$(sudo id)]' x",
    "declare 'a[$(sudo id)]=1'",
]

SECRET = [
    "cat /dev/fd/../cwd/.env",
    "cat /dev/shm/../..{home}/secret_key",
    "cat /dev/shm/link/.env",
    "cd .. && cat < home/secret_key",
    "cd nope || cat ../home/secret_key",
    "cd nope; cat ../home/secret_key",
    "f() { cat home/secret_key; }; cd ..; f",
    'f=(.env); cat "${f[0]}"',
    'f=(a .env); cat "${f[@]}"',
    'f=(.e); cat "${f[0]}nv"',
    'f=(); f+=(.env); cat "${f[0]}"',
    'declare -A f=([a]=.env); cat "${f[a]}"',
    'read f <<< .env; cat "$f"',
    'read <<< .env; cat "$REPLY"',
    "IFS=, read a b <<< 'x,.env'; cat \"$b\"",
    'echo .env | while read f; do cat "$f"; done',
    'while read -r f; do cat "$f"; done <<< .env',
    'f() { read x; cat "$x"; }; f <<< .env',
    'mapfile -t a <<< .env; cat "${a[0]}"',
    "cat .[[:alpha:]]nv",
    "cat .[^x]nv",
    "cat .[[.e.]]nv",
    "shopt -s dotglob; cat *env",
    "GLOBIGNORE=x; cat *env",
    "bash -O dotglob -c 'cat *env'",
    "cat /proc/$PPID/environ",
    "cat /proc/$$/environ",
    "cd /proc && cat $PPID/environ",
    'cat "${x:-.env}"',
    'x=.env; cat "${x##*/}"',
    'x=.env; cat "$x"',
    'y=x; x=.env; cat "${!y}"',
    'y=x; echo "${!y}"; x=.env',
    "echo .env; cat $_",
    "x=.env; export x; node y.js",
    "x=.env node y.js",
    "set -ea; x=.env; node y.js",
    'mapfile -t a < <(echo .env); cat "${a[0]}"',
    'while read f; do cat "$f"; done < <(echo .env)',
    "shopt -s nocaseglob; cat TLS.K*",
    "cd n0; cd n1; cd n2; cd n3; cd n4; cd n5; cd n6; cd n7; cat ../home/secret_key",
]

UNREADABLE = [
    "x=ls; declare -n r=x; r=sudo; $x id",
    'x=ls; export "$k"; $x id',
    'x=ls; read "$k" < f; $x id',
    "printf -v IFS ,; c=a,b; $c",
    "x=ls; getopts ab x; $x",
    "x=ls; read x < f; $x",
    'echo "${x@P}"',
    "x='a[$(ls)]'; echo $((x))",
    'cd "$X" && echo x > config',
    'cd "$X" && tee settings.json < x',
    "pushd -n /etc; popd; rm -rf ssl",
    "popd; rm -rf x",
    "cd ~2 && rm -rf x",
    "hash -p ./x ls; ls",
]

CONTROL_FILES = [
    "cd .git && echo x > config",
    "cd .git && echo x >> config || ls",
    "cd .git && ls | tee x > config",
    "cd .claude && cat > settings.json <<E\n{}\nE",
    "cd .claude; cat > settings.json",
    "cd notes; cd ..; cd .vscode && { ls; } > settings.json",
    "cd notes && cd - && echo x > CLAUDE.md",
]

HARMLESS = [
    'while read -r f; do wc -l "$f"; done < list.txt',
    "cd sub && make -j4 > ../log.txt",
    'for f in *.md; do cp "$f" "out/${f%.md}.txt"; done',
    'mapfile -t a < x; echo "${#a[@]}"',
    'files=(*.md); wc -l "${files[@]}"',
    "pushd docs; make; popd",
    "pushd docs && make html && popd && ls",
    "pushd docs; make; popd; rm -rf build",
    'x=".env"; echo "$x"',
    'x=".env"; grep -qxF "$x" .gitignore || echo "$x" >> .gitignore',
    'names=(.env id_rsa); printf "%s\\n" "${names[@]}" >> .gitignore',
    "cd notes; ls; cd ..; rm -rf build",
    "cd notes && rm -rf drafts; cd ..",
    "cd notes; rm -rf *",
    "cd notes || exit 1; rm -rf *",
    "cd build || exit 1; rm -rf *",
    'cd build || { echo "no build"; exit 1; }; rm -rf *',
    "if cd build; then rm -rf *; fi",
    "mkdir -p build && cd build && cmake .. && make",
    "mkdir -p build; cd build; cmake ..; make",
    "(cd notes && tar czf ../notes.tgz .)",
    "(cd build && rm -rf *) && echo clean",
    'cd "$(mktemp -d)" && touch x && ls',
    'tmp=$(mktemp -d); cd "$tmp" && git init && cd - && rm -rf "$tmp"',
    'for d in a b c; do mkdir -p "$d" && cp x "$d/"; done',
    'for d in */; do cd "$d" && ls && cd ..; done',
    'for d in */; do cd "$d" || continue; git pull; cd ..; done',
    "for d in a b; do cd $d; make; cd ..; done",
    'for d in a b; do (cd "$d" && make > log.txt); done',
    "while [ ! -d .git ]; do cd ..; done; git status",
    "until curl -s localhost:8000 > /dev/null; do sleep 1; done",
    "while true; do date >> log.txt; sleep 1; [ -f stop ] && break; done",
    'n=0; while read -r line; do n=$((n + 1)); done < list.txt; echo "$n"',
    "n=$(wc -l < list.txt); echo $((n * 2))",
    'i=0; while ((i < 3)); do echo "$i"; ((i++)); done',
    'while IFS=: read -r user _ uid _; do echo "$user $uid"; done < /etc/passwd',
    'git branch --merged | while read -r b; do git branch -d "$b"; done',
    'find . -name \'*.md\' | while read -r f; do mv "$f" "${f%.md}.txt"; done',
    'ls | while read -r f; do echo "- $f"; done > index.md',
    "printf '%s\\n' a b c | while read -r n; do mkdir -p \"$n\"; done",
    'read -r version < VERSION; git tag "v$version"',
    'read -ra parts <<< "a b c"; echo "${parts[1]}"',
    'IFS=\',\' read -ra parts <<< "$csv"; for p in "${parts[@]}"; do echo "$p"; done',
    "readarray -t lines < notes.md; printf '%s\\n' \"${lines[@]}\"",
    'args=(-q --tb=short); args+=(-x); pytest "${args[@]}"',
    'names=(ada ben cy); for n in "${names[@]}"; do echo "$n"; done',
    'declare -A ports=([web]=80 [db]=5432); for k in "${!ports[@]}"; do echo "$k ${ports[$k]}"; done',
    "declare -i n=3; echo $((n + 1))",
    'arr=($(ls)); echo "${#arr[@]}"',
    'opts="-v"; opts+=" -x"; pytest $opts',
    'dirs="build"; dirs+=" dist"; rm -rf $dirs',
    'out=build; rm -rf "${out:?}"/*',
    'file=notes/a.md; echo "${file##*/}" "${file%.*}" "${file^^}"',
    'dir=${1:-notes}; ls "$dir"',
    ': "${PORT:=8000}"; python -m http.server "$PORT"',
    "printf -v stamp '%(%F)T' -1; echo \"$stamp\" > stamp.txt",
    'log() { echo "[$(date +%T)] $*"; }; log start; make; log done',
    'build() { cd "$1" && make && cd ..; }; build docs; build src',
    'die() { echo "$1" >&2; exit 1; }; [ -f x ] || die "no x"',
    'backup() { local f=$1; cp "$f" "$f.bak"; }; backup notes/a.md',
    'while getopts "ab:" opt; do case $opt in a) echo a;; b) echo "$OPTARG";; esac; done',
    'select f in *.md; do cat "$f"; break; done',
    "trap 'echo bye' EXIT; cd notes && ls",
    'set -euo pipefail; cd notes; for f in *.md; do wc -w "$f"; done',
    "cd && ls",
    'cd notes 2>/dev/null || echo "no notes"',
    "cd notes && git log --oneline > ../log.txt && cd ..",
    "cd notes && { ls; date; } > out.txt",
    'cd notes && for f in *.md; do wc -l "$f"; done > counts.txt',
    'sleep 1 & pid=$!; kill "$pid"',
    'unset FOO; echo "${FOO:-none}"',
    'shopt -s nullglob; for f in *.tmp; do rm -f "$f"; done',
    "[[ -v CI ]] && echo ci",
    "compgen -c | sort | head",
    "ls [[:upper:]]*",
    "echo $$ > pid.txt",
    'total=0; for f in *.md; do total=$((total + $(wc -l < "$f"))); done; echo $total',
    "export NODE_ENV=test; for s in lint test; do npm run $s; done",
    "cp /dev/null /dev/shm/x; ls /dev/shm",
    "body='- [ ] run `ls` and $(date)'; gh pr create --title x --body \"$body\"",
    'dst=/tmp/out; mkdir -p "$dst" && cp -r notes "$dst"/',
    'echo "${PWD##*/}" "$OLDPWD"',
    "[ -d build ] && cd build; ls",
    'set -- "$@"; x=.env; echo $x',
]


def _in(room: Room, command: str) -> str:
    up = "../" * (len(room.vault.parts) - 1)
    return command.replace("{up}", up).replace("{home}", str(room.setting.home))


@pytest.mark.parametrize("command", DANGEROUS)
def test_what_is_dangerous_in_any_reading_is_denied(room: Room, command: str) -> None:
    command = _in(room, command)
    assert room.at_full.bash(command) == room.without_wall.bash(command) == ("deny", "dangerous")


@pytest.mark.parametrize("command", SECRET)
def test_what_opens_a_secret_in_any_reading_is_denied(room: Room, command: str) -> None:
    command = _in(room, command)
    assert room.at_full.bash(command) == room.bash(command) == ("deny", "deny_list")


@pytest.mark.parametrize("command", UNREADABLE)
def test_what_nobody_can_know_asks(room: Room, command: str) -> None:
    assert room.at_full.bash(command) == ("ask", "unreadable_command")
    assert room.bash(command) == ("allow", "behind_wall")


@pytest.mark.parametrize("command", CONTROL_FILES)
def test_a_file_is_written_where_its_command_runs(room: Room, command: str) -> None:
    assert room.at_full.bash(command) == ("ask", "control_file")


@pytest.mark.parametrize("command", HARMLESS)
def test_a_harmless_line_runs(room: Room, command: str) -> None:
    assert room.at_full.bash(command) == ("allow", "operator")
    assert room.bash(command) == ("allow", "behind_wall")


def test_a_write_through_a_descriptor_leads_where_the_process_stands(room: Room) -> None:
    assert room.at_full.bash("echo x > /dev/fd/../cwd/CLAUDE.md")[0] == "deny"


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ("cd notes && echo x > drafts/a", "agent_writes"),
        ("cd drafts && echo x > a", "operator"),
        ("echo x > drafts/a", "operator"),
    ],
)
def test_an_agent_writes_where_its_definition_leads_wherever_it_stands(
    room: Room, command: str, answer: str
) -> None:
    agent = room.at_full.with_(agent_writes=("drafts/*",))
    assert agent.bash(command)[1] == answer


def test_a_cd_into_a_folder_that_the_line_took_away_may_fail(room: Room) -> None:
    assert room.at_full.bash("cd notes; rm -rf *") == ("allow", "operator")
    for command in ("rm -r notes; cd notes; rm -rf *", "mv notes n; cd notes; rm -rf *"):
        assert room.at_full.bash(command) == ("deny", "dangerous")


def test_a_link_is_left_both_ways(room: Room) -> None:
    (room.vault / "link").symlink_to("/usr/lib")
    assert room.at_full.bash("cd link; cd -P ..; rm -rf lib") == ("deny", "dangerous")


def test_a_glob_finds_hidden_files_once_the_shell_was_told(room: Room) -> None:
    (room.vault / "notes/.env.local").write_text("KEY=1")
    assert room.at_full.bash("cat notes/*") == ("allow", "operator")
    assert room.at_full.bash("shopt -s dotglob; cat notes/*") == ("deny", "deny_list")


def test_a_line_that_never_says_the_same_twice_is_given_up(room: Room) -> None:
    steps = "; ".join(f"a{n}=$a{n + 1}" for n in range(12))
    start = "; ".join(f"a{n}=ls" for n in range(13))
    command = f"{start}; while :; do $a0 x; {steps}; a12=sudo; done"
    assert room.at_full.bash(command)[0] in {"ask", "deny"}


def test_too_many_directories_are_unclear(room: Room) -> None:
    moves = "; ".join(f"cd n{number}" for number in range(8))
    assert room.at_full.bash(f"{moves}; ls") == ("allow", "operator")
    assert room.at_full.bash(f"{moves}; rm -rf build") == ("ask", "unreadable_command")


def test_after_too_many_readings_of_a_word_the_rest_of_the_line_is_still_read(room: Room) -> None:
    words = " ".join(f"$v{number}" for number in range(6))
    values = "; ".join(f"v{number}=a; v{number}=b" for number in range(6))
    assert room.at_full.bash(f"{values}; ls {words}") == ("ask", "unreadable_command")
    assert room.at_full.bash(f"{values}; ls {words}; sudo id") == ("deny", "dangerous")
