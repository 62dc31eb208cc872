from __future__ import annotations

from typing import Any

from django.db import connection, models
from django.db.models import F, FloatField
from django.db.models.expressions import RawSQL

FTS = "sessions_app_chunk_words"  # made by a migration, on SQLite


class ChunkQuerySet(models.QuerySet[Any]):
    def with_words(self, words: list[str], *, all_of_them: bool, most: int) -> list[int]:
        """The ids of those that have these words, the last as the beginning of one, best first. All chunks
        are looked at, whosesoever they are."""
        if connection.vendor == "sqlite":
            return _on_sqlite(words, " AND " if all_of_them else " OR ", most)
        return self._on_postgresql(words, " & " if all_of_them else " | ", most)

    def _on_postgresql(self, words: list[str], between: str, most: int) -> list[int]:
        wanted = between.join([*(f"'{word}'" for word in words[:-1]), f"'{words[-1]}':*"])
        column = f"to_tsvector('simple', {self.model._meta.db_table}.text)"
        matches = RawSQL(f"{column} @@ to_tsquery('simple', %s)", [wanted], models.BooleanField())  # noqa: S611
        rank = RawSQL(f"-ts_rank({column}, to_tsquery('simple', %s))", [wanted], FloatField())  # noqa: S611
        found: ChunkQuerySet = self.alias(matches=matches).filter(matches=True).annotate(rank=rank)
        return list(found.order_by(F("rank")).values_list("pk", flat=True)[:most])


def _on_sqlite(words: list[str], between: str, most: int) -> list[int]:
    """Of the words' own table alone: joined with another, each match costs a look into that one."""
    quoted = [f'"{word}"' for word in words]
    wanted = between.join([*quoted[:-1], f"{quoted[-1]}*"])
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT rowid FROM {FTS} WHERE {FTS} MATCH %s ORDER BY rank LIMIT %s",  # noqa: S608
            [wanted, most],
        )
        return [pk for (pk,) in cursor.fetchall()]
