"""What a summary shows, and what it never shows."""

from typing import Any

import pytest

from permissions_app.audit.masking import LONGEST, MASK, masked, summary
from tests.effort import effort

SECRETS = [
    "curl -H 'Authorization: Bearer abcdef1234567890' https://api.example",
    "curl -H 'authorization: token abcdef1234567890'",
    "curl -u ada:abcdef1234567890 https://api.example",
    "git clone https://ada:abcdef1234567890@github.example/x.git",
    "git clone https://abcdef1234567890@github.example/x.git",
    "psql postgres://ada:abcdef1234567890@db/x",
    "export ANTHROPIC_API_KEY=abcdef1234567890",
    "export AWS_SECRET_ACCESS_KEY='abcdef1234567890'",
    'DB_PASSWORD="abc def1234567890"',
    '{"password": "abcdef1234567890"}',
    "https://api.example/?access_token=abcdef1234567890&x=1",
    "mysql --password abcdef1234567890",
    "mysql --password=abcdef1234567890",
    "echo sk-ant-abcdef1234567890",
    "echo ghp_abcdef1234567890abcdef",
    "X-API-Key: para_abcdef1234567890",
    "echo eyJhbGciOi.eyJabcdef1234567890.sig",
    "-----BEGIN PRIVATE KEY-----\nabcdef1234567890\n-----END PRIVATE KEY-----",
    "-----BEGIN RSA PRIVATE KEY-----\nabcdef1234567890",
    "-----BEGIN PGP PRIVATE KEY BLOCK-----\nabcdef1234567890",
    "curl https://api.telegram.org/bot123456789:AAabcdef1234567890abcdef/getMe",
    "curl --user ada:abcdef1234567890 https://api.example",
    "curl -su ada:abcdef1234567890 https://api.example",
    'curl -d "{\\"password\\": \\"abcdef1234567890\\"}" https://api.example',
    "export STRIPE=sk_live_abcdef1234567890",
    "ENCRYPTION_KEY=abcdef1234567890 ./serve",
    "AccountName=ada;AccountKey=abcdef1234567890;",
    "aws configure set aws_secret_access_key abcdef1234567890",
    "npm config set //registry.example/:_authToken abcdef1234567890",
    "mysql -h db -u ada -pabcdef1234567890 notes",
    "sshpass -p abcdef1234567890 ssh db",
    "PASSWORD=$'abcdef1234567890'",
    "GOCSPX-abcdef1234567890",
    "vault login hvs.abcdef1234567890",
    "SG.abcdef1234567890.abcdef1234567890",
    "curl -d x https://hooks.slack.com/services/T0/B0/abcdef1234567890",
    '{"name": "API_KEY", "value": "abcdef1234567890"}',
]


@pytest.mark.parametrize("text", SECRETS)
def test_no_secret_is_shown(text: str) -> None:
    assert "def1234567890" not in masked(text)
    assert "def1234567890" not in summary({"command": text})


@pytest.mark.parametrize("name", ["password", "api_key", "apiKey", "AUTHORIZATION", "client_secret", "token"])
def test_an_argument_with_the_name_of_a_secret_is_masked(name: str) -> None:
    assert summary({name: "whatever", "headers": {name: "whatever"}}).count("whatever") == 0


@pytest.mark.parametrize(
    "text",
    [
        "git commit -m 'Explain the tokenizer'",
        "ls -la notes",
        "grep -rn password docs/",
        "https://example.org/a?b=c#d",
        "python -m pytest tests/test_secrets.py",
        "tar -xzf pears.tgz -p plums",
        "git config set user.name Ada",
        "for key in a b; do echo $key; done",
    ],
)
def test_what_is_no_secret_stays_readable(text: str) -> None:
    assert masked(text) == text


@pytest.mark.parametrize(
    "value", ["x" * 100_000, ["y" * 500] * 50, {"z": {"z": {"z": "w" * 9_000}}}, "\0\ud800"]
)
def test_it_is_short_and_is_text(value: Any) -> None:
    told = summary({f"name{number}": value for number in range(30)})
    assert len(told) <= LONGEST
    assert "\0" not in told
    told.encode()


def test_a_secret_that_is_cut_off_does_not_show_its_beginning() -> None:
    assert "sk-ant" not in summary({"command": "x " * 80 + "sk-ant-" + "a" * 9_000})
    assert MASK in summary({"command": "sk-ant-" + "a" * 9_000})


@pytest.mark.parametrize(
    "piece",
    [
        *("a", "-a", "_", "1", "password", "bearer ", "://", "a:b@", "-u x", "eyJ", '"token": '),
        *("mysql -h ", " set a:", "sk_live_", '\\"', "-----BEGIN "),
    ],
)
def test_a_text_that_is_made_to_be_hard_takes_no_time(piece: str) -> None:
    """It would hold the worker up."""
    assert effort(lambda: summary({f"n{number}": [piece * 4_000] * 20 for number in range(20)})) < 120
