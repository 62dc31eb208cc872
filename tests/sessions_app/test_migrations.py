"""What the models say and what the migrations make is the same."""

import pytest
from django.core.management import call_command

pytestmark = [pytest.mark.django_db, pytest.mark.database]


def test_no_model_waits_for_a_migration() -> None:
    call_command("makemigrations", "--check", "--dry-run", verbosity=0)
