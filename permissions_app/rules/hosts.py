"""Is an address of the public web? Read as a browser reads it, which is how the CLI does.

A public name may still lead to a private address: the egress proxy, which resolves it, has the last word.
"""

import re
import socket
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

from permissions_app.rules.paths import NotUnderstood, fold

MAX_URL = 8192

# No user, no backslash, no blank, no escape in the host: browsers and parsers disagree about each of them.
_URL = re.compile(
    r"https?://(?P<host>\[[0-9a-f:.]+\]|[^\s/?#@:\\%\[\]\x00-\x20]+)(:\d{0,5})?([/?#][^\\\s\x00-\x1f]*)?",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d+|0x[0-9a-f]*")
_PRIVATE_SUFFIXES = frozenset(
    {
        "local",
        "localhost",
        "localdomain",
        "internal",
        "intranet",
        "private",
        "lan",
        "home",
        "corp",
        "arpa",
        "onion",
    }
)
_METADATA = (IPv4Network("192.0.0.0/24"), IPv4Network("168.63.129.16/32"))  # of Oracle and Azure
_GLOBAL_UNICAST = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")


def host_of(url: str) -> str:
    """Raises NotUnderstood where the address is none, or could be read in two ways."""
    match = _URL.fullmatch(url) if len(url) <= MAX_URL else None
    if match is None:
        raise NotUnderstood("it is no plain http or https address")
    return fold(match["host"]).replace("\u3002", ".").removesuffix(".")


def is_public(url: str) -> bool:
    """Raises NotUnderstood as `host_of` does."""
    host = host_of(url)
    if host.startswith("["):
        return _is_public_v6(_ipv6(host.strip("[]")))
    if not re.fullmatch(r"[\w.-]+", host):
        raise NotUnderstood("its host is no name")
    labels = host.split(".")
    if _NUMBER.fullmatch(labels[-1]):
        return _is_public_v4(_ipv4(host))
    return len(labels) > 1 and all(labels) and labels[-1] not in _PRIVATE_SUFFIXES


def _ipv6(text: str) -> IPv6Address:
    try:
        return IPv6Address(text)
    except ValueError:
        raise NotUnderstood("its host is no address") from None


def _ipv4(text: str) -> IPv4Address:
    try:
        return IPv4Address(socket.inet_aton(text))  # `127.1`, `0x7f.1`, `017700000001` and `2130706433` too
    except (OSError, ValueError):
        raise NotUnderstood("its host is no address") from None


def _is_public_v4(address: IPv4Address) -> bool:
    reserved = any(address in network for network in _METADATA)
    return address.is_global and not address.is_multicast and not reserved


def _is_public_v6(address: IPv6Address) -> bool:
    inner = address.ipv4_mapped or address.sixtofour
    if address in _NAT64:
        inner = IPv4Address(int(address) & 0xFFFF_FFFF)
    if inner is not None:
        return _is_public_v4(inner)
    return address.is_global and address in _GLOBAL_UNICAST
