"""Connection URLs ``scheme://user:password@host:port,host:port/path?key=value``, their schemes and their texts."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self
from urllib.parse import unquote, unquote_plus, urlencode

from jmsjca.arguments import Constraint
from jmsjca.config.options import jmsjca_options, provider_options
from jmsjca.errors import InvalidURLError, JMSError

__all__ = ["FAMILIES", "Address", "ConnectionURL", "add_options", "check_text", "check_unicode", "successor"]

_PORT_DIGITS = 5
_PROTOCOL = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*\Z")
_MEMBER = re.compile(r"[^\s:]\S*\Z")
_SECOND_USER = re.compile(r"@[^@]*,")


_TEXT = Constraint[str](
    "a str, such as 'embedded:///var/lib/app/broker.db' or 'amqp://localhost:5672'",
    str,
    error=InvalidURLError,
    secret=True,  # it may hold a password
)


class Address(NamedTuple):
    """One host of a connection URL.

    Attributes:
        host: The host name or address; an IPv6 address has brackets.
        port: The port; None if absent.
    """

    host: str
    port: int | None

    def __str__(self) -> str:
        return self.host if self.port is None else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class ConnectionURL:
    """A parsed connection URL. Its `str` and `repr` never show a password.

    Attributes:
        protocol: The scheme before ``://``; it selects the provider.
        host: The host, or the first host of a fail-over list; empty if absent.
        port: The port of that host; None if absent.
        path: The path from the first ``/`` on, not decoded; empty if absent.
        query: The options after ``?``, decoded. If a key is repeated, the last value is used.
        user_name: The user name before ``@``, decoded; None if absent.
        password: The password before ``@``, decoded; None if absent.
        others: The other hosts of a fail-over list. User name, path and options are the same for all hosts.
    """

    protocol: str
    host: str = ""
    port: int | None = None
    path: str = ""
    query: dict[str, str] = field(default_factory=dict[str, str])
    user_name: str | None = None
    password: str | None = field(default=None, repr=False)
    others: tuple[Address, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a connection URL.

        Args:
            text: For instance ``embedded:///var/lib/app/broker.db`` or ``amqp://localhost:5672``; a fail-over list is
                ``amqp://one:5672,two:5672``.

        Raises:
            InvalidURLError: The value is no text; or the text has no ``://``, a list with an empty host, a second
                user name or a second scheme, an invalid port, or an option without ``=``; or it is not valid Unicode.
        """
        _TEXT("The connection URL", text)
        check_unicode(text, "The connection URL", InvalidURLError)
        protocol, mark, rest = text.partition("://")
        if not mark or not _PROTOCOL.match(protocol):
            raise InvalidURLError(
                f"{_redacted(text)} is no connection URL: it must begin with a scheme, as embedded:// does."
            )
        _check_one_scheme(protocol, rest, text)
        end = min((i for i in (rest.find("/"), rest.find("?")) if i >= 0), default=len(rest))
        path, _, query = rest[end:].partition("?")
        userinfo, _, hosts = rest[:end].rpartition("@")
        (host, port), *others = _parse_addresses(hosts, text, userinfo)
        user, colon, password = userinfo.partition(":")
        return cls(
            protocol,
            host,
            port,
            path,
            _parse_query(query, text),
            unquote(user) if userinfo else None,
            unquote(password) if colon else None,
            tuple(others),
        )

    @property
    def addresses(self) -> tuple[Address, ...]:
        """All hosts in the order of the URL; a single one if the URL is not a fail-over list."""
        return (Address(self.host, self.port), *self.others)

    @property
    def broker(self) -> object:
        """Protocol, hosts and path: they are equal in the URLs of one broker, whatever user and options are."""
        return self.protocol, frozenset(self.addresses), self.path

    def rotations(self, position: int) -> Iterator[Self]:
        """Yield this URL once per host, with that host first: the URLs that one attempt to connect tries in turn.

        Args:
            position: The index of the host to begin with, modulo the number of hosts.
        """
        for start in range(position, position + len(self.addresses)):
            turn = start % len(self.addresses)
            (host, port), *others = self.addresses[turn:] + self.addresses[:turn]
            yield replace(self, host=host, port=port, others=tuple(others))

    def for_provider(self) -> Self:
        """Return this URL without the options of JMSJCA, which providers do not know.

        Raises:
            InvalidOptionError: An option begins with ``JMSJCA.`` and is unknown.
        """
        own = jmsjca_options(self.query)
        return replace(self, query=provider_options(self.query)) if own else self

    def __str__(self) -> str:
        query = "?…" if self.query else ""
        if self._may_show_a_password():
            _, at, rest = self.path.rpartition("@")
            return f"{self.protocol}://…{at}{rest if at else ''}{query}"
        user = f"{self.user_name}@" if self.user_name else ""
        return f"{self.protocol}://{user}{','.join(map(str, self.addresses))}{self.path}{query}"

    def __repr__(self) -> str:
        return f"<ConnectionURL {self}>"

    def _may_show_a_password(self) -> bool:
        """Return whether an ``@`` behind the hosts may end a password that has a ``/`` or ``?`` not percent-encoded.

        ``amqp://joe:12/x@host`` parses as the host joe, the port 12 and the path ``/x@host``. A path without a host, as
        of a file, has no user name in front.
        """
        authority = any(host or port is not None for host, port in self.addresses)
        return authority and ("@" in self.path or any("@" in key for key in self.query))


def _check_one_scheme(protocol: str, rest: str, text: str) -> None:
    if f",{protocol}://" in rest:  # otherwise all but the first URL would be a value of its options, or a path
        raise InvalidURLError(
            f"{_redacted(text)} is a list of URLs: a fail-over list has one scheme in front, and one path and options"
            f" behind all hosts, as in {protocol}://one,two. Within an option write %2C for the comma."
        )


