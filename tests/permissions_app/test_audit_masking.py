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
    "MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.abcdef1234567890abcdef12345",
    "security add-generic-password -a ada -s notes -w abcdef1234567890",
    "security add-internet-password -wabcdef1234567890",
    "security unlock-keychain -p abcdef1234567890 login.keychain",
    "docker login -u ada -p abcdef1234567890 registry.example",
    "docker login -pabcdef1234567890",
    "az login --service-principal -u ada -p abcdef1234567890",
    "twine upload -u ada -p abcdef1234567890 dist/*",
    "mongosh -u ada -p abcdef1234567890",
    "ldapsearch -D cn=ada -w abcdef1234567890",
    "sqlcmd -U ada -P abcdef1234567890",
    'curl -b "session=abcdef1234567890" https://api.example',
    "curl -sb 'a=b; session=abcdef1234567890' https://api.example",
    "curl https://api.example -b session=abcdef1234567890",
    "redis-cli -h db -a abcdef1234567890 get pears",
    "http -a ada:abcdef1234567890 api.example",
    "xh POST api.example -a 'ada:abcdef1234567890'",
    "psql -c \"ALTER USER ada PASSWORD 'abcdef1234567890'\"",
    "CREATE ROLE ada WITH LOGIN ENCRYPTED PASSWORD 'abcdef1234567890'",
    "mysql -e \"CREATE USER ada IDENTIFIED BY 'abc def1234567890'\"",
    "ALTER USER ada IDENTIFIED WITH caching_sha2_password BY 'abcdef1234567890'",
    "machine api.example\n  login ada\n  password abcdef1234567890",
    "login ada password abcdef1234567890",
    "gh secret set TOKEN_OF_ADA -b abcdef1234567890",
    'gh secret set A --body "abc def1234567890"',
    "vault login abcdef1234567890",
    "vault login -no-print s.abcdef1234567890",
    "7z x notes.7z -pabcdef1234567890",
    '7z a -p"abc def1234567890" notes.7z notes',
    "rar a -hpabcdef1234567890 notes.rar notes",
    "zip -r -P abcdef1234567890 notes.zip notes",
    "unzip -P 'abc def1234567890' notes.zip",
    *(
        f"echo {prefix}abcdef1234567890"
        for prefix in (
            *("dckr_pat_", "dop_v1_", "shpat_", "whsec_", "gsk_", "xai-", "sbp_", "lin_api_"),
            *("AGE-SECRET-KEY-1", "ATATT3x"),
        )
    ),
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
        "grep -p pears notes.md",
        "mkdir -p a/b",
        "ls -a notes",
        "cp -a x y",
        "docker run -p 80:80 nginx",
        "docker login registry.example && docker run -p 80:80 nginx",
        "zip -r notes.zip notes && wget -P folder https://example.org/",
        "unzip -p notes.zip pears.md",
        "7z x notes.7z -oout -p",
        "curl -b cookies.txt -o page.html https://example.org/",
        "git checkout -b pears",
        "gh pr create -t Pears -b Plums",
        "redis-cli -h db get pears",
        "security find-generic-password -s notes -w",
        "git commit -m 'The login form password check is gone'",
        "The login page password field, and the vault login page",
        "grep -rn password 'docs/a b.md'",
        "Each is identified by name, and by a number",
        "gsk_render_node_get_bounds(node)",
        "xai-explainability-notes-of-spring.md",
        "Notes.of-october.2024-about-the-pears-and-the-plums",
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


HARD = [
    *("a", "-a", "_", "1", "password", "bearer ", "://", "a:b@", "-u x", "eyJ", '"token": '),
    *("mysql -h ", " set a:", "sk_live_", '\\"', "-----BEGIN "),
    *("docker login ", "docker login -p -", "curl -b ", "curl -b '", "http a=", "7z ", "zip -P -", "MN-"),
    *("user a ", "identified with ", "machine a ", "login a password ", "vault login - ", "gh secret set "),
]


@pytest.mark.parametrize("piece", HARD)
def test_a_text_that_is_made_to_be_hard_takes_no_time(piece: str) -> None:
    """It would hold the worker up."""
    assert effort(lambda: summary({f"n{number}": [piece * 4_000] * 20 for number in range(20)})) < 120


@pytest.mark.parametrize("piece", [*HARD, ":"])
def test_the_work_grows_with_the_text_and_no_faster(piece: str) -> None:
    assert effort(lambda: masked((piece * 40_000)[:40_000])) < 250
