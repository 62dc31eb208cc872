"""The public web, as the egress door reaches it: a name is looked up once, every address must be public, and
the connection goes to an address that was looked at."""

import asyncio
import socket as sockets
from asyncio import StreamReader, StreamWriter
from collections.abc import Sequence
from contextlib import suppress

from agents_app.egress.names import Lookups, Resolve
from agents_app.egress.requests import Destination, Refused
from permissions_app.rules import hosts
from permissions_app.rules.paths import NotUnderstood

PRIVATE = "This name leads to a private address. Agents reach the public web only."


class PublicWeb:
    """`also` are addresses that count as public."""

    def __init__(self, resolve: Resolve, also: frozenset[str], *, patience: float) -> None:
        self._look_up, self._also, self._patience = Lookups(resolve), also, patience

    async def connected(
        self, wanted: Destination, own: asyncio.Semaphore
    ) -> tuple[StreamReader, StreamWriter]:
        """`own` are the lookups that its process may have at once."""
        try:
            async with asyncio.timeout(self._patience):
                for address in await self.addresses(wanted, own):
                    with suppress(OSError):
                        return await asyncio.open_connection(address, wanted.port)
        except TimeoutError:
            raise Refused(504, "no_answer", "The host did not answer in time.") from None
        raise Refused(502, "no_answer", "The host could not be reached.")

    async def addresses(self, wanted: Destination, own: asyncio.Semaphore) -> Sequence[str]:
        """The addresses of a public host. One that is not public among them is enough to refuse it."""
        try:
            addresses = await self._look_up(wanted.host, wanted.port, own)
        except (OSError, UnicodeError):
            raise Refused(502, "unknown_host", "This name is not known.") from None
        if not addresses:
            raise Refused(502, "unknown_host", "This name is not known.")
        for address in addresses:
            if address not in self._also and (not reads_as_public(address) or _is_of_this_machine(address)):
                raise Refused(403, "private_address", PRIVATE)
        return addresses


def reads_as_public(host: str) -> bool:
    """By the rules that the gate has too; of an address they have the last word."""
    try:
        return hosts.is_public(f"http://[{host}]/" if ":" in host else f"http://{host}/")
    except NotUnderstood:
        return False


def _is_of_this_machine(address: str) -> bool:
    """A public address may be our own, and behind it is what listens here."""
    family = sockets.AF_INET6 if ":" in address else sockets.AF_INET
    with sockets.socket(family, sockets.SOCK_DGRAM) as probe:
        try:
            probe.connect((address, 9))  # sends nothing; who speaks to itself does so from that very address
        except OSError:
            return False  # there is no way to it at all
        return bool(probe.getsockname()[0] == address)
