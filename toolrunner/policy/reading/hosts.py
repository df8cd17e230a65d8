"""Patterns over hosts, and a text as the host it names: one form for every spelling, or none. Pure; no state.

Nothing is looked up: to which address a name leads is known when the connection is made, and to the proxy that makes it.
"""

import ipaddress
import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

from toolrunner.errors import PolicyError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

PORTS = {"http": 80, "ws": 80, "https": 443, "wss": 443, "ftp": 21, "ssh": 22, "git": 9418}
WEB_PORTS = (80, 443)
"""What a rule that allows a host without naming ports allows."""

ANY_HOST = "*"
IP_KEY = "#ip"
"""Stands for every address where rules are looked up by host."""

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
_NAME = re.compile(r"(?=.{1,253}\Z)[a-z0-9_](?:[a-z0-9_-]{0,62})(?:\.[a-z0-9_](?:[a-z0-9_-]{0,62}))*")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_UNSETTLED = frozenset("ßς\u200c\u200d")
"""IDNA 2003 and 2008 make different names of these: which one a client asks for cannot be known."""

_LOCAL = (ipaddress.ip_address("127.0.0.1"), ipaddress.ip_address("::1"))


@final
@dataclass(frozen=True, slots=True)
class Host:
    """A host in its one form: `name` in small letters and punycode ("" for an address), what it certainly is as an address."""

    name: str
    addresses: tuple[Address, ...] = ()
    port: int | None = None

    def lookups(self) -> Iterator[str]:
        """Under which it is looked up: itself, the domains above it, any address, anything."""
        yield ANY_HOST
        if self.addresses:
            yield IP_KEY
        name = self.name
        while name:
            yield name
            name = name.partition(".")[2]


def names_a_url(text: str) -> bool:
    """Whether some client would take it for a URL, however odd it is written."""
    return "://" in text or text.lstrip()[:5].lower() in ("http:", "https")


def read(text: str) -> Host | None:
    """The host in a URL, or in `host`, `host:port`. None: clients may disagree about it, or it is none."""
    found = _URL.fullmatch(text)
    if found is None and names_a_url(text):
        return None
    scheme, rest = (found[1].lower(), found[2]) if found is not None else ("", text.removeprefix("//"))
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if any(one <= " " or one in "\\\x7f%" for one in authority) or authority.count("@") > 1:
        return None
    return _read_authority(authority.rpartition("@")[2], PORTS.get(scheme))


def _read_authority(text: str, usual: int | None) -> Host | None:
    split = _split_port(text)
    if split is None:
        return None
    host, digits = split
    if digits and not (digits.isascii() and digits.isdigit() and int(digits[:9]) <= 0xFFFF):  # noqa: PLR2004 - 16 bits (RFC 9293)
        return None
    return _named(host, int(digits) if digits else usual)


def _split_port(text: str) -> tuple[str, str] | None:
    """Host and port as text; brackets stay around an IPv6 address."""
    if text.startswith("["):
        host, bracket, rest = text.partition("]")
        return (host + bracket, rest[1:]) if bracket and rest[:1] in ("", ":") else None
    if text.count(":") > 1:
        return f"[{text}]", ""  # an IPv6 address without brackets, as an argument may be
    host, _, digits = text.partition(":")
    return host, digits


def _named(text: str, port: int | None) -> Host | None:
    if text.startswith("["):
        try:
            return Host("", _reached(ipaddress.IPv6Address(text[1:-1])), port)
        except ValueError:
            return None
    name = _ascii_name(text)
    if name is None:
        return None
    if _NUMBER.fullmatch(name.rpartition(".")[2]):  # an address in one of the many forms of inet_aton(3)
        try:
            return Host("", _reached(ipaddress.IPv4Address(socket.inet_aton(name))), port)
        except OSError:
            return None
    # RFC 6761: a resolver answers these with loopback, whatever the name servers say.
    return Host(name, _LOCAL if name == "localhost" or name.endswith(".localhost") else (), port)


def _ascii_name(text: str) -> str | None:
    if not text.isascii():
        if _UNSETTLED & set(text):
            return None
        try:
            text = text.encode("idna").decode("ascii")
        except UnicodeError:
            return None
    name = text.lower().removesuffix(".")
    return name if _NAME.fullmatch(name) else None


def _reached(address: Address) -> tuple[Address, ...]:
    """The address and where it leads besides: an IPv4 address in IPv6's clothes, and "this host" to loopback."""
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return (address, *_LOCAL) if address.is_unspecified else (address,)


@final
@dataclass(frozen=True, slots=True)
class HostPattern:
    """`name`, `*.name` (below it, not itself), an address, a network, or `*`; then `:port` or `:*`. IPv6 in brackets.

    Without a port a rule that allows means 80 and 443, one that forbids means all.
    """

    name: str
    below: bool = False
    network: Network | None = None
    port: int | None = None
    any_port: bool = False

    def matches(self, host: Host, *, strict: bool) -> bool:
        """`strict` is for rules that ask or forbid: one of its addresses is enough, all ports are meant."""
        if not self._port_matches(host.port, strict=strict):
            return False
        if self.name == ANY_HOST:
            return True
        if self.network is not None:
            inside = [address in self.network for address in host.addresses]
            return any(inside) if strict else bool(inside) and all(inside)
        return host.name.endswith("." + self.name) if self.below else host.name == self.name

    def _port_matches(self, port: int | None, *, strict: bool) -> bool:
        if self.any_port:
            return True
        if self.port is not None:
            return port == self.port or (strict and port is None)
        return strict or port is None or port in WEB_PORTS

    @property
    def key(self) -> str:
        """Only a host with this among its keys can match."""
        return IP_KEY if self.network is not None else self.name


def pattern(text: object) -> HostPattern:
    """The pattern of this text. Raises PolicyError."""
    if not isinstance(text, str) or not text:
        raise PolicyError(f"{text!r} is no host; expected a name, *.name, an address or a network")
    network = _network(text.strip("[]") if text.endswith("]") else text)
    if network is not None:
        return HostPattern("", network=network)
    split = _split_port(text)
    if split is None:
        raise PolicyError(f"{text!r} is no host with a port")
    host, digits = split
    return _pattern(text, host, digits)


def _pattern(text: str, host: str, digits: str) -> HostPattern:
    any_port, port = digits == "*", None
    if digits and not any_port:
        if not (digits.isascii() and digits.isdigit() and 0 < int(digits[:9]) <= 0xFFFF):  # noqa: PLR2004 - 16 bits (RFC 9293)
            raise PolicyError(f"{text!r}: {digits!r} is no port; expected a number or *")
        port = int(digits)
    if host == ANY_HOST:
        return HostPattern(ANY_HOST, port=port, any_port=any_port)
    below = host.startswith("*.")
    found = _named(host.removeprefix("*."), None)
    if found is None or (below and not found.name) or "*" in host.removeprefix("*."):
        raise PolicyError(
            f"{text!r} is no host; expected a name (one with ß, ς or joiners in its xn-- form), *.name, an address or a network"
        )
    network = None if found.name else ipaddress.ip_network(found.addresses[0])
    return HostPattern(found.name, below, network, port, any_port)


def _network(text: str) -> Network | None:
    try:
        return ipaddress.ip_network(text)
    except ValueError:
        return None
