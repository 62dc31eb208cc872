"""The audit: nothing is lost silently, and what was changed since is found and named."""

import json
import stat
import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection
from django.test import override_settings

from permissions_app import audit
from permissions_app.audit import AuditKind, Entry, Outcome, chain, sealing
from permissions_app.audit.appending import append
from permissions_app.audit.entry import Finished
from permissions_app.audit.spool import Spool
from permissions_app.audit.verifying import problems
from permissions_app.audit.writer import Writer
from permissions_app.models import AuditChain, AuditRow, AuditSeal
from tests.agents_app.at_once import at_once

rows_are_written = pytest.mark.django_db(transaction=True)

ONE, TWO = UUID(int=1), UUID(int=2)
SECRET = "sk-ant-0123456789abcdef"


def entry(session_id: UUID = ONE, **more: Any) -> Entry:
    given: dict[str, Any] = {"kind": AuditKind.DECISION, "outcome": Outcome.ALLOWED, "tool": "Read"}
    return Entry(session_id=session_id, **{**given, "latency_ms": 0.25, **more})


def write(number: int = 3, session_id: UUID = ONE) -> None:
    append([entry(session_id, arguments={"n": n}).finished() for n in range(number)])


def rows(session_id: UUID = ONE) -> Any:
    return AuditRow.objects.filter(session_id=session_id).order_by("number")


def spoil(model: Any, column: str, value: str, key: int) -> None:
    """As somebody does who has the file of the database."""
    if connection.vendor != "sqlite":
        pytest.skip("This database takes only what a column is for.")
    table, name = model._meta.db_table, model._meta.pk.column
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE {table} SET {column} = %s WHERE {name} = %s", [value, key])


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return Spool(tmp_path / "audit")


class Database:
    """Takes what is appended, or is away."""

    def __init__(self) -> None:
        self.is_away = False
        self.has: list[Finished] = []
        self.may_write = threading.Event()
        self.may_write.set()

    def append(self, entries: Sequence[Finished]) -> None:
        self.may_write.wait(20)
        if self.is_away:
            raise OperationalError("away")
        self.has += entries


@pytest.fixture
def database() -> Database:
    return Database()


@pytest.fixture
def writer(database: Database, spool: Spool) -> Iterator[Writer]:
    made = Writer(database.append, spool, most_waiting=4)
    yield made
    database.may_write.set()
    made.close()


@pytest.mark.database
@rows_are_written
class TestTheChain:
    def test_each_session_counts_from_one_and_each_row_follows_the_one_before(self) -> None:
        write(3)
        write(2, TWO)
        write(1)
        assert list(rows().values_list("number", flat=True)) == [1, 2, 3, 4]
        assert list(rows(TWO).values_list("number", flat=True)) == [1, 2]
        assert [row.previous for row in rows()] == [chain.BEGINNING, *(row.mac for row in rows()[:3])]
        assert list(problems()) == []

    def test_what_is_handed_over_twice_is_one_row(self) -> None:
        same = entry().finished()
        append([same, same])
        append([same])
        assert rows().count() == 1
        assert list(problems()) == []

    def test_several_writers_append_to_one_session(self) -> None:
        def act(_: int) -> None:
            for _ in range(5):
                write(2)

        at_once(act)
        assert list(rows().values_list("number", flat=True)) == list(range(1, 41))
        assert list(problems()) == []

    def test_a_row_says_what_was_decided_and_no_secret(self) -> None:
        turn = uuid4()
        given = entry(
            who="user:7", workspace_id=3, turn_id=turn, tool="Bash", tool_use_id="toolu_1", rule="deny_list",
            arguments={"command": f"echo {SECRET}\0"}, outcome=Outcome.DENIED, latency_ms=1.23456,
        )  # fmt: skip
        append([given.finished()])
        row = rows().get()
        assert (row.who, row.workspace_id, row.turn_id, row.tool) == ("user:7", 3, turn, "Bash")
        assert (row.rule, row.outcome, row.latency_ms) == ("deny_list", "denied", 1.235)
        assert SECRET not in json.dumps(row.content())
        assert row.arguments_hash == chain.hash_of(given.arguments) != chain.hash_of({})

    def test_without_a_session_there_is_a_chain_too(self) -> None:
        append([Entry(AuditKind.GRANT, Outcome.REVOKED).finished()])
        assert rows(chain.NOBODYS).count() == 1


