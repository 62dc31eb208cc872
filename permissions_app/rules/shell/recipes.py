"""The files that say what a command runs, where its words do not name them: what `make` and `npm test` do."""

import os
from collections.abc import Iterator, Sequence

from permissions_app.rules.shell.interpreters import is_interpreter
from permissions_app.rules.shell.options import Given, Spec, read, spec
from permissions_app.rules.shell.runners import SHELLS

_MAKE = (
    spec(
        "bBdeijkLnOpqrRsStvwC:f:I:o:W:E:j::l::", "directory= file= makefile= include-dir= jobs? always-make"
    ),
    ("-C", "--directory"),
    ("-f", "--file", "--makefile"),
    ("Makefile", "makefile", "GNUmakefile"),
)
_JUST = (
    spec("nqvlf:d:", "justfile= working-directory= dry-run quiet list"),
    ("-d", "--working-directory"),
    ("-f", "--justfile"),
    ("justfile", "Justfile", ".justfile"),
)
_NODE = (
    spec("sC:w:", "prefix= cwd= dir= workspace= silent"),
    ("-C", "--prefix", "--cwd", "--dir", "-w", "--workspace"),
    (),
    ("package.json",),
)
_Recipe = tuple[Spec, tuple[str, ...], tuple[str, ...], tuple[str, ...]]


def _here(*files: str) -> _Recipe:
    return (spec("C:f:", "file= directory="), ("-C", "--directory"), ("-f", "--file"), files)


_RECIPES: dict[str, _Recipe] = {
    **dict.fromkeys(("make", "gmake"), _MAKE),
    "just": _JUST,
    **dict.fromkeys(("npm", "yarn", "pnpm", "npx", "bun", "bunx"), _NODE),
    "task": _here("Taskfile.yml", "Taskfile.yaml"),
    "rake": _here("Rakefile", "rakefile"),
    "ninja": _here("build.ninja"),
    "tox": _here("tox.ini", "pyproject.toml"),
    "nox": _here("noxfile.py"),
    "pytest": _here("conftest.py", "pyproject.toml", "pytest.ini", "setup.cfg"),
    "pre-commit": _here(".pre-commit-config.yaml"),
    "cargo": _here("Cargo.toml", "build.rs"),
    "gradle": _here("build.gradle", "build.gradle.kts"),
    "mvn": _here("pom.xml"),
    "composer": _here("composer.json"),
    "deno": _here("deno.json"),
    **dict.fromkeys(
        ("docker", "podman", "docker-compose"), _here("compose.yaml", "docker-compose.yml", "Dockerfile")
    ),
    **dict.fromkeys(("uv", "poetry", "hatch", "pdm"), _here("pyproject.toml")),
}
_RUNS_FILES = frozenset(
    {"sed", "gsed", ".", "source", "pipx", "uvx", "parallel", "entr", "xargs", "find", "env", "direnv"}
)


def runs_files(program: str) -> bool:
    name = os.path.basename(program)  # noqa: PTH119
    return name in SHELLS or name in _RECIPES or name in _RUNS_FILES or is_interpreter(name)


def recipes(name: str, texts: Sequence[str]) -> Iterator[str]:
    """From where the command stands."""
    if name in _RECIPES:
        of, moves, names, usual = _RECIPES[name]
        given = read(of, texts)
        folder = os.path.join("", *_values(given, moves))  # noqa: PTH118
        for file in _values(given, names) or usual:
            yield os.path.join(folder, file)  # noqa: PTH118
    if is_interpreter(name):
        yield from _modules(texts)


def _values(given: Given, names: tuple[str, ...]) -> list[str]:
    return [option.value for option in given.values(*names) if option.value]


def _modules(texts: Sequence[str]) -> Iterator[str]:
    """`python -m tools.build`"""
    for at, text in enumerate(texts[:-1]):
        if text == "-m":
            path = texts[at + 1].replace(".", "/")
            yield from (f"{path}.py", f"{path}/__main__.py")
