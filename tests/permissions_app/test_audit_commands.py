"""What who types a command of the audit is told: exit code 1 says that it was changed, and nothing else."""

import os
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command

from permissions_app.audit import sealing
from permissions_app.models import AuditChain
from tests.permissions_app.test_audit import ONE, rows, write

UNKNOWN = UUID(int=9)
is_written = pytest.mark.django_db(transaction=True)
each_command = pytest.mark.parametrize("command", ["verify_audit", "export_audit"])


def refused(command: str, *words: str, **options: Any) -> tuple[str, int]:
    """The sentence, and the exit code."""
    out = StringIO()
    with pytest.raises(CommandError) as error:
        call_command(command, *words, stdout=out, **options)
    assert out.getvalue() == ""
    return str(error.value), error.value.returncode


@is_written
class TestWhatIsNotThere:
    @pytest.fixture(autouse=True)
    def _written(self) -> None:
        write(2)
        sealing.seal()

    @each_command
    def test_a_session_that_the_audit_does_not_know(self, command: str) -> None:
        assert refused(command, session=UNKNOWN) == (f"The audit has no session {UNKNOWN}.", 2)

    def test_a_session_whose_chain_is_left_is_known(self) -> None:
        AuditChain.objects.create(session_id=UNKNOWN, mac="0" * 64)
        call_command("verify_audit", session=UNKNOWN, stdout=StringIO())
        call_command("export_audit", session=UNKNOWN, stdout=StringIO())

    def test_a_session_that_was_removed_and_was_sealed_was_changed(self) -> None:
        rows().delete()
        AuditChain.objects.all().delete()
        with pytest.raises(CommandError) as error:
            call_command("verify_audit", session=ONE, stdout=StringIO())
        assert error.value.returncode == 1

    def test_a_log_without_a_seal(self) -> None:
        said = "The log holds no seal: give the one of the background worker."
        for log in ([], ["# Parachute\n"]):
            assert refused("verify_audit", log=log) == (said, 2)


@is_written
@each_command
@pytest.mark.parametrize("number", [1, 100])
def test_it_ends_quietly_where_nobody_reads_on(command: str, number: int) -> None:
    write(number)
    rows().update(who="user:1")  # so that each row is told of
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as pipe, pytest.raises(SystemExit) as ended:
        call_command(command, stdout=pipe)
    assert ended.value.code == 141  # as of a program that SIGPIPE ends


@each_command
def test_a_database_that_is_not_there_is_named(command: str, tmp_path: Path) -> None:
    home = tmp_path / "nowhere"
    answer = subprocess.run(
        [sys.executable, "manage.py", command],
        env={"PATH": os.environ["PATH"], "PARACHUTE_HOME": str(home)},
        cwd=settings.BASE_DIR,
        capture_output=True,
        text=True,
    )
    said = f"CommandError: The database {home / 'db.sqlite3'} cannot be read: unable to open database file.\n"
    assert (answer.returncode, answer.stdout, answer.stderr) == (2, "", said)


@pytest.mark.parametrize("time", ["yesterday", "2026-13-01", ""])
def test_what_is_no_time_is_answered_by_one(time: str) -> None:
    said, _ = refused("export_audit", "--since", time)
    assert said.endswith("argument --since: give a time such as 2026-11-19 or 2026-11-19T22:00:00Z")


@is_written
@pytest.mark.parametrize("since", ["2026-11-19", "2026-11-19T22:00:00Z"])
def test_a_time_is_taken_as_it_is_asked_for(since: str) -> None:
    call_command("export_audit", "--since", since, stdout=StringIO())