def test_the_key_is_made_of_the_secret_key_by_hkdf() -> None:
    box = HKDF(SHA256(), length=32, salt=None, info=b"parachute audit chain")
    assert chain._key("secret", "chain") == box.derive(b"secret")


@rows_are_written
class TestVerifying:
    @pytest.fixture(autouse=True)
    def _written(self) -> None:
        write(5)
        write(3, TWO)
        sealing.seal()

    def found(self, **options: Any) -> list[str]:
        out = StringIO()
        try:
            call_command("verify_audit", stdout=out, **options)
        except CommandError as error:
            assert error.returncode == 1
        return out.getvalue().splitlines()

    def test_all_is_well(self) -> None:
        assert self.found() == ["8 rows are as they were written."]
        assert self.found(session=TWO) == ["3 rows are as they were written."]

    @pytest.mark.parametrize(
        ("column", "value"),
        [
            ("outcome", "denied"),
            ("who", "user:1"),
            ("summary", ""),
            ("at", datetime(2020, 1, 1, tzinfo=UTC)),
            ("latency_ms", None),
            ("previous", "0" * 64),
            ("mac", "0" * 64),
            ("session_id", TWO),
        ],
    )
    def test_a_changed_row(self, column: str, value: Any) -> None:
        given = {"number": 9} if column == "session_id" else {}
        rows().filter(number=3).update(**{column: value}, **given)
        assert any("row 9 was changed" in each or "row 3 was changed" in each for each in self.found())

    @pytest.mark.parametrize(
        ("column", "value"),
        [("at", "aaaa"), ("at", "5"), ("turn_id", "x"), ("entry", "x"), ("latency_ms", "x"), ("mac", "ä")],
    )
    def test_a_row_that_cannot_be_read_any_more_and_the_rest_is_looked_at(
        self, column: str, value: str
    ) -> None:
        third = rows().get(number=3)
        rows(TWO).filter(number=2).delete()
        spoil(AuditRow, column, value, third.pk)
        found = self.found()
        assert f"session {ONE}: row 3 was changed or moved" in found
        assert f"session {TWO}: row 2 is missing" in found

    def test_a_row_whose_session_is_none(self) -> None:
        spoil(AuditRow, "session_id", "x", rows().get(number=4).pk)
        assert self.found()[0] == "a row was changed: it names no session but 'x'"

    def test_a_seal_that_cannot_be_read_any_more(self) -> None:
        spoil(AuditSeal, "at", "aaaa", 1)
        assert self.found() == ["seal 1 was changed"]

    def test_a_removed_row(self) -> None:
        rows().filter(number=2).delete()
        assert self.found() == [f"session {ONE}: row 2 is missing"]

    def test_reordered_rows(self) -> None:
        second, third = rows()[1:3]
        rows().filter(pk=third.pk).update(number=99)
        rows().filter(pk=second.pk).update(number=3)
        rows().filter(pk=third.pk).update(number=2)
        assert [line.rpartition(": ")[2] for line in self.found()][:2] == [
            "row 2 was changed or moved",
            "row 3 was changed or moved",
        ]

    def test_a_tail_that_was_cut(self) -> None:
        rows().filter(number__gt=3).delete()
        assert self.found() == [f"session {ONE}: rows 4 to 5 were cut off"]

    def test_a_tail_that_was_cut_with_the_chains_end(self) -> None:
        rows().filter(number__gt=3).delete()
        AuditChain.objects.filter(session_id=ONE).update(number=3, mac=rows().get(number=3).mac, sealed=3)
        assert self.found() == [f"session {ONE}: rows 4 to 5 were cut off"]

    def test_a_session_that_was_removed_as_a_whole(self) -> None:
        rows().delete()
        AuditChain.objects.filter(session_id=ONE).delete()
        assert self.found() == [f"session {ONE}: rows 1 to 5 were cut off"]

    def test_a_tail_that_was_cut_with_the_seals_is_in_the_log(self) -> None:
        write(1)
        seal = sealing.seal()
        assert seal is not None
        line = f"INFO parachute.audit: {sealing.logged(seal)}\n"
        assert self.found(log=[line, line]) == [
            "9 rows are as they were written.",
            "Seals of the log that they were compared with: 1.",
        ]
        rows().filter(number=6).delete()
        AuditChain.objects.filter(session_id=ONE).update(number=5, mac=rows().get(number=5).mac, sealed=5)
        seal.delete()
        assert self.found() == ["8 rows are as they were written."]  # all that the database knows
        assert self.found(log=[line]) == ["seal 2 is in the log and missing here"]

    def cut_the_last(self) -> None:
        """With its chain's end, and a row is written in its place."""
        rows().filter(number=5).delete()
        AuditChain.objects.filter(session_id=ONE).update(number=4, mac=rows().get(number=4).mac, sealed=4)
        write(1)

    def test_a_row_in_the_place_of_one_that_was_cut(self) -> None:
        self.cut_the_last()
        assert self.found() == [
            f"session {ONE}: row 5 is another than the chain's end or a seal says",
        ]
        sealing.seal()
        assert len(self.found()) == 1

    def test_a_seal_in_the_place_of_one_that_was_cut_is_in_the_log_twice(self) -> None:
        log = [f"{sealing.logged(AuditSeal.objects.get())}\n"]
        self.cut_the_last()
        AuditSeal.objects.all().delete()
        AuditChain.objects.update(sealed=0)
        again = sealing.seal()
        assert again is not None
        assert self.found() == ["8 rows are as they were written."]  # all that the database knows
        assert self.found(log=[*log, f"{sealing.logged(again)}\n"]) == ["seal 1 is another than in the log"]

    def test_a_line_of_the_log_that_is_no_seal(self) -> None:
        log = [f"audit seal {'9' * 5_000} {'0' * 64}\n", f"audit seal ٣ {'0' * 64}\n"]
        assert self.found(log=[*log, sealing.logged(AuditSeal.objects.get())]) == [
            "8 rows are as they were written.",
            "Seals of the log that they were compared with: 1.",
        ]

    def test_a_changed_seal(self) -> None:
        AuditSeal.objects.update(heads={})
        assert self.found() == ["seal 1 was changed"]

    def test_a_row_that_somebody_without_the_key_added(self) -> None:
        last = rows().get(number=5)
        last.pk, last.entry, last.number, last.previous = None, uuid4(), 6, last.mac
        with override_settings(SECRET_KEY="another"):
            last.mac = chain.link(last.previous, last.content())
        last.save()
        assert f"session {ONE}: row 6 was changed or moved" in self.found()

    def test_rows_that_were_made_with_a_key_before_this_one(self) -> None:
        with override_settings(SECRET_KEY="new", SECRET_KEY_FALLBACKS=["only for tests"]):
            write(1)
            assert self.found() == ["9 rows are as they were written."]

    def test_another_session_is_not_looked_at(self) -> None:
        rows().filter(number=2).delete()
        assert self.found(session=TWO) == ["3 rows are as they were written."]


