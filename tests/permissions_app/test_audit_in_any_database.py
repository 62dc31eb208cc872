"""The audit in a database that somebody changed who has its file: SQLite keeps any value in any column."""

import json
from itertools import islice
from typing import Any

import pytest
from django.db import connection

from permissions_app.audit import exporting, sealing
from permissions_app.audit.verifying import problems
from permissions_app.models import AuditChain, AuditRow, AuditSeal
from tests.permissions_app.test_audit import ONE, TWO, rows, write

pytestmark = pytest.mark.django_db

NO_UTF_8 = "CAST(x'ff' AS TEXT)"
ANYTHING = ["'abc'", "2.5", "x'ff'", "-1", str(2**63 - 1), "NULL", NO_UTF_8]


def put(model: Any, column: str, value: str, key: Any) -> None:
    table, name = model._meta.db_table, model._meta.pk.column
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE {table} SET {column} = {value} WHERE {name} = %s", [key])
        assert cursor.rowcount == 1


@pytest.fixture(autouse=True)
def _no_constraint_holds(db: None) -> None:
    """The tables are made anew, from what is in them."""
    if connection.vendor != "sqlite":
        pytest.skip("This database takes only what a column is for.")
    write(5)
    write(3, TWO)
    sealing.seal()
    with connection.cursor() as cursor:
        for table in (each._meta.db_table for each in (AuditChain, AuditRow, AuditSeal)):
            cursor.execute(f"CREATE TABLE loose AS SELECT * FROM {table}")
            cursor.execute(f"DROP TABLE {table}")
            cursor.execute(f"ALTER TABLE loose RENAME TO {table}")


def found() -> list[str]:
    """Of the first session, or of none. The other has a changed row, which is named whatever is beside it."""
    rows(TWO).filter(number=2).update(outcome="denied")
    told = list(islice(problems(), 100))
    changed = f"session {TWO}: row 2 was changed or moved"
    assert changed in told
    return [each for each in told if each != changed]


def test_all_is_well() -> None:
    assert found() == []


@pytest.mark.parametrize("value", ANYTHING)
@pytest.mark.parametrize("column", ["number", "sealed", "mac"])
def test_the_end_of_a_chain(column: str, value: str) -> None:
    is_possible = (column, value) == ("sealed", str(2**63 - 1))
    put(AuditChain, column, value, ONE.hex)
    assert any(each.startswith(f"session {ONE}: ") for each in found()) is not is_possible


@pytest.mark.parametrize("value", ["'zz'", f"x'{ONE.hex.encode().hex()}'", f"'{ONE}'", "7", "NULL", NO_UTF_8])
def test_an_end_that_names_no_session(value: str) -> None:
    put(AuditChain, "session_id", value, ONE.hex)
    first, second = found()
    assert first.startswith("the end of a chain was changed: it names no session but ")
    assert second == f"session {ONE}: the end of its chain is missing"


@pytest.mark.parametrize("value", ["'abc'", "2.5", "x'ff'", "-1", "0", "NULL", NO_UTF_8, "5"])
def test_the_number_of_a_row(value: str) -> None:
    put(AuditRow, "number", value, rows().get(number=3).pk)
    told = found()
    assert f"session {ONE}: row 3 is missing" in told
    assert any("was changed or moved" in each for each in told)


@pytest.mark.parametrize("value", ANYTHING)
@pytest.mark.parametrize(
    "column",
    [
        *("entry", "at", "kind", "outcome", "who", "workspace_id", "turn_id", "tool", "tool_use_id"),
        *("arguments_hash", "summary", "rule", "pattern", "latency_ms", "previous", "mac"),
    ],
)
def test_a_row(column: str, value: str) -> None:
    is_as_before = value == "NULL" and column in ("workspace_id", "turn_id")
    put(AuditRow, column, value, rows().get(number=3).pk)
    assert (f"session {ONE}: row 3 was changed or moved" in found()) is not is_as_before


@pytest.mark.parametrize("value", [*ANYTHING, f"'{'[' * 50_000}'", "'[1]'", "'{\"a\": 1}'"])
@pytest.mark.parametrize("column", ["number", "at", "heads", "previous", "mac"])
def test_a_seal(column: str, value: str) -> None:
    put(AuditSeal, column, value, 1)
    assert any(each.startswith("seal ") and each.endswith(" was changed") for each in found())


def test_a_gap_is_one_sentence() -> None:
    put(AuditRow, "number", "4000000000000", rows().get(number=2).pk)
    assert found() == [
        f"session {ONE}: row 2 is missing",
        f"session {ONE}: rows 6 to 3999999999999 are missing",
        f"session {ONE}: row 4000000000000 was changed or moved",
    ]


def test_a_gap_of_seals_is_one_sentence() -> None:
    put(AuditSeal, "number", "4000000000000", 1)
    assert found() == ["seals 1 to 3999999999999 are missing", "seal 4000000000000 was changed"]


@pytest.mark.parametrize(
    "named", [f"'{ONE.hex}'||' '", f"'{{{ONE.hex}}}'", f"'{ONE}'", f"x'{ONE.hex.encode().hex()}'", "NULL"]
)
def test_a_row_under_another_spelling_of_its_session(named: str) -> None:
    """It would be shown as one of that session's, and no chain has it."""
    added = rows().get(number=3)
    added.pk, added.number = 1_000, 6
    added.save(force_insert=True)
    put(AuditRow, "session_id", named, added.pk)
    (told,) = found()
    assert told.startswith("a row was changed: it names no session but ")


def test_two_rows_of_one_key() -> None:
    put(AuditRow, "id", str(rows().get(number=3).pk), rows().get(number=4).pk)
    assert found() == [f"session {ONE}: row {number} was changed or moved" for number in (3, 4)]


def test_two_rows_of_one_number() -> None:
    again = rows().get(number=3)
    again.pk = 1_000
    again.save(force_insert=True)
    assert found() == [f"session {ONE}: row 3 is there twice"]


def test_what_cannot_be_read_is_exported_as_such_and_the_rest_as_it_is() -> None:
    spoilt = [("entry", "'x'"), ("at", "NULL"), ("summary", NO_UTF_8), ("latency_ms", "9e999")]
    keys = [rows().get(number=number).pk for number in range(1, 5)]
    for key, (column, value) in zip(keys, spoilt, strict=True):
        put(AuditRow, column, value, key)
    lines = [json.loads(line) for line in exporting.lines(AuditRow.objects.all())]
    assert {line["row"] for line in lines if line.get("unreadable")} == set(keys)
    assert [line["number"] for line in lines if line.get("sessionId") == str(TWO)] == [1, 2, 3]
