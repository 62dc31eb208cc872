"""What only a real server shows: a reader whose connection is gone, a body in pieces, a frame too large."""

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import cast

import httpx
import pytest
from django.contrib.auth.models import User
from django.db import connection
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from sessions_app.models import Session
from tests.api.conftest import Key

pytestmark = pytest.mark.django_db(transaction=True)

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 30.0


@pytest.fixture
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "daphne.log"


@pytest.fixture
def daphne(port: int, log: Path, workspace: object) -> Iterator[str]:
    """Our application under daphne, as `up` starts it, over the rows of this test."""
    pages = [sys.executable, "-m", "parachute_site.entrance", "-v", "0", "--no-server-name", "-p", str(port)]
    variables = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "PARACHUTE_TESTS_DATABASE": str(connection.settings_dict["NAME"]),
    }
    with log.open("wb") as output:
        server = subprocess.Popen(
            [*pages, "tests.api.served:application"], cwd=ROOT, env=variables, stdout=output, stderr=output
        )
        try:
            yield f"127.0.0.1:{port}"
        finally:
            server.terminate()
            server.wait(PATIENCE)
    assert "Traceback" not in log.read_text()
    assert "Task was destroyed" not in log.read_text()


@pytest.fixture
async def client(daphne: str, ada: User, token: dict[str, str]) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=f"http://{daphne}", headers=token, timeout=PATIENCE) as client:
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    await client.get("/api/health")
                    break
                except httpx.TransportError:
                    await asyncio.sleep(0.05)
        yield client


@pytest.fixture
def token(ada: User, key: Key) -> dict[str, str]:
    return key(ada)


async def said(client: httpx.AsyncClient) -> str:
    answer = await client.post("/api/chat", json={"message": "x"}, headers={"prefer": "respond-async"})
    return str(answer.json()["sessionId"])


async def test_a_real_server_serves_all_of_it(
    client: httpx.AsyncClient, daphne: str, token: dict[str, str]
) -> None:
    session = await said(client)
    where = f"/api/chat/{session}/events"
    head = await client.head("/api/chat")
    assert (head.status_code, head.content) == (200, b"")
    assert (await client.head(where)).status_code == 200
    assert (await client.get("/static/chat/page.js")).headers["content-type"].startswith("text/javascript")
    async with client.stream("GET", where) as stream:
        assert await first_line(stream) == "id: 1"
        assert await readers(client) == 1
    async with connect(f"ws://{daphne}/ws/chat/{session}", additional_headers=token) as ws:
        assert json.loads(await ws.recv())["type"] == "session"
    await the_limits_hold(client, daphne, token)
    await whoever_leaves_leaves_nothing(client, daphne, token, session)


async def first_line(stream: httpx.Response) -> str:
    """Of the events, after the comment that comes before them."""
    async with aclosing(cast(AsyncGenerator[str], stream.aiter_lines())) as lines:
        assert [await anext(lines), await anext(lines)] == [": connected", ""]
        return await anext(lines)


async def readers(client: httpx.AsyncClient) -> int:
    return int((await client.get("/api/served/readers")).text)


async def the_limits_hold(client: httpx.AsyncClient, daphne: str, token: dict[str, str]) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(31):
            yield b" " * (1 << 20)

    answer = await client.post("/api/chat", content=pieces())
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")
    async with connect(f"ws://{daphne}/ws", additional_headers=token) as ws:
        with pytest.raises(ConnectionClosed) as closed:
            await ws.send("x" * (2 << 20))
            await ws.recv()
    assert closed.value.rcvd is None or closed.value.rcvd.code == 1009
    async with connect(f"ws://{daphne}/ws") as ws:
        with pytest.raises(ConnectionClosed) as refused:
            await ws.recv()
    assert refused.value.rcvd and refused.value.rcvd.code == 4401
    with pytest.raises(InvalidStatus):
        await connect(f"ws://{daphne}/ws", additional_headers={**token, "Host": "evil.example"})


