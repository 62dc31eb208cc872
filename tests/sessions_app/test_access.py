"""Keys, sign-in links, and who sees which rows."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone

from sessions_app.access.caller import Caller
from sessions_app.access.models import ApiKey, KeyScope, Membership, Role, SignInLink, Workspace
from sessions_app.access.services import (
    caller_of_key,
    caller_of_user,
    link_is_good,
    links,
    make_key,
    make_sign_in_link,
    use_sign_in_link,
)
from sessions_app.models import Session

pytestmark = pytest.mark.django_db

Clock = Callable[..., None]


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Moves the clock on."""

    def move(**by: float) -> None:
        then = timezone.now() + timedelta(**by)
        monkeypatch.setattr(timezone, "now", lambda: then)

    return move


@pytest.fixture
def elsewhere(ada: User, cy: User) -> Workspace:
    """Ada's too, and Cy's."""
    made: Workspace = Workspace.objects.create(slug="elsewhere", name="Elsewhere", vault_path="/v")
    for user in (ada, cy):
        Membership.objects.create(workspace=made, user=user, role=Role.OWNER)
    return made


def session_in(workspace: Workspace) -> Session:
    made: Session = Session.objects.create(
        workspace=workspace, visibility="workspace", model="m", vault_root="/v"
    )
    return made


def seen_by(caller: Caller | None) -> set[str]:
    assert caller is not None
    workspaces = Workspace.objects.visible_to(caller)
    assert len(workspaces) == len(set(workspaces))
    return {workspace.slug for workspace in workspaces}


# Keys


def test_a_key_says_who_calls_and_what_it_may(ben: User) -> None:
    key, token = make_key(ben, "laptop", scopes=[KeyScope.READ])
    caller = caller_of_key(token)
    assert caller is not None
    assert (caller.user_id, caller.key_id, caller.source) == (ben.pk, key.pk, "api")
    assert caller.may(KeyScope.READ)
    assert not caller.may(KeyScope.CHAT)
    assert not caller.is_operator


def test_the_database_holds_no_key(ben: User) -> None:
    _, token = make_key(ben, "laptop")
    kept = str(list(ApiKey.objects.values()))
    assert token not in kept
    assert token.removeprefix("para_") not in kept


@pytest.mark.parametrize("token", ["", "para_", "para_nothing", "x" * 100_000, "\0"])
def test_what_is_no_key_is_nobody(ben: User, token: str) -> None:
    make_key(ben, "laptop")
    assert caller_of_key(token) is None


def test_the_hash_of_a_key_is_no_key(ben: User) -> None:
    key, _ = make_key(ben, "laptop")
    assert caller_of_key(key.digest) is None


def test_a_revoked_key_is_nobody(ben: User) -> None:
    key, token = make_key(ben, "laptop")
    ApiKey.objects.filter(pk=key.pk).update(revoked_at=timezone.now())
    assert caller_of_key(token) is None


def test_a_key_ends_when_it_was_said(ben: User, later: Clock) -> None:
    _, token = make_key(ben, "laptop", expires_at=timezone.now() + timedelta(hours=1))
    later(minutes=59)
    assert caller_of_key(token) is not None
    later(minutes=2)
    assert caller_of_key(token) is None


def test_the_key_of_somebody_who_left_is_nobody(ben: User) -> None:
    _, token = make_key(ben, "laptop")
    User.objects.filter(pk=ben.pk).update(is_active=False)
    assert caller_of_key(token) is None


def test_an_operator_is_one_only_as_long_as_the_flag_stands(ada: User) -> None:
    _, token = make_key(ada, "laptop")
    User.objects.filter(pk=ada.pk).update(is_staff=False)
    caller = caller_of_key(token)
    assert caller is not None
    assert not caller.is_operator


def test_last_use_is_written_at_most_once_a_minute(
    ben: User, later: Clock, django_assert_num_queries: Any
) -> None:
    key, token = make_key(ben, "laptop")
    first = timezone.now()
    with django_assert_num_queries(2):  # the key with its owner, and the note
        caller_of_key(token)
    later(seconds=50)
    with django_assert_num_queries(1):
        caller_of_key(token)
    key.refresh_from_db()
    assert key.last_used_at is not None
    assert key.last_used_at - first < timedelta(seconds=10)
    later(seconds=15)
    with django_assert_num_queries(2):
        caller_of_key(token)


def test_a_limited_key_costs_one_query_more(
    ada: User, workspace: Workspace, elsewhere: Workspace, django_assert_num_queries: Any
) -> None:
    _, token = make_key(ada, "laptop", workspaces=[workspace, elsewhere])
    caller_of_key(token)
    with django_assert_num_queries(2):
        caller_of_key(token)


# Who sees what


def test_members_see_their_workspace_and_nobody_else_does(
    workspace: Workspace, elsewhere: Workspace, ada: User, ben: User, vi: User, cy: User
) -> None:
    seen = {user.username: seen_by(caller_of_user(user)) for user in (ada, ben, vi, cy)}
    assert seen == {
        "ada": {"default", "elsewhere"},
        "ben": {"default"},
        "vi": {"default"},
        "cy": {"elsewhere"},
    }


@pytest.mark.parametrize(("visibility", "by_others"), [("private", False), ("workspace", True)])
def test_sessions_are_seen_by_their_author_and_shared_through_their_workspace(
    session: Session,
    as_ada: Caller,
    as_ben: Caller,
    vi: User,
    as_cy: Caller,
    visibility: str,
    by_others: bool,
) -> None:
    Session.objects.update(visibility=visibility)

    def seen(caller: Caller) -> list[Session]:
        return list(Session.objects.visible_to(caller))

    callers = (as_ada, as_ben, caller_of_user(vi), as_cy)
    assert [seen(caller) for caller in callers] == [
        [session],
        *[[session] if by_others else []] * 2,
        [],
    ]


