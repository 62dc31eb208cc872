"""What it costs to index a vault and to find something in it, in a process and a home of their own.

`python -m tests.bench.searching FOLDER` prints its rows as JSON; `make bench` runs it and prints them.
"""

import json
import os
import random
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter
from typing import Any

from tests.bench.measures import Row
from tests.bench.waiting import pss

NOTES, OF_SIZE = 2_000, 5_000
PIECES = 100_000
QUESTIONS = 100
_random = random.Random(20)
_SOUNDS = ["ba", "ke", "lo", "mi", "nu", "ra", "se", "ti", "vo", "zu", "cha", "pre", "stro", "plin", "gar"]
WORDS = ["".join(_random.choices(_SOUNDS, k=_random.randint(1, 4))) for _ in range(8_000)] + [
    "garden",
    "frost",
    "doctor",
    "brake",
    "letter",
    "harvest",
    "meeting",
    "river",
    "bread",
    "journey",
    "winter",
    "price",
    "engine",
]
WEIGHTS = [1 / (rank + 5) for rank in range(len(WORDS))]


def measured(folder: Path) -> list[Row]:
    variables = {
        "PATH": os.environ["PATH"],
        "HOME": os.environ.get("HOME", "/"),
        "PARACHUTE_HOME": str(folder / "search-home"),
        "VAULT_PATH": str(folder / "search-vault"),
    }
    for name in ("search-home", "search-vault"):
        (folder / name).mkdir(mode=0o700)
    run = [sys.executable, "-m", "tests.bench.searching", str(folder / "search-vault")]
    said = subprocess.run(run, env=variables, check=True, capture_output=True, text=True).stdout
    return [Row(**row) for row in json.loads(said.splitlines()[-1])]


def main(vault: Path) -> list[Row]:
    os.environ["DJANGO_SETTINGS_MODULE"] = "parachute_site.settings"
    import django

    django.setup()
    from django.conf import settings
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    from sessions_app.access.models import Workspace
    from sessions_app.search import meaning
    from sessions_app.search.indexing import index_changed

    workspace = Workspace.objects.create(slug="bench", name="bench", vault_path=str(vault))
    for number in range(NOTES):
        (vault / f"note{number}.md").write_text(_text(OF_SIZE))
    rows = [
        Row("index 2,000 notes of 5 KB", _took(index_changed), unit="s ", aim=20),
        Row("give them their meaning", _took(meaning.catch_up), unit="s ", aim=20),
        Row("the same again, unchanged", _took(_pass), unit="s ", aim=1),
    ]
    _fill(workspace)
    rows.append(Row("the meaning of 100,000 pieces", _took(meaning.catch_up), unit="s "))
    rows += _questions(workspace, settings.DATABASES["default"]["NAME"])
    return [*rows, Row("memory of who searches (PSS)", pss([os.getpid()]), unit="MB", aim=400)]


def _pass() -> None:
    from sessions_app.search import meaning
    from sessions_app.search.indexing import index_changed

    index_changed()
    meaning.catch_up()


def _fill(workspace: Any) -> None:
    from sessions_app.models import Chunk, IndexManifest

    there = Chunk.objects.count()
    for number in range(0, PIECES - there, 100):
        manifest = IndexManifest.objects.create(
            content_id=f"{workspace.pk}:file:{number}",
            workspace=workspace,
            content_type="document",
            path=f"{number}.md",
        )
        Chunk.objects.bulk_create(
            Chunk(manifest=manifest, position=position, text=_text(450)) for position in range(100)
        )


def _questions(workspace: Any, database: Path) -> list[Row]:
    from django.db.models import Q

    from sessions_app.search.finding import Scope, Wish, find

    scope = Scope(Q(manifest__workspace=workspace), Q(), Q(pk=workspace.pk))
    find(scope, Wish("loads what it needs"))
    mine, alone = list[float](), list[float]()
    with closing(sqlite3.connect(database)) as bare:
        for _ in range(QUESTIONS):
            words = [*_random.choices(WORDS, WEIGHTS), *_random.choices(WORDS, k=2)]  # one is a common one
            mine.append(_took(find, scope, Wish(" ".join(words))) * 1e3)
            alone.append(_took(_bare, bare, words) * 1e3)
    return [
        Row("find in 100,000 pieces, median (alone: FTS5)", median(mine), median(alone), aim=50),
        Row("find in 100,000 pieces, p95", quantiles(mine, n=20)[18], quantiles(alone, n=20)[18], aim=150),
    ]


def _bare(database: sqlite3.Connection, words: list[str]) -> None:
    for between in (" AND ", " OR "):
        database.execute(
            "SELECT rowid FROM sessions_app_chunk_words WHERE sessions_app_chunk_words MATCH ? "
            "ORDER BY rank LIMIT 200",
            [between.join(f'"{word}"' for word in words)],
        ).fetchall()


def _text(size: int) -> str:
    words = _random.choices(WORDS, WEIGHTS, k=size // 5)
    text = " ".join(f"{word}." if number % 12 == 11 else word for number, word in enumerate(words))
    return text[:size]


def _took(work: Any, *given: Any) -> float:
    began = perf_counter()
    work(*given)
    return perf_counter() - began


if __name__ == "__main__":
    print(json.dumps([asdict(row) for row in main(Path(sys.argv[1]))]))