async def test_what_comes_is_looked_at_before_it_is_taken(
    client: httpx.AsyncClient, daphne: str, token: dict[str, str]
) -> None:
    """Each of these says no more than what stands here, and is answered."""
    ((name, value),) = token.items()
    key, wrong = f"{name}: {value}", "X-API-Key: para_wrong"
    form = "Content-Type: multipart/form-data; boundary=x"
    large, chunks = "Content-Length: 29000000", "Transfer-Encoding: chunked"
    megabyte = b"100000\r\n" + b"x" * 2**20 + b"\r\n"
    said = {
        "a hostile form": ([form, large], b"", "HTTP/1.1 413"),
        "a hostile form with a key": ([form, key, large], b"", "HTTP/1.1 413"),
        "without a key": ([large], b"", "HTTP/1.1 413"),
        "in chunks, without a key": ([chunks], megabyte * 2, "HTTP/1.1 413"),
        "with a wrong key": ([wrong, large], b"", "HTTP/1.1 401"),
        "in chunks, with a wrong key": ([wrong, chunks], megabyte * 2, "HTTP/1.1 401"),
        "too large": ([key, "Content-Length: 31457281"], b"", "HTTP/1.1 413"),
        "too large, in chunks": ([key, chunks], megabyte * 31, "HTTP/1.1 413"),
        "a foreign host": ([key, large, "Host: evil.example"], b"", "HTTP/1.1 400"),
        "headers that do not end": (None, b"POST /api/chat HTTP/1.1\r\n", "HTTP/1.1 408"),
        "a body that does not come": ([key, "Content-Length: 9"], b"x", "HTTP/1.1 408"),
    }
    answers = await asyncio.gather(*(answer(daphne, headers, body) for headers, body, _ in said.values()))
    assert dict(zip(said, answers, strict=True)) == {each: status for each, (_, _, status) in said.items()}
    assert (await client.get("/api/health")).status_code == 200


async def answer(daphne: str, headers: list[str] | None, body: bytes) -> str:
    """How it begins, to a client that sends no more and waits until the server closes."""
    host, port = daphne.split(":")
    reader, writer = await asyncio.open_connection(host, port)
    if headers is not None:
        ours = [] if any("Host" in each for each in headers) else [f"Host: {daphne}"]
        writer.write("\r\n".join(["POST /api/chat HTTP/1.1", *ours, *headers, "", ""]).encode())
    writer.write(body)
    async with asyncio.timeout(PATIENCE):
        answer = await reader.read()
    writer.close()
    return answer.decode()[: len("HTTP/1.1 200")]


async def test_what_is_taken_comes_whole(client: httpx.AsyncClient, daphne: str) -> None:
    large = {"message": "x", "attachments": [{"fileName": "x.txt", "base64Data": "eHh4" * 500_000}]}
    accepted = {"prefer": "respond-async", "expect": "100-continue"}
    assert (await client.post("/api/chat", json=large, headers=accepted)).status_code == 202
    page = await client.get("/signin")
    token = page.cookies["csrftoken"]
    form = {"csrfmiddlewaretoken": token, "username": "ada", "password": "wrong", "next": "x" * 50_000}
    for sent in ({"data": form}, {"files": {name: (None, value) for name, value in form.items()}}):
        refused = await client.post("/signin", **sent)
        assert "This name and password do not fit" in refused.text
    host, port = daphne.split(":")
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(f"GET /api/health HTTP/1.1\r\nHost: {daphne}\r\n\r\n".encode() * 3)
    writer.write(f"HEAD /api/health HTTP/1.1\r\nHost: {daphne}\r\nConnection: close\r\n\r\n".encode())
    together = (await reader.read()).decode()
    writer.close()
    assert (together.count("HTTP/1.1 200"), together.count('"status"')) == (4, 3)


async def whoever_leaves_leaves_nothing(
    client: httpx.AsyncClient, daphne: str, token: dict[str, str], session: str
) -> None:
    """The three kinds of readers, each of which is gone without a word."""
    where = f"/api/chat/{session}/events"
    for _ in range(3):
        async with client.stream("GET", where) as stream:
            await first_line(stream)
        async with client.stream("POST", "/api/chat", json={"message": "x"}) as stream:
            await first_line(stream)
        with pytest.raises(httpx.ReadTimeout):
            await client.post(
                "/api/chat", json={"message": "x"}, headers={"accept": "application/json"}, timeout=0.3
            )
        async with connect(f"ws://{daphne}/ws/chat/{session}", additional_headers=token) as ws:
            await ws.recv()
            ws.transport.abort()
    async with asyncio.timeout(PATIENCE):
        while await readers(client):
            await asyncio.sleep(0.05)
    assert await Session.objects.acount() == 7
