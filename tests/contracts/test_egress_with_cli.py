"""The real CLI behind the real wall fetches from the web through the egress door, and from nowhere else.

The web is a server with TLS on the loopback, `public.example` is its name to our resolver alone, and the CLI
is told to trust its certificate.
"""

import ssl
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from agents_app.egress.door import Egress, EgressPass
from agents_app.model.demo.wire import say
from agents_app.runtimes.base import RunFailed
from agents_app.runtimes.claude.runtime import ClaudeRuntime
from agents_app.runtimes.events import Answered, RuntimeEvent
from permissions_app.audit import Entry
from permissions_app.gate import Answer
from permissions_app.rules.decision import Decision, allow, deny
from permissions_app.rules.setting import Setting
from permissions_app.rules.tools import ToolCall
from tests.contracts.stage import Stage, door_to, sandbox_that_runs
from tests.scripted_model import ScriptedModel, calls

NAME, ADDRESS = "public.example", "127.0.0.77"
ENVIRONMENT = "PARACHUTE_AGENT_ENVIRONMENT"


def certificate(folder: Path) -> Path:
    """Of our own making, with its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    who = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, NAME)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(who, who, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(NAME)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "tls.pem").write_bytes(private + made.public_bytes(pem))
    (folder / "ca.crt").write_bytes(made.public_bytes(pem))
    return folder / "tls.pem"


class Web:
    def __init__(self, egress: Egress, asked: list[str], told: list[Entry], port: int) -> None:
        self.egress, self.asked, self.told = egress, asked, told
        self.url = f"https://{NAME}:{port}"


async def a_page(request: web.BaseRequest) -> web.StreamResponse:
    return web.Response(text="The quinces are ripe in October.", content_type="text/plain")


@asynccontextmanager
async def the_web(folder: Path, page: Any = a_page) -> AsyncIterator[Web]:
    runner = web.ServerRunner(web.Server(page, access_log=None), shutdown_timeout=0.1)
    await runner.setup()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate(folder))
    await web.TCPSite(runner, ADDRESS, 0, ssl_context=context).start()
    port = runner.addresses[0][1]
    asked, told = list[str](), list[Entry]()

    async def resolve(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        if host == NAME:
            return [ADDRESS]
        raise OSError("This test knows no other name, and no packet leaves for one.")

    with tempfile.TemporaryDirectory(prefix="out") as place:
        egress = Egress(
            Path(place) / "out",
            resolve=resolve,
            ports=frozenset({port, 443}),
            also=frozenset({ADDRESS}),
            heard=told.append,
        )
        try:
            yield Web(egress, asked, told, port)
        finally:
            egress.close()
            await runner.cleanup()


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as model:
        yield model


@pytest.fixture
async def there(tmp_path: Path) -> AsyncIterator[Web]:
    (tmp_path / "tls").mkdir()
    async with the_web(tmp_path / "tls") as made:
        yield made


@pytest.fixture
async def stage(tmp_path: Path, model: ScriptedModel, there: Web, settings: Any) -> AsyncIterator[Stage]:
    settings.PARACHUTE_HOME = tmp_path / "home"
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "ca.crt").write_bytes((tmp_path / "tls/ca.crt").read_bytes())
    own = {"NODE_EXTRA_CA_CERTS": str(vault / "ca.crt"), "CURL_CA_BUNDLE": str(vault / "ca.crt")}
    setattr(settings, ENVIRONMENT, {**getattr(settings, ENVIRONMENT), **own})
    sandbox = sandbox_that_runs("bubblewrap")
    async with door_to(model.url) as door:
        runtime = ClaudeRuntime(door, there.egress)
        try:
            yield Stage(runtime, sandbox, vault, tmp_path / "home")
        finally:
            await runtime.close()


class Person:
    """Is asked about hosts, and says of each what they say of all."""

    def __init__(self, stage: Stage, says: Decision) -> None:
        self.asked: list[str] = []
        self.told: list[tuple[str, ...]] = []
        self.says = says
        self.stage = stage
        stage.gate._asks = self
        stage.gate.reads_strangers = self.mark

    async def __call__(self, call: ToolCall, decision: Decision, setting: Setting) -> Answer:
        self.asked.append(f"{call.name} {call.input['url']}")
        self.told.append(call.meanwhile)
        return Answer(self.says)

    async def mark(self) -> None:
        """As the rows would say it from the next call on."""
        self.stage.gate.setting = replace(self.stage.gate.setting, has_read_strangers=True)


def answers(events: list[RuntimeEvent]) -> list[str]:
    return [each.content for each in events if isinstance(each, Answered)]


async def test_a_page_is_fetched_and_no_other_host_is_asked_about_it(
    stage: Stage, model: ScriptedModel, there: Web
) -> None:
    fetch = calls("WebFetch", url=f"{there.url}/garden", prompt="When are they ripe?")
    model.script("look it up", [fetch, say("In October.")])
    heard = await stage.play("look it up", web=True)
    assert set(there.asked) == {NAME}
    assert [(each.outcome, dict(each.arguments)["host"]) for each in there.told] == [("allowed", NAME)]
    assert any("quinces are ripe" in str(asked.body) for asked in model.requests), answers(heard)


async def test_an_agent_whose_way_out_cannot_be_opened_does_not_run(
    stage: Stage, model: ScriptedModel, there: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    issue = there.egress.issue

    def mistaken(session_id: UUID) -> EgressPass:
        known = issue(session_id)
        known.token = "x" * len(known.token)
        return known

    monkeypatch.setattr(there.egress, "issue", mistaken)
    with pytest.raises(RunFailed):
        await stage.play("say it", web=True)
    assert model.requests == []


async def test_what_it_was_opened_by_is_gone_before_the_agent_is_asked_anything(
    stage: Stage, model: ScriptedModel, there: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    issue, issued = there.egress.issue, list[EgressPass]()

    def noted(session_id: UUID) -> EgressPass:
        issued.append(issue(session_id))
        return issued[-1]

    monkeypatch.setattr(there.egress, "issue", noted)
    connect = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
    (stage.vault / "knock.sh").write_text(
        f"for each in $(find / -xdev -name 'out-*' -type s 2>/dev/null) $(awk '{{ print $5 }}' "
        f"/proc/self/mountinfo | grep /out-); do python3 -c '{connect}' $each 2>&1 | tail -1; done"
    )
    model.script("knock", [calls("Bash", command="sh knock.sh"), say("Knocked.")])
    (answer,) = answers(await stage.play("knock", web=True))
    assert set(answer.strip().splitlines()) == {"ConnectionRefusedError: [Errno 111] Connection refused"}
    assert [each.handover.path.exists() for each in issued] == [False]


async def test_of_what_opened_it_nothing_is_left(stage: Stage, model: ScriptedModel) -> None:
    (stage.vault / "look.sh").write_text(
        "cat /proc/[0-9]*/status | grep -c zombie; env | grep -c PARACHUTE_EGRESS; cat /proc/[0-9]*/comm"
    )
    model.script("look", [calls("Bash", command="sh look.sh"), say("Looked.")])
    (seen,) = answers(await stage.play("look", web=True))
    assert seen.startswith("0\n0\n")
    assert "python" not in seen


async def test_a_program_of_the_agent_goes_the_same_way(
    stage: Stage, model: ScriptedModel, there: Web
) -> None:
    command = (
        f"curl -sS {there.url}/a; curl -sS --noproxy '*' {there.url}/b; curl -sS https://169.254.169.254/"
    )
    model.script("by hand", [calls("Bash", command=command), say("Done.")])
    [answer] = answers(await stage.play("by hand", web=True))
    assert answer.count("quinces are ripe") == 1
    assert [each.outcome for each in there.told] == ["allowed", "denied"]


async def test_once_it_has_read_the_web_a_person_is_asked_about_a_host_and_the_program_waits(
    stage: Stage, model: ScriptedModel, there: Web
) -> None:
    """The command itself is what reads: so the second connection asks, and the third one need not."""
    person = Person(stage, allow("person", "Yes."))
    command = f"for each in a b c; do curl -sS {there.url}/$each; done"
    model.script("go", [calls("Bash", command="true"), calls("Bash", command=command), say("Done.")])
    answer = answers(await stage.play("go", web=True))[-1]
    assert answer.count("quinces are ripe") == 3
    assert person.asked == [f"Reach https://{NAME}/"]
    assert person.told == [(command,)]
    assert [each.outcome for each in there.told] == ["allowed"] * 3


async def test_a_fetch_is_asked_about_once_and_what_it_read_counts_at_once(
    stage: Stage, model: ScriptedModel, there: Web
) -> None:
    person = Person(stage, deny("person", "A person did not allow this."))
    fetch = calls("WebFetch", url=f"{there.url}/garden", prompt="When are they ripe?")
    model.script("look", [fetch, calls("Bash", command=f"curl -sS {there.url}/?secret; true"), say("Done.")])
    heard = answers(await stage.play("look", web=True))
    assert person.asked == [f"Reach https://{NAME}/"]
    assert [each.outcome for each in there.told] == ["allowed", "denied"]
    assert "quinces" not in heard[-1]


async def test_a_program_that_is_refused_ends_and_the_agent_reads_why(
    stage: Stage, model: ScriptedModel, there: Web
) -> None:
    person = Person(stage, deny("nobody_answered", "Not now. This is ticket 1a2b3c4d."))
    await person.mark()
    model.script("go", [calls("Bash", command=f"curl -sS {there.url}/"), say("Done.")])
    [answer] = answers(await stage.play("go", web=True))
    assert "quinces" not in answer
    assert "403" in answer
    assert there.asked == []
    assert any("ticket 1a2b3c4d" in str(asked.body) for asked in model.requests), answer


async def test_a_command_may_take_longer_than_a_person(stage: Stage, model: ScriptedModel) -> None:
    model.script("go", [say("Done.")])
    await stage.play("go", web=True)
    [shell] = [each["description"] for each in model.requests[0].body["tools"] if each["name"] == "Bash"]
    assert "default 240000" in shell


async def test_nothing_of_the_way_out_stays_with_the_agent(stage: Stage, model: ScriptedModel) -> None:
    """Neither its token, nor a process of ours."""
    look = "env | grep -c PARACHUTE_EGRESS; ps -eo comm | grep -c python"
    model.script("look", [calls("Bash", command=f"{look}; true"), say("Done.")])
    [answer] = answers(await stage.play("look", web=True))
    assert answer.split() == ["0", "0"]


async def test_a_session_without_the_web_has_no_way_out(
    stage: Stage, model: ScriptedModel, there: Web
) -> None:
    model.script("try", [calls("Bash", command=f"env | grep -i _proxy; curl -sS {there.url}/"), say("Done.")])
    [answer] = answers(await stage.play("try", web=False))
    assert "quinces" not in answer
    assert "127.0.0.1:3128" not in answer
    assert there.asked == []
