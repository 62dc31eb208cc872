"""The files that say what a command runs, where its words do not name them: what `make` and `npm test` do.

Some of them name others in turn (`include`, `main`, `import`): those are not followed.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from permissions_app.rules.shell.git_code import GIT
from permissions_app.rules.shell.interpreters import is_interpreter
from permissions_app.rules.shell.known_options import known
from permissions_app.rules.shell.options import Given, Spec, read, spec
from permissions_app.rules.shell.runners import SHELLS

MOST_WORDS = 4  # of a command that are looked at as folders
MOST_FOLDERS = 8  # around a test


@dataclass(frozen=True)
class _Recipe:
    spec: Spec
    folders: tuple[str, ...]  # options that say where it begins
    files: tuple[str, ...]  # options that say which file it is
    usual: tuple[str, ...]  # which it is otherwise
    of_word: Callable[[str], Iterator[str]] | None = None  # those that a word which is no option speaks of


def _below(*files: str) -> Callable[[str], Iterator[str]]:
    def of_word(word: str) -> Iterator[str]:
        # `.[dev]` are the extras of `pip`.
        folder = word.partition("[")[0] or "."
        yield from (os.path.join(folder, file) for file in files)  # noqa: PTH118

    return of_word


def _around_test(word: str) -> Iterator[str]:
    """`tests/unit/test_a.py::test_b`: pytest reads one in each folder on the way."""
    folder = word.partition("::")[0]
    for _ in range(MOST_FOLDERS):
        yield os.path.join(folder, "conftest.py")  # noqa: PTH118
        folder = os.path.dirname(folder)  # noqa: PTH120
        if folder in {"", "/"}:
            return


def _of_application(word: str) -> Iterator[str]:
    """`src.app:app`"""
    path = word.partition(":")[0].removesuffix(".py").replace(".", "/")
    yield from (f"{path}.py", f"{path}/__init__.py")


_MAKE = _Recipe(
    spec(
        "bBdeijkLnOpqrRsStvwC:f:I:o:W:E:j::l::", "directory= file= makefile= include-dir= jobs? always-make"
    ),
    ("-C", "--directory"),
    ("-f", "--file", "--makefile"),
    ("Makefile", "makefile", "GNUmakefile"),
)
_JUST = _Recipe(
    spec("nqvlf:d:", "justfile= working-directory= dry-run quiet list"),
    ("-d", "--working-directory"),
    ("-f", "--justfile"),
    ("justfile", "Justfile", ".justfile"),
)
_NODE = _Recipe(
    spec("sC:w:", "prefix= cwd= dir= workspace= silent"),
    ("-C", "--prefix", "--cwd", "--dir", "-w", "--workspace"),
    (),
    ("package.json", ".npmrc"),
)
_GRADLE = _Recipe(
    spec("p:b:c:", "project-dir= build-file= settings-file="),
    ("-p", "--project-dir"),
    ("-b", "--build-file"),
    (
        *("build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts", "gradle.properties"),
        "gradle/wrapper/gradle-wrapper.properties",
    ),
)
_CMAKE = _Recipe(
    spec("S:B:D:G:P:C:E:j:t:", "build= preset= target= config= parallel= install="),
    ("-S", "--build"),
    (),
    ("CMakeLists.txt", "CMakePresets.json", "Makefile", "build.ninja"),
    _below("CMakeLists.txt"),
)
_PYTEST = _Recipe(
    spec("c:k:m:n:p:o:W:r:xqvsl", "rootdir= config-file= ignore= cov= tb= maxfail="),
    ("--rootdir",),
    ("-c", "--config-file"),
    ("conftest.py", "tests/conftest.py", "pyproject.toml", "pytest.ini", "setup.cfg", "tox.ini"),
    _around_test,
)
_COMPOSE = ("compose.yaml", "docker-compose.yml", "Dockerfile")


def _here(*files: str, of_word: Callable[[str], Iterator[str]] | None = None) -> _Recipe:
    return _Recipe(spec("C:f:", "file= directory="), ("-C", "--directory"), ("-f", "--file"), files, of_word)


def _configured(name: str, *more: str) -> _Recipe:
    """A program of JavaScript with a file of its own."""
    files = (*(f"{name}.{end}" for end in ("js", "ts", "mjs", "cjs", "json")), *more, "package.json")
    options = ("-c", "-f", "--config", "--gulpfile", "--gruntfile")
    return _Recipe(spec("c:f:", "config= gulpfile= gruntfile="), (), options, files)


def _application(*files: str) -> _Recipe:
    of = spec("A:c:", "app= config= chdir= app-dir=")
    return _Recipe(of, ("--chdir", "--app-dir"), (), files, _of_application)


_PIP = _here("pyproject.toml", of_word=_below("setup.py", "pyproject.toml", "setup.cfg"))
_RECIPES: dict[str, _Recipe] = {
    **dict.fromkeys(("make", "gmake"), _MAKE),
    "just": _JUST,
    **dict.fromkeys(("npm", "yarn", "pnpm", "npx", "bun", "bunx"), _NODE),
    "task": _here("Taskfile.yml", "Taskfile.yaml"),
    "rake": _here("Rakefile", "rakefile", "Rakefile.rb"),
    "bundle": _here("Gemfile"),
    "ninja": _here("build.ninja"),
    "cmake": _CMAKE,
    "tox": _here("tox.ini", "pyproject.toml"),
    "nox": _here("noxfile.py"),
    **dict.fromkeys(("pytest", "py.test"), _PYTEST),
    **dict.fromkeys(("pip", "pip3"), _PIP),
    **dict.fromkeys(("invoke", "inv"), _here("tasks.py", "tasks/__init__.py", "invoke.yaml")),
    "fab": _here("fabfile.py"),
    "mise": _here("mise.toml", ".mise.toml", "mise/config.toml", ".tool-versions"),
    "pre-commit": _here(".pre-commit-config.yaml"),
    "cargo": _here("Cargo.toml", "build.rs", "src/main.rs", ".cargo/config.toml"),
    "go": _here("go.mod", "main.go", of_word=_below("main.go")),
    **dict.fromkeys(("gradle", "gradlew"), _GRADLE),
    **dict.fromkeys(("mvn", "mvnw"), _here("pom.xml", ".mvn/wrapper/maven-wrapper.properties")),
    "composer": _here("composer.json"),
    "deno": _here("deno.json"),
    "terraform": _here("main.tf"),
    **dict.fromkeys(("docker", "podman", "docker-compose"), _here(*_COMPOSE)),
    **dict.fromkeys(("poetry", "hatch", "pdm", "poe"), _here("pyproject.toml")),
    "uv": _PIP,
    **{
        name: _configured(f"{name}.config")
        for name in ("jest", "vitest", "webpack", "vite", "rollup", "eslint", "playwright")
    },
    "gulp": _configured("gulpfile"),
    "grunt": _configured("Gruntfile", "Gruntfile.coffee"),
    **{name: _configured(name) for name in ("nodemon", "turbo", "lerna", "nx")},
    "flask": _application("app.py", "wsgi.py", ".flaskenv"),
    **dict.fromkeys(("uvicorn", "gunicorn", "celery"), _application("gunicorn.conf.py")),
}
# What git starts by itself, below where it stands. It is no recipe: what else its words name is only kept.
_HOOKS = {
    "commit": ("pre-commit", "prepare-commit-msg", "commit-msg", "post-commit"),
    "merge": ("pre-merge-commit", "prepare-commit-msg", "commit-msg", "post-merge"),
    "pull": ("pre-merge-commit", "post-merge", "pre-rebase", "post-rewrite"),
    "push": ("pre-push",),
    "rebase": ("pre-rebase", "post-rewrite", "post-checkout"),
    **dict.fromkeys(("checkout", "switch", "worktree"), ("post-checkout",)),
    "am": ("applypatch-msg", "pre-applypatch", "post-applypatch"),
}
_RUNS_FILES = frozenset(
    {"sed", "gsed", ".", "source", "pipx", "uvx", "parallel", "entr", "xargs", "find", "env", "direnv"}
)
# What an interpreter runs where the word that says it is a folder, or lacks its end.
_ENTRIES = {
    **dict.fromkeys(("python", "pypy"), ("/__main__.py",)),
    **dict.fromkeys(
        ("node", "nodejs", "bun", "tsx", "ts-node"),
        ("/package.json", "/index.js", "/index.ts", ".js", ".ts", ".mjs", ".cjs"),
    ),
}


def runs_files(program: str) -> bool:
    name = os.path.basename(program)  # noqa: PTH119
    return name in SHELLS or name in _RECIPES or name in _RUNS_FILES or is_interpreter(name)


def recipes(name: str, texts: Sequence[str]) -> Iterator[str]:
    """From where the command stands."""
    if name in _RECIPES:
        yield from _named_by(_RECIPES[name], texts)
    if name == "git":
        yield from _hooks(texts)
    if is_interpreter(name):
        yield from _modules(texts)
    ends = _ENTRIES.get(name.rstrip("0123456789."), ())  # `python3.12`
    yield from (f"{start}{end}" for start in (_starts(name, texts) if ends else ()) for end in ends)


def _named_by(recipe: _Recipe, texts: Sequence[str]) -> Iterator[str]:
    given = read(recipe.spec, texts)
    folder = os.path.join("", *_values(given, recipe.folders))  # noqa: PTH118
    for file in _values(given, recipe.files) or recipe.usual:
        yield os.path.join(folder, file)  # noqa: PTH118
    if recipe.of_word is not None:
        words = [*_values(given, ("-A", "--app")), *(texts[at] for at in given.plain)]
        for word in words[:MOST_WORDS]:
            yield from (os.path.join(folder, file) for file in recipe.of_word(word))  # noqa: PTH118


def _hooks(texts: Sequence[str]) -> Iterator[str]:
    given = read(GIT, texts, until=0)
    folder = os.path.join("", *_values(given, ("-C",)))  # noqa: PTH118
    for hook in _HOOKS.get(texts[given.plain[0]], ()) if given.plain else ():
        yield from (os.path.join(folder, place, hook) for place in (".git/hooks", ".husky"))  # noqa: PTH118


def _values(given: Given, names: tuple[str, ...]) -> list[str]:
    return [option.value for option in given.values(*names) if option.value]


def _modules(texts: Sequence[str]) -> Iterator[str]:
    """`python -m tools.build`, `python -m pytest tests`"""
    for at, text in enumerate(texts[:-1]):
        if text == "-m":
            path = texts[at + 1].replace(".", "/")
            yield from (f"{path}.py", f"{path}/__main__.py")
            if texts[at + 1] in _RECIPES:
                yield from _named_by(_RECIPES[texts[at + 1]], texts[at + 2 :])
            return


def _starts(name: str, texts: Sequence[str]) -> list[str]:
    """What it runs first: its script, and what is loaded before that."""
    options = known(name)
    if options is None:
        return [text for text in texts if not text.startswith("-")][:2]  # `bun run x`
    given = read(options.spec, texts, until=options.until)
    loaded = _values(given, ("-r", "--require", "--import"))[:MOST_WORDS]
    return [*loaded, *(texts[at] for at in given.plain[:1])]