@pytest.mark.database
@rows_are_written
class TestSealing:
    def test_only_what_grew_is_sealed_again(self) -> None:
        write(1)
        write(1, TWO)
        sealing.seal()
        write(1)
        sealing.seal()
        assert sealing.seal() is None
        first, second = AuditSeal.objects.order_by("number")
        assert set(first.heads) == {str(ONE), str(TWO)}
        assert second.heads == {str(ONE): [2, rows().get(number=2).mac]}
        assert second.previous == first.mac

    def test_it_is_logged(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level("INFO")
        write(1)
        seal = sealing.seal()
        assert seal is not None
        assert f"audit seal 1 {seal.mac}" in caplog.text

    def test_of_several_who_seal_at_once_the_chain_of_seals_is_whole(self) -> None:
        write(1)
        at_once(lambda _: sealing.seal())
        assert AuditSeal.objects.count() >= 1
        assert list(problems()) == []

    def test_what_waits_in_the_spool_is_taken_up(self, spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(audit, "spool", lambda: spool)
        spool.write([entry().finished()])
        sealing.each_minute()
        assert rows().count() == 1
        assert spool.is_empty()


class TestWriting:
    def test_what_is_recorded_is_appended(self, writer: Writer, database: Database) -> None:
        for number in range(3):
            writer.record(entry(tool=str(number)))
        assert writer.flush()
        assert [each.tool for each in database.has] == ["0", "1", "2"]

    def test_where_the_database_is_away_it_waits_in_the_spool(
        self, writer: Writer, database: Database, spool: Spool
    ) -> None:
        database.is_away = True
        writer.record(entry(tool="first"))
        assert writer.flush()
        assert (database.has, spool.is_empty()) == ([], False)
        database.is_away = False
        writer.record(entry(tool="second"))
        assert writer.flush()
        assert {each.tool for each in database.has} == {"first", "second"}
        assert spool.is_empty()

    def test_where_the_queue_is_full_it_goes_to_the_spool_and_nothing_is_lost(
        self, writer: Writer, database: Database, spool: Spool
    ) -> None:
        database.may_write.clear()
        for number in range(20):
            writer.record(entry(tool=str(number)))
        assert not spool.is_empty()
        database.may_write.set()
        assert writer.flush()
        spool.take_up(database.append)
        assert {each.tool for each in database.has} == {str(number) for number in range(20)}

    def test_what_cannot_be_written_in_time_when_the_process_ends_is_spooled(
        self, writer: Writer, database: Database, spool: Spool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(Writer.flush, "__defaults__", (0.05,))
        database.may_write.clear()
        writer.record(entry(tool="held"))
        while not writer._queue.empty():
            threading.Event().wait(0.001)
        writer.record(entry(tool="left"))
        writer.close()
        lines = (spool._folder / "waiting.jsonl").read_text()
        assert "held" in lines
        assert "left" in lines

    def test_arguments_without_end_do_not_cost_the_record(self, writer: Writer, database: Database) -> None:
        deep: dict[str, Any] = {}
        deep["itself"] = deep
        nested: Any = []
        for _ in range(100_000):
            nested = [nested]
        for arguments in (deep, {"nested": nested}):
            writer.record(entry(arguments=arguments))
        assert writer.flush()
        assert len(database.has) == 2

    def test_a_record_that_cannot_be_kept_anywhere_is_in_the_log(
        self, database: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        (tmp_path / "file").write_text("")
        writer = Writer(database.append, Spool(tmp_path / "file" / "audit"))
        database.is_away = True
        writer.record(entry(tool="Bash", arguments={"command": SECRET}))
        writer.flush()
        assert '"tool": "Bash"' in caplog.text
        assert SECRET not in caplog.text


class TestTheSpool:
    def test_only_we_can_read_it(self, spool: Spool) -> None:
        spool.write([entry().finished()])
        path = spool._folder / "waiting.jsonl"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700

    def test_it_holds_no_secret(self, spool: Spool) -> None:
        spool.write([entry(arguments={"command": SECRET}).finished()])
        assert SECRET not in (spool._folder / "waiting.jsonl").read_text()

    def test_what_cannot_be_taken_up_stays(self, spool: Spool, database: Database) -> None:
        spool.write([entry().finished()])
        database.is_away = True
        with pytest.raises(OperationalError):
            spool.take_up(database.append)
        database.is_away = False
        assert spool.take_up(database.append) == 1
        assert spool.is_empty()

    def test_half_a_line_is_kept_aside_and_told(
        self, spool: Spool, database: Database, caplog: pytest.LogCaptureFixture
    ) -> None:
        spool.write([entry().finished(), entry().finished()])
        path = spool._folder / "waiting.jsonl"
        path.write_text(path.read_text()[:-40])
        assert spool.take_up(database.append) == 1
        assert "cannot be read" in caplog.text
        assert (spool._folder / "unreadable.jsonl").exists()

    @pytest.mark.database
    def test_several_processes_write_while_it_is_taken_up(self, spool: Spool, database: Database) -> None:
        def act(number: int) -> None:
            for _ in range(20):
                Spool(spool._folder).write([entry().finished()])
                if number == 0:
                    spool.take_up(database.append)

        at_once(act)
        spool.take_up(database.append)
        assert len({each.id for each in database.has}) == 80


@rows_are_written
def test_the_export_has_a_line_a_row_oldest_first() -> None:
    write(2)
    write(1, TWO)
    out = StringIO()
    call_command("export_audit", session=ONE, stdout=out)
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [(line["sessionId"], line["number"]) for line in lines] == [(str(ONE), 1), (str(ONE), 2)]
    assert lines[1]["previous"] == lines[0]["mac"]