def _parse_addresses(hosts: str, text: str, userinfo: str) -> list[Address]:
    if _SECOND_USER.search(userinfo):  # it may also be a password with both characters
        raise InvalidURLError(
            f"{_redacted(text)} has a comma behind an @: a list of hosts has one user name and password, in front of"
            " all; in a password @ is written %40."
        )
    members = hosts.split(",")
    if len(members) > 1 and not all(_MEMBER.match(member) for member in members):
        raise InvalidURLError(f"A host is missing, or has blanks around it, in the list of {_redacted(text)}.")
    return [_parse_address(member, text) for member in members]


def _parse_address(address: str, text: str) -> Address:
    host, bracket, rest = address.partition("]") if address.startswith("[") else ("", "", address)  # IPv6
    if address.startswith("[") and not bracket:
        raise InvalidURLError(f"The host of {_redacted(text)} has no closing bracket.")
    name, _, port = rest.partition(":")
    if (bracket and name) or not _is_port(port):
        raise InvalidURLError(f"The port of {_redacted(text)} must be a number below 65536, behind a colon.")
    return Address(host + bracket + name, int(port) if port else None)


def _is_port(text: str) -> bool:
    return not text or (text.isascii() and text.isdigit() and len(text) <= _PORT_DIGITS and int(text) < 1 << 16)


def _parse_query(query: str, text: str) -> dict[str, str]:
    options: dict[str, str] = {}
    for position, pair in enumerate(query.replace("&amp;", "&").split("&"), 1):
        key, equals, value = pair.partition("=")
        if pair and not (key and equals):
            raise InvalidURLError(f"Option {position} of {_redacted(text)} must have the form key=value.")
        if pair:
            options[unquote_plus(key)] = unquote_plus(value)
    return options


def _redacted(text: str) -> str:
    """Return the URL for an error message, without anything that may be a password or a secret option value.

    A password that was not percent-encoded may contain any character, so everything before the last ``@`` may be part
    of it.
    """
    front, at, rest = text.rpartition("@")
    if at:
        scheme, mark, _ = front.partition("://")
        known = scheme + mark if mark else ""
        rest = f"{known}…" if "?" in front else f"{known}…@{rest}"
    return repr(rest.partition("?")[0][:200])


def add_options(url: str, options: Mapping[str, str]) -> str:
    """Return a URL with those options added that it does not have yet.

    Args:
        url: A connection URL.
        options: Options of the provider.

    Raises:
        InvalidURLError: The URL does not parse.
    """
    present = ConnectionURL.parse(url).query
    added = urlencode({name: value for name, value in options.items() if name not in present})
    if not added:
        return url
    return f"{url}{'&' if '?' in url else '?'}{added}"


def check_unicode(text: str | None, what: str, kind: type[JMSError]) -> None:
    """Raise an error for text that no protocol can encode.

    Args:
        text: The text. It never appears in the error message, because it may be a password.
        what: The noun that begins the error message.
        kind: The class of the error.

    Raises:
        JMSError: The text holds half of a surrogate pair.
    """
    try:
        (text or "").encode()
    except UnicodeEncodeError:  # without its cause, which contains the text
        raise kind(f"{what} holds half of a surrogate pair, which is no Unicode text.") from None


def check_text(text: str | None, what: str, kind: type[JMSError]) -> None:
    """Raise an error for text that would be truncated in transit: STOMP frames and C strings end with NUL.

    Args:
        text: The text. It never appears in the error message, because it may be a password.
        what: The noun that begins the error message.
        kind: The class of the error.

    Raises:
        JMSError: The text holds NUL, or half of a surrogate pair.
    """
    check_unicode(text, what, kind)
    if "\0" in (text or ""):
        raise kind(f"{what} holds NUL (U+0000), and would end there on its way to the broker: leave it out.")


_OPEN_MQ = "Sun MQ lives on as Open MQ, which is reached over STOMP: stomp://host:7672"
_WEBSPHERE = "IBM MQ is reached over AMQP 1.0 by its AMQP channel: amqp://host:5672"
_JBOSS = "JBoss MQ became HornetQ and ActiveMQ Artemis, which is reached over AMQP 1.0: amqp://host:5672"
_STCMS = (
    "SeeBeyond's and Sun's message server has no successor; move to a broker with AMQP 1.0 or STOMP: amqp://host:5672"
)
_WEBLOGIC = "WebLogic JMS has neither AMQP 1.0 nor STOMP; bridge it to a broker that has: amqp://host:5672"
_WAVE = "JMS Grid (SpiritWave) has no successor; move to a broker with AMQP 1.0 or STOMP: amqp://host:5672"
_JNDI = "there is no JNDI provider: bind factories in the naming context, and write lookup://name"

FAMILIES: Mapping[str, str] = {
    **dict.fromkeys(("stcms", "stcmss", "stcms453", "stcms453s"), _STCMS),
    **dict.fromkeys(("mq", "mqtcp", "mqssl", "httpjms", "httpsjms"), _OPEN_MQ),
    **dict.fromkeys(("wmq", "wmqs", "wmq5", "wmqs5", "wmq5s"), _WEBSPHERE),
    **dict.fromkeys(("t3", "t3s"), _WEBLOGIC),
    "jboss": _JBOSS,
    **dict.fromkeys(("stream", "tcp", "ssl", "http"), _WAVE),
    "jndi": _JNDI,
}
"""For each scheme of JMSJCA's adapters, the protocol and URL by which its broker or the successor is reached today."""


def successor(scheme: str) -> str | None:
    """Return how the broker of a scheme of JMSJCA is reached today; None for other schemes."""
    return FAMILIES.get(scheme.lower())
