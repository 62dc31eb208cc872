"""A process hands its listening socket over by a unix socket of its own, once."""

import os
import socket as sockets
import tempfile
from collections.abc import AsyncIterator
from contextlib import ExitStack, suppress
from pathlib import Path
from uuid import UUID

import pytest

from agents_app.egress.door import Egress, EgressPass
from tests.agents_app.handing_over import SESSION, hand_over, listening


@pytest.fixture
async def egress() -> AsyncIterator[Egress]:
    with tempfile.TemporaryDirectory() as folder:
        made = Egress(Path(folder) / "out")
        yield made
        made.close()


@pytest.fixture
async def known(egress: Egress) -> EgressPass:
    """Of a process that starts."""
    return egress.issue(SESSION)


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


class TestTheSocketOfAWall:
    async def test_nobody_else_may_connect_to_it(self, known: EgressPass) -> None:
        assert known.handover.path.stat().st_mode & 0o777 == 0o600

    async def test_once_it_is_handed_over_the_door_is_gone(self, known: EgressPass) -> None:
        with sockets.socket(sockets.AF_UNIX) as waiting, listening() as listener:
            path = str(known.handover.path)
            assert await hand_over(known, listener.fileno()) == b"ok\n"
            assert known.is_open.is_set()
            assert not known.handover.path.exists()
            with pytest.raises(FileNotFoundError):
                waiting.connect(path)

    async def test_who_still_waits_at_the_door_is_cut(self, known: EgressPass) -> None:
        """A wall shows the file for as long as it stands: what counts is that nobody listens."""
        place = known.handover.path.with_name("shown")
        place.hardlink_to(known.handover.path)
        with listening() as listener, sockets.socket(sockets.AF_UNIX) as late:
            assert await hand_over(known, listener.fileno()) == b"ok\n"
            with pytest.raises(ConnectionRefusedError):
                late.connect(str(place))

    async def test_a_revoked_pass_has_no_door(self, known: EgressPass) -> None:
        before = descriptors()
        known.revoke()
        assert not known.handover.path.exists()
        assert descriptors() < before

    @pytest.mark.parametrize("token", ["", "x", "x" * 43])
    async def test_it_is_not_taken_without_the_token(self, token: str, known: EgressPass) -> None:
        with listening() as listener:
            assert await hand_over(known, listener.fileno(), token=token) == b""
        assert not known.is_open.is_set()

    async def test_it_is_not_taken_with_the_token_of_another(self, egress: Egress, known: EgressPass) -> None:
        other = egress.issue(UUID(int=6))
        with listening() as listener:
            assert await hand_over(known, listener.fileno(), token=other.token) == b""
        assert not known.is_open.is_set()
        assert not other.is_open.is_set()

    async def test_what_does_not_listen_is_not_taken(self, known: EgressPass) -> None:
        with sockets.socket() as idle:
            assert await hand_over(known, idle.fileno()) == b""
        assert await hand_over(known) == b""
        with listening() as listener:  # the process may still hand the right one over
            assert await hand_over(known, listener.fileno()) == b"ok\n"

    @pytest.mark.parametrize("token", [None, "x" * 43])
    async def test_what_is_sent_in_vain_is_closed_and_told_once(
        self, token: str | None, known: EgressPass, caplog: pytest.LogCaptureFixture
    ) -> None:
        with Path("/dev/null").open() as nothing, sockets.socket() as idle:
            await hand_over(known, nothing.fileno(), token=token)
            before = descriptors()
            for _ in range(100):
                assert await hand_over(known, nothing.fileno(), token=token) == b""
                assert await hand_over(known, idle.fileno(), token=token) == b""
                assert await hand_over(known, *[nothing.fileno()] * 9, token=token) == b""
            assert descriptors() == before
        assert len(caplog.records) == 1

    async def test_of_many_one_is_taken_and_no_other_stays(self, known: EgressPass) -> None:
        with listening() as first, listening() as second:
            before = descriptors()
            assert await hand_over(known, first.fileno(), second.fileno()) == b"ok\n"
            assert descriptors() == before  # the listener has come, the door has gone

    async def test_who_says_nothing_keeps_nobody_else_from_it(
        self, egress: Egress, known: EgressPass
    ) -> None:
        other = egress.issue(UUID(int=6))
        with ExitStack() as idle, listening() as listener:
            before = descriptors()
            for _ in range(50):
                each = idle.enter_context(sockets.socket(sockets.AF_UNIX))
                each.setblocking(False)
                with suppress(BlockingIOError):  # its door lets no more wait
                    each.connect(str(known.handover.path))
            assert await hand_over(other, listener.fileno()) == b"ok\n"
            assert descriptors() <= before + 50 + 1  # one at a time is heard


async def test_what_a_killed_worker_left_is_removed_and_what_is_anothers_stays() -> None:
    with tempfile.TemporaryDirectory() as folder:
        names = {"out-0123abcd": False, "out-b-0123abcd": True, "out-b": True, "door.sock": True}
        for name in names:
            with sockets.socket(sockets.AF_UNIX) as left:
                left.bind(f"{folder}/{name}")
        Egress(Path(folder) / "out")
        assert {name: Path(folder, name).exists() for name in names} == names