def test_who_may_only_look_does_not_write(
    session: Session, as_ada: Caller, as_ben: Caller, vi: User, as_cy: Caller
) -> None:
    Session.objects.update(visibility="workspace")
    callers = (as_ada, as_ben, caller_of_user(vi), as_cy)
    assert [Session.objects.writable_by(caller).exists() for caller in callers] == [True, True, False, False]


def test_a_role_in_one_workspace_is_none_in_another(ben: User, workspace: Workspace) -> None:
    """Ben looks on in one and writes in the other: the two conditions must meet in one membership."""
    looked_at = Workspace.objects.create(slug="looked-at", name="L", vault_path="/v")
    Membership.objects.create(workspace=looked_at, user=ben, role=Role.VIEWER)
    session_in(looked_at)
    written = session_in(workspace)
    assert list(Session.objects.writable_by(caller_of_user(ben))) == [written]


def test_a_session_is_seen_once_however_many_members_there_are(session: Session, as_ada: Caller) -> None:
    assert Session.objects.visible_to(as_ada).count() == 1
    assert Workspace.objects.visible_to(as_ada).count() == 1


def test_an_operator_sees_no_workspace_that_is_not_theirs(ada: User, as_cy: Caller) -> None:
    assert seen_by(caller_of_user(ada)) == {"default"}


def test_who_is_no_member_any_more_sees_nothing(session: Session, as_ben: Caller) -> None:
    Membership.objects.filter(user_id=as_ben.user_id).delete()
    assert not Session.objects.visible_to(as_ben).exists()


def test_a_key_without_a_limit_sees_what_its_owner_sees(
    ada: User, workspace: Workspace, elsewhere: Workspace
) -> None:
    assert seen_by(caller_of_key(make_key(ada, "laptop")[1])) == {"default", "elsewhere"}


def test_a_limited_key_sees_its_workspaces_alone(
    ada: User, workspace: Workspace, elsewhere: Workspace
) -> None:
    caller = caller_of_key(make_key(ada, "laptop", workspaces=[elsewhere])[1])
    ours, theirs = session_in(workspace), session_in(elsewhere)
    assert seen_by(caller) == {"elsewhere"}
    assert caller is not None
    assert list(Session.objects.visible_to(caller)) == [theirs]
    assert list(Session.objects.writable_by(caller)) == [theirs]
    assert ours not in Session.objects.visible_to(caller)


def test_a_key_limited_to_a_workspace_of_others_sees_nothing(
    ben: User, workspace: Workspace, elsewhere: Workspace
) -> None:
    assert seen_by(caller_of_key(make_key(ben, "laptop", workspaces=[elsewhere])[1])) == set()


def test_a_limited_key_does_not_widen_when_its_workspace_is_gone(
    ada: User, workspace: Workspace, elsewhere: Workspace
) -> None:
    _, token = make_key(ada, "laptop", workspaces=[elsewhere])
    elsewhere.delete()
    assert seen_by(caller_of_key(token)) == set()


@pytest.mark.database
def test_seeing_takes_one_query(session: Session, as_ada: Caller, django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(1):
        assert list(Session.objects.visible_to(as_ada).with_activity())
    with django_assert_num_queries(1):
        assert list(Workspace.objects.visible_to(as_ada))


# Sign-in links


def test_a_link_signs_in_once(ada: User) -> None:
    token = make_sign_in_link(ada)
    assert link_is_good(token)
    assert use_sign_in_link(token) == ada
    assert not link_is_good(token)
    assert use_sign_in_link(token) is None


def test_looking_at_a_link_does_not_use_it(ada: User) -> None:
    token = make_sign_in_link(ada)
    assert [link_is_good(token) for _ in range(3)] == [True] * 3


def test_the_database_holds_no_link(ada: User) -> None:
    assert make_sign_in_link(ada) not in str(list(SignInLink.objects.values()))


def test_a_link_lives_for_ten_minutes(ada: User, later: Clock) -> None:
    token = make_sign_in_link(ada)
    later(minutes=9.9)
    assert link_is_good(token)
    later(minutes=0.2)
    assert not link_is_good(token)
    assert use_sign_in_link(token) is None


def test_a_link_of_somebody_who_left_is_dead(ada: User) -> None:
    token = make_sign_in_link(ada)
    User.objects.filter(pk=ada.pk).update(is_active=False)
    assert not link_is_good(token)
    assert use_sign_in_link(token) is None


def test_another_token_is_no_link(ada: User) -> None:
    make_sign_in_link(ada)
    assert use_sign_in_link("another") is None


@pytest.mark.database
@pytest.mark.django_db(transaction=True)
def test_of_two_presses_at_once_one_wins(ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both have seen that the link is good before either takes it."""
    both_looked = Barrier(2)
    look = links._good_link

    def look_and_wait(token: str) -> SignInLink | None:
        link = look(token)
        connection.close()
        both_looked.wait(10)
        return link

    monkeypatch.setattr(links, "_good_link", look_and_wait)

    def press(token: str) -> User | None:
        try:
            return use_sign_in_link(token)
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        winners = list(pool.map(press, [make_sign_in_link(ada)] * 2))
    assert sorted(winners, key=bool) == [None, ada]


@pytest.mark.database
@pytest.mark.django_db(transaction=True)
def test_of_many_presses_at_once_one_wins(ada: User) -> None:
    def press(token: str) -> bool:
        try:
            start.wait(10)
            return use_sign_in_link(token) is not None
        finally:
            connection.close()

    for _ in range(10):
        start, token = Barrier(8), make_sign_in_link(ada)
        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(press, [token] * 8)) == 1
