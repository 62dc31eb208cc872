"""Of two owners who put each other out at once, one stays."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.contrib.auth.models import User
from django.db import connection

from sessions_app.access.models import Membership, Role, Workspace
from sessions_app.access.services import caller_of_user, change_role, remove_member, set_password
from sessions_app.errors import ParachuteError

pytestmark = [pytest.mark.database, pytest.mark.django_db(transaction=True)]


@pytest.mark.parametrize("act", ["remove", "change"])
def test_one_of_two_owners_stays(act: str, workspace: Workspace, ada: User, ben: User) -> None:
    def put_out(pair: tuple[User, User]) -> bool:
        by, whom = pair
        try:
            start.wait(10)
            if act == "remove":
                remove_member(caller_of_user(by), "default", whom.pk)
            else:
                change_role(caller_of_user(by), "default", whom.pk, Role.VIEWER)
        except ParachuteError:
            return False
        else:
            return True
        finally:
            connection.close()

    for _ in range(5):
        for user in (ada, ben):
            Membership.objects.update_or_create(workspace=workspace, user=user, defaults={"role": Role.OWNER})
        start = Barrier(2)
        with ThreadPoolExecutor(2) as pool:
            assert sorted(pool.map(put_out, [(ada, ben), (ben, ada)])) == [False, True]
        assert workspace.memberships.filter(role=Role.OWNER).count() == 1


def test_of_two_new_passwords_at_once_the_first_stands(ada: User) -> None:
    same = User.objects.get(pk=ada.pk)
    set_password(ada, "the first one")
    with pytest.raises(ParachuteError):
        set_password(same, "the second one")
    assert User.objects.get(pk=ada.pk).check_password("the first one")
