"""The egress door: public hosts alone, by the address that was looked at. Nothing leaves the loopback."""

import asyncio
import socket as sockets
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from uuid import uuid4

import pytest

from agents_app.egress.door import MOST_AT_ONCE, Limits
from agents_app.egress.names import MOST_OF_ONE, resolved
from agents_app.egress.refusals import MOST_TOLD
from permissions_app.audit import Entry
from permissions_app.rules.decision import Decision, deny
from tests.agents_app.handing_over import PATIENCE, SESSION
from tests.agents_app.way_out import HOME, Host, Hosts, Names, Out, SlowNames, let_out, way_out

NOT_NOW = deny("nobody_answered", "Not now: nobody answered. This is ticket 1a2b3c4d.")


def status(answer: bytes) -> int:
    return int(answer.split()[1])


def rule(answer: bytes) -> str:
    return answer.partition(b"X-Parachute-Rule: ")[2].partition(b"\r")[0].decode()


@pytest.fixture
def names() -> Names:
    return Names()


@pytest.fixture
async def host() -> AsyncIterator[Host]:
    yield Host()


@pytest.fixture
def told() -> list[Entry]:
    return []


@pytest.fixture
async def out(names: Names, host: Host, told: list[Entry]) -> AsyncIterator[Out]:
    """Where no second ends by itself."""
    async with way_out(names, host, told, limits=Limits(counts=3_600)) as made:
        yield made


async def test_a_tunnel_leads_to_a_public_host(out: Out, host: Host, told: list[Entry]) -> None:
    answer = await out.connect("public.example")
    assert answer.startswith(b"HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 200 OK")
    assert answer.endswith(b"hello")
    assert host.heard == [b"GET / HTTP/1.1\r\n\r\n"]
    [entry] = told
    assert (entry.kind, entry.outcome, entry.session_id) == ("egress", "allowed", SESSION)
    assert entry.turn_id == out.known.turn_id
    assert entry.arguments == {"host": "public.example", "port": out.port}


async def test_a_plain_request_is_passed_on_without_what_is_the_proxys(out: Out, host: Host) -> None:
    answer = await out.ask(
        "GET http://public.example:{port}/a?b=c HTTP/1.1\r\nHost: elsewhere\r\nProxy-Authorization: x\r\n"
        "Connection: keep-alive\r\nAccept: */*\r\n\r\n"
    )
    assert answer.endswith(b"hello")
    lines = host.heard[0].decode().split("\r\n")
    assert lines[0] == "GET /a?b=c HTTP/1.1"
    assert sorted(lines[1:-2]) == ["Accept: */*", "Connection: close", f"Host: public.example:{out.port}"]


async def test_what_redirects_is_handed_over_and_not_followed(out: Out, host: Host) -> None:
    host.answer = b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n"
    answer = await out.ask("GET http://public.example:{port}/ HTTP/1.1\r\n\r\n")
    assert status(answer) == 302
    assert len(host.heard) == 1


@pytest.mark.parametrize(
    "name",
    [
        "localhost",
        "127.0.0.1",
        "127.1",
        "0x7f.1",
        "2130706433",
        "0177.0.0.1",
        "0.0.0.0",
        "0",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:10.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "[fe80::1]",
        "[fd00:ec2::254]",
        "[ff02::1]",
        "169.254.169.254",
        "100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "100.64.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "metadata.google.internal",
        "printer.local",
        "intranet",
        "parachute",
    ],
)
async def test_what_is_not_public_is_refused(name: str, out: Out, host: Host, told: list[Entry]) -> None:
    answer = await out.connect(name)
    assert (status(answer), rule(answer)) == (403, "private_host")
    plain = await out.ask(f"GET http://{name}:{{port}}/ HTTP/1.1\r\n\r\n")
    assert status(plain) == 403
    assert host.heard == []
    assert {(each.outcome, each.rule) for each in told} == {("denied", "private_host")}


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.0.0.78",
        "10.1.2.3",
        "169.254.169.254",
        "::1",
        "::ffff:127.0.0.77",
        "fe80::1%lo",
        "100.64.0.9",
    ],
)
async def test_a_name_that_leads_to_a_private_address_is_refused(
    address: str, out: Out, names: Names, host: Host
) -> None:
    names.known["public.example"] = [[address]]
    assert rule(await out.connect("public.example")) == "private_address"
    names.known["public.example"] = [[HOME, address]]
    assert rule(await out.connect("public.example")) == "private_address"
    assert host.heard == []


async def test_the_second_answer_of_a_name_server_is_never_asked_for(
    out: Out, names: Names, host: Host
) -> None:
    names.known["public.example"] = [[HOME], ["127.0.0.1"]]
    assert (await out.connect("public.example")).endswith(b"hello")
    assert names.asked == ["public.example"]
    assert rule(await out.connect("public.example")) == "private_address"
    assert len(host.heard) == 1


