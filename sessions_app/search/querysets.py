from __future__ import annotations

from typing import Any

from django.db import connection, models
from django.db.models import F, FloatField
from django.db.models.expressions import RawSQL

FTS = "sessions_app_chunk_words"  # made by a migration, on SQLite


class ChunkQuerySet(models.QuerySet[Any]):
    def with_words(self, words: list[str], *, all_of_them: bool) -> ChunkQuerySet:
        """Those that have these words, the last as the beginning of one, with `rank`: less is better."""
        if connection.vendor == "sqlite":
            return self._on_sqlite(words, " AND " if all_of_them else " OR ")
        return self._on_postgresql(words, " & " if all_of_them else " | ")

    def _on_sqlite(self, words: list[str], between: str) -> ChunkQuerySet:
        quoted = [f'"{word}"' for word in words]
        wanted = between.join([*quoted[:-1], f"{quoted[-1]}*"])
        table = self.model._meta.db_table
        found: Any = self.extra(  # noqa: S610 - names of our own; the words are a parameter
            tables=[FTS],
            where=[f"{FTS}.rowid = {table}.id", f"{FTS} MATCH %s"],
            params=[wanted],
            select={"rank": f"bm25({FTS})"},
        ).extra(order_by=["rank"])
        return found  # type: ignore[no-any-return]

    def _on_postgresql(self, words: list[str], between: str) -> ChunkQuerySet:
        wanted = between.join([*(f"'{word}'" for word in words[:-1]), f"'{words[-1]}':*"])
        column = f"to_tsvector('simple', {self.model._meta.db_table}.text)"
        matches = RawSQL(f"{column} @@ to_tsquery('simple', %s)", [wanted], models.BooleanField())  # noqa: S611
        rank = RawSQL(f"-ts_rank({column}, to_tsquery('simple', %s))", [wanted], FloatField())  # noqa: S611
        found: ChunkQuerySet = self.alias(matches=matches).filter(matches=True).annotate(rank=rank)
        return found.order_by(F("rank"))
