"""The page that searches: what it shows of what was found, and to whom."""

from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import Client

from sessions_app.access.caller import Caller
from sessions_app.models import Session
from sessions_app.search import indexing
from tests.pages.browsing import Enter
from tests.pages.test_chat_page import a_talk

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("where", ["/search", "/search/found"])
def test_it_marks_the_words_escapes_the_rest_and_links_to_chats(
    enter: Enter, ada: User, ben: User, as_ada: Caller, vault: Path, where: str
) -> None:
    talk = a_talk(as_ada, 1)
    (vault / "Quinces.md").write_text(
        "# <b>Quinces</b>\n\nThey ripen in October & <script>not before</script>."
    )
    indexing.index_changed()
    page = enter(ada).get(f"{where}?q=october").content.decode()
    assert "<mark>October</mark> &amp; &lt;script&gt;" in page
    assert "Quinces.md" in page
    title = Session.objects.get().title.split()[0]
    assert f'href="{talk}"' in enter(ada).get(f"{where}?q={title}&kind=chats").content.decode()
    assert "found" not in enter(ben).get(f"/search/found?q={title}&kind=chats").content.decode().split('"')
    assert "Nothing has these words" in enter(ada).get(f"{where}?q=before&kind=chats").content.decode()


def test_whoever_is_not_signed_in_is_sent_to_sign_in(db: None) -> None:

    for where in ("/search", "/search/found?q=x"):
        assert Client().get(where).status_code == 302
