"""The index of words, which each database has in its own way. On SQLite it is kept by triggers: a migration that
makes the table of chunks anew has to make them anew too."""

from django.db import migrations

SQLITE = (
    "CREATE VIRTUAL TABLE sessions_app_chunk_words USING fts5("
    "text, content='sessions_app_chunk', content_rowid='id', tokenize='unicode61 remove_diacritics 2')",
    "CREATE TRIGGER chunk_words_insert AFTER INSERT ON sessions_app_chunk BEGIN "
    "INSERT INTO sessions_app_chunk_words(rowid, text) VALUES (new.id, new.text); END",
    "CREATE TRIGGER chunk_words_delete AFTER DELETE ON sessions_app_chunk BEGIN "
    "INSERT INTO sessions_app_chunk_words(sessions_app_chunk_words, rowid, text) "
    "VALUES ('delete', old.id, old.text); END",
    "CREATE TRIGGER chunk_words_update AFTER UPDATE ON sessions_app_chunk BEGIN "
    "INSERT INTO sessions_app_chunk_words(sessions_app_chunk_words, rowid, text) "
    "VALUES ('delete', old.id, old.text); "
    "INSERT INTO sessions_app_chunk_words(rowid, text) VALUES (new.id, new.text); END",
)
POSTGRESQL = (
    "CREATE INDEX sessions_app_chunk_words ON sessions_app_chunk USING gin (to_tsvector('simple', text))",
)
NOT_SQLITE = (
    "DROP TRIGGER chunk_words_insert",
    "DROP TRIGGER chunk_words_delete",
    "DROP TRIGGER chunk_words_update",
    "DROP TABLE sessions_app_chunk_words",
)
NOT_POSTGRESQL = ("DROP INDEX sessions_app_chunk_words",)


def make(apps, schema_editor):
    for statement in SQLITE if schema_editor.connection.vendor == "sqlite" else POSTGRESQL:
        schema_editor.execute(statement)


def unmake(apps, schema_editor):
    for statement in NOT_SQLITE if schema_editor.connection.vendor == "sqlite" else NOT_POSTGRESQL:
        schema_editor.execute(statement)


class Migration(migrations.Migration):

    dependencies = [("sessions_app", "0010_search")]

    operations = [migrations.RunPython(make, unmake)]
