from __future__ import annotations

from typing import Any

from django.db import connection, models
from django.db.models import F, FloatField
from django.db.models.expressions import RawSQL

_OF_CONTENT = ("content_type", "title", "path", "changed_at", "session_id", "workspace__slug")
SAID = tuple(f"manifest__{name}" for name in _OF_CONTENT)
FTS = "sessions_app_chunk_words"  # made by a migration, on SQLite


class ChunkQuerySet(models.QuerySet[Any]):
    def with_words(self, words: list[str], *, all_of_them: bool, most: int) -> list[int]:
        """The ids of those that have these words, the last as the beginning of one, best first. All chunks
        are looked at, whosesoever they are."""
        if connection.vendor == "sqlite":
            return _on_sqlite(_for_sqlite(words, all_of_them), most)
        wanted = _for_postgresql(words, all_of_them)
        rank = RawSQL(f"-ts_rank({self._column}, to_tsquery('simple', %s))", [wanted], FloatField())  # noqa: S611
        found = self.having(words, all_of_them=all_of_them).annotate(rank=rank)
        return list(found.order_by(F("rank")).values_list("pk", flat=True)[:most])

    def having(self, words: list[str], *, all_of_them: bool) -> ChunkQuerySet:
        """Those of these chunks, in no order."""
        if connection.vendor == "sqlite":
            wanted = _for_sqlite(words, all_of_them)
            return self.filter(pk__in=RawSQL(f"SELECT rowid FROM {FTS} WHERE {FTS} MATCH %s", [wanted]))  # noqa: S608, S611
        wanted = _for_postgresql(words, all_of_them)
        matches = RawSQL(f"{self._column} @@ to_tsquery('simple', %s)", [wanted], models.BooleanField())  # noqa: S611
        found: ChunkQuerySet = self.alias(matches=matches).filter(matches=True)
        return found

    def as_found(self) -> ChunkQuerySet:
        """With what a result says of its content, and no more: of some hundred few are shown."""
        found: ChunkQuerySet = self.select_related("manifest__workspace").only("field", "text", *SAID)
        return found

    @property
    def _column(self) -> str:
        return f"to_tsvector('simple', {self.model._meta.db_table}.text)"


def _for_sqlite(words: list[str], all_of_them: bool) -> str:
    quoted = [f'"{word}"' for word in words]
    return (" AND " if all_of_them else " OR ").join([*quoted[:-1], f"{quoted[-1]}*"])


def _for_postgresql(words: list[str], all_of_them: bool) -> str:
    quoted = [f"'{word}'" for word in words]
    return (" & " if all_of_them else " | ").join([*quoted[:-1], f"{quoted[-1]}:*"])


def _on_sqlite(wanted: str, most: int) -> list[int]:
    """Of the words' own table alone: joined with another, each match costs a look into that one. By the
    function and not by its hidden column `rank`, for which all that match are sorted, and not `most`."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT rowid FROM {FTS} WHERE {FTS} MATCH %s ORDER BY bm25({FTS}), rowid LIMIT %s",  # noqa: S608
            [wanted, most],
        )
        return [pk for (pk,) in cursor.fetchall()]
