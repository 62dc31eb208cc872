from collections.abc import Callable
from typing import Any

from django.contrib.auth.models import User
from django.test import Client

Enter = Callable[[User], Client]
PASSWORD = {"username": "ada", "password": "ada has a password"}


def send(browser: Client, where: str, form: dict[str, str] | None = None) -> Any:
    """Fills in the form of a page, as a browser does: with the token that the page has."""
    browser.get(where)
    token = browser.cookies["csrftoken"].value
    return browser.post(where, {**(form or {}), "csrfmiddlewaretoken": token})


def is_in(browser: Client) -> bool:
    return bool(browser.get("/").status_code == 200)