async def test_our_own_public_address_is_none_of_the_web(
    names: Names, host: Host, told: list[Entry], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agents_app.egress.web.reads_as_public", lambda host: True)
    names.known["public.example"] = [["127.0.0.1"]]
    async with way_out(names, host, told, also=frozenset()) as out:
        assert rule(await out.connect("public.example")) == "private_address"


async def test_other_ports_are_closed(out: Out, told: list[Entry]) -> None:
    for port in (22, 25, 3333, 65_535):
        assert rule(await out.connect("public.example", port)) == "port"


async def test_a_name_that_nobody_knows(out: Out) -> None:
    assert rule(await out.connect("unknown.example")) == "unknown_host"


async def test_a_host_that_does_not_answer(out: Out, names: Names) -> None:
    async with way_out(names, Host(), []) as other:
        closed = other.port
    out.egress._ports = frozenset({closed})
    assert rule(await out.connect("public.example", closed)) == "no_answer"


@pytest.mark.parametrize(
    "text",
    [
        "GET / HTTP/1.1\r\n\r\n",
        "GET https://public.example:{port}/ HTTP/1.1\r\n\r\n",
        "GET ftp://public.example:{port}/ HTTP/1.1\r\n\r\n",
        "GET http://ada:pw@public.example:{port}/ HTTP/1.1\r\n\r\n",
        "GET http://public.example\\@127.0.0.1:{port}/ HTTP/1.1\r\n\r\n",
        "CONNECT public.example HTTP/1.1\r\n\r\n",
        "CONNECT public.example:{port}\r\n\r\n",
        "CONNECT pub\xfcblic.example:{port} HTTP/1.1\r\n\r\n",
        "CONNECT public.example%00.x:{port} HTTP/1.1\r\n\r\n",
        "GET http://public.example:{port}/ HTTP/1.1\r\n folded: x\r\n\r\n",
        "GET http://public.example:{port}/ HTTP/1.1\r\nno header\r\n\r\n",
        "GET http://public.example:{port}/ HTTP/1.1\r\nx: y\nhost: elsewhere\r\n\r\n",
        "GET http://public.example:{port}/ HTTP/1.1\r\nx: y\rhost: elsewhere\r\n\r\n",
        "GET http://public.example:{port}/ HTTP/1.1\r\nx: y\0\r\n\r\n",
        "nonsense\r\n\r\n",
    ],
)
async def test_what_is_not_understood_is_refused(text: str, out: Out, host: Host) -> None:
    answer = await out.ask(text)
    assert (status(answer), rule(answer)) == (400, "request")
    assert host.heard == []


async def test_a_head_without_end_is_refused(out: Out) -> None:
    assert status(await out.ask("GET http://public.example/ HTTP/1.1\r\n" + "x: y\r\n" * 20_000)) == 431


class TestWhoMayGoOut:
    async def test_between_turns_nobody(self, out: Out, host: Host) -> None:
        out.known.leave()
        assert rule(await out.connect("public.example")) == "no_turn"

    async def test_with_a_pass_that_was_revoked_nobody(self, out: Out) -> None:
        out.known.revoke()
        with pytest.raises(ConnectionRefusedError):
            await out.connect("public.example")

    async def test_what_the_session_may_not_reach_is_refused(self, out: Out, host: Host) -> None:
        out.known.enter(uuid4(), Hosts(NOT_NOW))
        answer = await out.connect("public.example")
        assert (status(answer), rule(answer)) == (403, "nobody_answered")
        assert host.heard == []

    async def test_why_not_stands_in_the_first_line_too(self, out: Out) -> None:
        """Of a refused tunnel a program shows no more."""
        out.known.enter(uuid4(), Hosts(deny("person", "No: not\r\nX-Evil: 1 \u2014 today.")))
        line, _, rest = (await out.connect("public.example")).partition(b"\r\n")
        assert line == b"HTTP/1.1 403 Refused by Parachute: No: not X-Evil: 1 ? today."
        assert b"\r\nX-Evil" not in rest.partition(b"\r\n\r\n")[0]

    async def test_a_name_is_not_looked_up_before_it_may_be_reached(self, out: Out, names: Names) -> None:
        """Whoever serves the name would hear of it: `what-it-knows.evil.example`."""
        out.known.enter(uuid4(), Hosts(NOT_NOW))
        await out.connect("public.example")
        assert names.asked == []

    async def test_nobody_is_asked_about_a_private_host(self, out: Out) -> None:
        hosts = Hosts()
        out.known.enter(uuid4(), hosts)
        assert rule(await out.connect("router.lan")) == "private_host"
        assert hosts.asked == []

    async def test_a_connection_waits_until_it_is_said(self, out: Out, host: Host) -> None:
        hosts = Hosts()
        hosts.may_say.clear()
        out.known.enter(uuid4(), hosts)
        waiting = asyncio.create_task(out.connect("public.example"))
        async with asyncio.timeout(PATIENCE):
            while not hosts.asked:
                await asyncio.sleep(0)
        assert host.heard == []
        hosts.may_say.set()
        assert (await waiting).endswith(b"hello")

    async def test_where_nobody_can_say_it_is_refused(self, out: Out, host: Host) -> None:
        class Broken(Hosts):
            async def __call__(self, host: str) -> Decision:
                raise ZeroDivisionError

        out.known.enter(uuid4(), Broken())
        assert rule(await out.connect("public.example")) == "gate_failed"
        assert host.heard == []

    async def test_that_it_reads_strangers_is_known_before_it_reads_them(self, out: Out) -> None:
        hosts = Hosts()
        out.known.enter(uuid4(), hosts)
        await out.connect("public.example")
        assert hosts.heard == 1
        hosts.loses = OSError("the database is away")
        assert b"hello" not in await out.connect("public.example")

    async def test_what_is_open_is_cut_when_the_turn_ends(self, out: Out, host: Host) -> None:
        host.holds.clear()
        async with asyncio.timeout(PATIENCE):
            reader, writer = await out.open()
            writer.write(f"CONNECT public.example:{out.port} HTTP/1.1\r\n\r\nGET".encode())
            await reader.readuntil(b"hello")
            out.known.leave()
            with suppress(ConnectionError):
                assert await reader.read() == b""
            writer.close()


class TestLimits:
    @pytest.mark.parametrize("limits", [Limits(idle=0.05), Limits(whole=0.05)])
    async def test_of_silence_and_of_the_whole(
        self, limits: Limits, names: Names, host: Host, told: list[Entry]
    ) -> None:
        """The host never ends its answer: that this comes back is because we do."""
        host.holds.clear()
        async with way_out(names, host, told, limits=limits) as out:
            await out.connect("public.example")
            assert len(host.heard) == 1

    async def test_of_size(self, names: Names, host: Host, told: list[Entry]) -> None:
        host.answer = b"x" * 200_000
        async with way_out(names, host, told, limits=Limits(size=100_000)) as out:
            assert len(await out.connect("public.example")) < 150_000

    async def test_of_connections_at_once(self, out: Out, host: Host) -> None:
        host.holds.clear()
        opened = []
        async with asyncio.timeout(PATIENCE):
            for _ in range(MOST_AT_ONCE):
                reader, writer = await out.open()
                writer.write(f"CONNECT public.example:{out.port} HTTP/1.1\r\n\r\nGET".encode())
                await reader.readuntil(b"hello")
                opened.append(writer)
            assert rule(await out.connect("public.example")) == "too_many"
            for writer in opened:
                writer.close()

    async def test_of_a_request_that_does_not_come(self, names: Names, host: Host, told: list[Entry]) -> None:
        async with way_out(names, host, told, limits=Limits(head=0.05)) as out:
            assert await out.ask("CONNECT public") == b""


class TestOfTheSameRefusals:
    """A refusal costs an agent nothing, and each is a line of the log and a row on the disk."""

    async def test_the_first_is_told_and_how_many_more_there_were(
        self, out: Out, told: list[Entry], caplog: pytest.LogCaptureFixture
    ) -> None:
        turn = out.known.turn_id
        for host in [*(5 * ["127.0.0.1"]), *(3 * ["localhost"])]:
            assert rule(await out.connect(host)) == "private_host"
        out.known.leave()
        *first, more = told
        assert [each.arguments["host"] for each in first] == ["127.0.0.1", "localhost"]
        assert (more.outcome, more.rule, more.turn_id) == ("denied", "refused_again", turn)
        assert more.arguments == {
            "more": 6,
            "again": {
                f"127.0.0.1:{out.port} (private_host)": 4,
                f"localhost:{out.port} (private_host)": 2,
            },
        }
        assert len([each for each in caplog.messages if each.startswith("Session")]) == 3

    async def test_they_are_told_soon_and_none_is_lost(
        self, names: Names, host: Host, told: list[Entry]
    ) -> None:
        count = 0
        async with way_out(names, host, told, limits=Limits(counts=0.05)) as out, asyncio.timeout(PATIENCE):
            while not any(each.rule == "refused_again" for each in told):
                await out.connect("127.0.0.1")
                count += 1
            out.known.leave()
        assert sum(each.arguments.get("more", 1) for each in told) == count

    async def test_another_rule_is_another_refusal(self, out: Out, told: list[Entry]) -> None:
        out.known.enter(uuid4(), Hosts(NOT_NOW))
        await out.connect("public.example")
        await out.connect("public.example", 22)
        assert [each.rule for each in told] == ["nobody_answered", "port"]

    async def test_more_hosts_than_can_be_told_wait_for_the_next_second(
        self, out: Out, told: list[Entry]
    ) -> None:
        for n in range(MOST_TOLD):
            await out.connect(f"10.0.0.{n}")
        waiting = asyncio.create_task(out.connect("10.0.1.1"))
        await out.connect("10.0.0.1")
        assert (len(told), waiting.done()) == (MOST_TOLD, False)
        out.known.refusals.end()
        assert rule(await waiting) == "private_host"
        assert told[-1].arguments["host"] == "10.0.1.1"

    async def test_what_waits_to_be_told_is_told_when_the_turn_ends(
        self, out: Out, told: list[Entry]
    ) -> None:
        turn = out.known.turn_id
        for n in range(MOST_TOLD):
            await out.connect(f"10.0.0.{n}")
        waiting = asyncio.create_task(out.connect("10.0.1.1"))
        await out.connect("10.0.0.1")
        out.known.leave()
        assert await waiting == b""
        assert (told[-1].arguments["host"], told[-1].turn_id) == ("10.0.1.1", turn)


class TestNamesThatNobodyAnswersFor:
    """A lookup cannot be stopped: its thread stands until the system's resolver gives up."""

    @pytest.fixture
    def slow(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowNames]:
        made = SlowNames()
        monkeypatch.setattr(sockets, "getaddrinfo", made)
        yield made
        made.may_end.set()

    @pytest.fixture
    async def out(self, names: Names, host: Host, told: list[Entry], slow: SlowNames) -> AsyncIterator[Out]:
        async with way_out(names, host, told, resolve=resolved) as made:
            yield made
            slow.may_end.set()

    async def test_they_hold_up_nothing_else_of_the_worker(self, out: Out, slow: SlowNames) -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(MOST_OF_ONE))
        waiting = [asyncio.create_task(out.connect(f"slow{n}.example")) for n in range(MOST_AT_ONCE)]
        await slow.hangs(MOST_OF_ONE)
        async with asyncio.timeout(PATIENCE / 2):
            await asyncio.to_thread(lambda: None)
        slow.may_end.set()
        assert {rule(each) for each in await asyncio.gather(*waiting)} == {"unknown_host"}

    async def test_they_do_not_keep_another_process_from_looking_names_up(
        self, out: Out, slow: SlowNames
    ) -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(MOST_OF_ONE + 1))
        waiting = [asyncio.create_task(out.connect(f"slow{n}.example")) for n in range(MOST_AT_ONCE)]
        await slow.hangs(MOST_OF_ONE)
        other = await let_out(out.egress, out.port)
        assert (await other.connect("public.example")).endswith(b"hello")
        assert slow.hang == MOST_OF_ONE
        slow.may_end.set()
        await asyncio.gather(*waiting)

    async def test_a_name_that_waits_its_turn_ends_as_a_slow_one(
        self, names: Names, host: Host, told: list[Entry], slow: SlowNames
    ) -> None:
        """And what was given up still counts: its thread stands, whoever asked for it."""
        async with way_out(names, host, told, resolve=resolved, limits=Limits(connect=0.05)) as out:
            for n in range(MOST_OF_ONE):
                assert rule(await out.connect(f"slow{n}.example")) == "no_answer"
            answer = await out.connect("public.example")
            assert (status(answer), rule(answer)) == (504, "no_answer")
            assert slow.hang == MOST_OF_ONE
            slow.may_end.set()

    async def test_of_all_processes_no_more_than_a_few_are_looked_up_at_once(
        self, names: Names, host: Host, told: list[Entry], slow: SlowNames, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("agents_app.egress.names.MOST_AT_ONCE", MOST_OF_ONE)
        async with way_out(names, host, told, resolve=resolved, limits=Limits(connect=0.05)) as out:
            for n in range(MOST_OF_ONE):
                assert rule(await out.connect(f"slow{n}.example")) == "no_answer"
            other = await let_out(out.egress, out.port)
            assert rule(await other.connect("public.example")) == "no_answer"
            slow.may_end.set()

    def test_they_do_not_keep_the_worker_from_ending(self) -> None:
        ends = """
import asyncio, socket, threading
from agents_app.egress.names import resolved
hangs = threading.Event()
socket.getaddrinfo = lambda *given, **more: hangs.set() or threading.Event().wait()
async def main():
    looking = asyncio.create_task(resolved("slow.example", 443))
    while not hangs.is_set():
        await asyncio.sleep(0.01)
asyncio.run(main())
"""
        subprocess.run([sys.executable, "-c", ends], check=True, timeout=2 * PATIENCE)
