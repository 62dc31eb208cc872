"""The cast: Ada owns, Ben is a member, Vi may only look, Cy must have no access."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.core.management.commands import flush
from django.db import connection, connections
from hypothesis import settings

from agents_app.runtimes.scripted import ScriptedRuntime, runtime
from permissions_app import audit
from sessions_app.access.caller import Caller
from sessions_app.access.models import Membership, Role, Workspace
from sessions_app.access.services import caller_of_user, make_key
from sessions_app.threads import POOLS, THREADS

pytest_plugins = ["tests.engines.fixtures"]

# What chance would find is looked for by hand (`pytest --hypothesis-profile=anew`): in a run that others wait
# for it would fail at times, and for something that was there before.
settings.register_profile("the_same", derandomize=True, database=None)
settings.register_profile("anew", derandomize=False)
settings.load_profile("the_same")


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None) -> Iterator[None]:
    """No test needs the permissions that Django writes again after each flush, which takes longer than the
    flush. And before the test database goes, the threads of the pools let go of it, and the one of
    Django's own `aget`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flush, "emit_post_migrate_signal", lambda *_: ContentType.objects.clear_cache())
        if connection.vendor == "postgresql":
            patch.setattr(flush, "sql_flush", _sql_delete)
        yield
    together = threading.Barrier(THREADS * len(POOLS))

    def let_go() -> None:
        connections.close_all()
        together.wait(10)

    for done in [pool.submit(let_go) for pool in POOLS for _ in range(THREADS)]:
        done.result(20)
    asyncio.run(sync_to_async(connections.close_all)())


def _sql_delete(*_: object, **__: object) -> list[str]:
    """To truncate sixty tables takes PostgreSQL forty times as long as to delete the few rows of a test. In
    any order, and also what no trigger lets go."""
    tables = connection.introspection.django_table_names(only_existing=True, include_views=False)
    return ["SET LOCAL session_replication_role = replica", *(f'DELETE FROM "{name}"' for name in tables)]


@pytest.fixture(autouse=True)
def audited(monkeypatch: pytest.MonkeyPatch) -> list[audit.Entry]:
    """What was recorded. No thread writes it: it would meet the end of the test."""
    heard: list[audit.Entry] = []
    monkeypatch.setattr(audit, "_sink", heard.append)
    return heard


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    folder = tmp_path / "vault"
    folder.mkdir()
    (folder / "Welcome.md").write_text("# Welcome\n")
    return folder


@pytest.fixture
def person(db: None) -> Callable[..., User]:
    def make(name: str, *, is_operator: bool = False) -> User:
        user = User(username=name, is_staff=is_operator, is_superuser=is_operator)
        user.set_password(f"{name} has a password")
        user.save()
        return user

    return make


@pytest.fixture
def ada(person: Callable[..., User]) -> User:
    return person("ada", is_operator=True)


@pytest.fixture
def ben(person: Callable[..., User]) -> User:
    return person("ben")


@pytest.fixture
def vi(person: Callable[..., User]) -> User:
    return person("vi")


@pytest.fixture
def cy(person: Callable[..., User]) -> User:
    return person("cy")


@pytest.fixture
def workspace(ada: User, ben: User, vi: User, vault: Path) -> Workspace:
    made: Workspace = Workspace.objects.create(slug="default", name="Default", vault_path=str(vault))
    for user, role in ((ada, Role.OWNER), (ben, Role.MEMBER), (vi, Role.VIEWER)):
        Membership.objects.create(workspace=made, user=user, role=role)
    return made


@pytest.fixture
def as_ada(ada: User, workspace: Workspace) -> Caller:
    return caller_of_user(ada)


@pytest.fixture
def as_ben(ben: User, workspace: Workspace) -> Caller:
    return caller_of_user(ben)


@pytest.fixture
def as_cy(cy: User, vault: Path, workspace: Workspace) -> Caller:
    """Cy has a workspace of his own, and none of ours."""
    own = Workspace.objects.create(slug="elsewhere", name="Elsewhere", vault_path=str(vault))
    Membership.objects.create(workspace=own, user=cy, role=Role.OWNER)
    return caller_of_user(cy)


@pytest.fixture
def key(workspace: Workspace) -> Callable[..., dict[str, str]]:
    """The header of a fresh key of somebody's."""

    def make(user: User, **more: object) -> dict[str, str]:
        _, token = make_key(user, "test", **more)  # type: ignore[arg-type]
        return {"Authorization": f"Bearer {token}"}

    return make


@pytest.fixture
def scripted() -> Iterator[ScriptedRuntime]:
    runtime.scripts.clear()
    runtime.requests.clear()
    yield runtime
    runtime.scripts.clear()
