"""What somebody put into the database keeps nothing else from being written and sealed: else all that comes
after could be cut off unseen."""

from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest
from django.db import connection

from permissions_app import audit
from permissions_app.audit import sealing
from permissions_app.audit.appending import ChainIsSpoilt, append
from permissions_app.audit.spool import Spool
from permissions_app.audit.verifying import problems
from permissions_app.models import AuditChain, AuditSeal
from tests.permissions_app.test_audit import ONE, TWO, entry, rows, write
from tests.permissions_app.test_audit_in_any_database import ANYTHING, put

pytestmark = pytest.mark.django_db

THREE = UUID(int=3)
VALUES = [*(value for value in ANYTHING if value != "NULL"), "4000000000000"]


@pytest.fixture(autouse=True)
def _no_check_holds(db: None) -> Iterator[None]:
    if connection.vendor != "sqlite":
        pytest.skip("This database takes only what a column is for.")
    for session_id in (ONE, TWO):
        write(3, session_id)
    sealing.seal()
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA ignore_check_constraints = ON")
        yield
        cursor.execute("PRAGMA ignore_check_constraints = OFF")


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("column", ["number", "sealed", "mac", "session_id"])
def test_the_others_are_sealed_where_the_end_of_a_chain_was_changed(
    column: str, value: str, caplog: pytest.LogCaptureFixture
) -> None:
    put(AuditChain, column, value, ONE.hex)
    write(1, TWO)
    made = sealing.seal()
    assert made is not None
    assert made.heads[str(TWO)][0] == 4
    assert all(each.startswith((f"session {ONE}: ", "the end of a chain was")) for each in problems())
    was_seen = column == "number" and value in ANYTHING[:4]  # others did not grow, or are possible
    assert not was_seen or "see verify_audit" in caplog.text


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("column", ["number", "at", "heads", "previous", "mac"])
def test_it_is_sealed_again_after_a_seal_that_was_changed(column: str, value: str) -> None:
    write(1, TWO)
    sealing.seal()
    put(AuditSeal, column, value, 2)
    for number in range(2):
        write(1, TWO)
        made = sealing.seal()
        assert made is not None
        assert made.number - number in (2, 3)
        assert made.heads[str(TWO)][0] == 5 + number
    assert not [each for each in problems() if "does not follow" in each and column != "mac"]


@pytest.fixture
def spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Spool:
    made = Spool(tmp_path / "audit")
    monkeypatch.setattr(audit, "spool", lambda: made)
    return made


@pytest.mark.parametrize("value", ["'abc'", "x'ff'", "CAST(x'ff' AS TEXT)", str(2**63 - 1)])
@pytest.mark.parametrize("column", ["number", "mac"])
def test_a_chain_that_was_changed_keeps_no_other_in_the_spool(spool: Spool, column: str, value: str) -> None:
    put(AuditChain, column, value, ONE.hex)
    for _ in range(2):
        spool.write([entry(each).finished() for each in (ONE, TWO, THREE)])
        spool._set_aside()
    sealing.each_minute()
    assert (rows(TWO).count(), rows(THREE).count()) == (5, 2)
    assert not spool.is_empty()  # its own wait there
    newest = AuditSeal.objects.get(number=2)
    assert {str(TWO), str(THREE)} <= newest.heads.keys()


def test_who_appends_to_a_chain_that_was_changed_is_told_when_the_others_are_written() -> None:
    put(AuditChain, "number", "'abc'", ONE.hex)
    with pytest.raises(ChainIsSpoilt, match=str(ONE)):
        append([entry(each).finished() for each in (ONE, TWO)])
    assert rows(TWO).count() == 4
