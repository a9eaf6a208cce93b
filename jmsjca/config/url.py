"""Connection URLs: ``scheme://user:password@host:port/path?key=value``."""

import re
from dataclasses import dataclass, field, replace
from typing import Self
from urllib.parse import unquote, unquote_plus

from jmsjca.config.option_names import own_options, provider_options
from jmsjca.errors import InvalidURLError

__all__ = ["ConnectionURL"]

_PORT_DIGITS = 5
_PROTOCOL = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*\Z")


@dataclass(frozen=True, slots=True)
class ConnectionURL:
    """A parsed connection URL. Its `str` and `repr` never show a password.

    Attributes:
        protocol: What stands before ``://``; selects the provider.
        host: The host; empty if there is none.
        port: The port; None if absent.
        path: From the first ``/`` on, decoded nowhere; empty if absent.
        query: The options behind ``?``, decoded; of a key given twice the last value counts.
        user_name: The user name before ``@``, decoded; None if absent.
        password: The password before ``@``, decoded; None if absent.
    """

    protocol: str
    host: str = ""
    port: int | None = None
    path: str = ""
    query: dict[str, str] = field(default_factory=dict[str, str])
    user_name: str | None = None
    password: str | None = field(default=None, repr=False)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a connection URL.

        Args:
            text: For instance ``embedded:///var/lib/app/broker.db`` or ``amqp://localhost:5672``.

        Raises:
            InvalidURLError: It has no ``://``, a port that is no number, or an option without ``=``.
        """
        protocol, mark, rest = text.partition("://")
        if not mark or not _PROTOCOL.match(protocol):
            raise InvalidURLError(
                f"{_shown(text)} is no connection URL: it must begin with a scheme, as embedded:// does."
            )
        end = min((i for i in (rest.find("/"), rest.find("?")) if i >= 0), default=len(rest))
        path, _, query = rest[end:].partition("?")
        userinfo, _, address = rest[:end].rpartition("@")
        host, port = _host_and_port(address, text)
        user, colon, password = userinfo.partition(":")
        return cls(
            protocol,
            host,
            port,
            path,
            _query(query, text),
            unquote(user) if userinfo else None,
            unquote(password) if colon else None,
        )

    def for_provider(self) -> Self:
        """Give this URL without JMSJCA's own options, which no provider knows.

        Raises:
            InvalidOptionError: An option begins with ``JMSJCA.`` and does not exist.
        """
        own = own_options(self.query)
        return replace(self, query=provider_options(self.query)) if own else self

    def __str__(self) -> str:
        user = f"{self.user_name}@" if self.user_name else ""
        port = "" if self.port is None else f":{self.port}"
        query = "?…" if self.query else ""
        return f"{self.protocol}://{user}{self.host}{port}{self.path}{query}"

    def __repr__(self) -> str:
        return f"<ConnectionURL {self}>"


def _host_and_port(address: str, text: str) -> tuple[str, int | None]:
    host, bracket, rest = address.partition("]") if address.startswith("[") else ("", "", address)  # IPv6
    if address.startswith("[") and not bracket:
        raise InvalidURLError(f"The host of {_shown(text)} has no closing bracket.")
    name, _, port = rest.partition(":")
    if (bracket and name) or not _is_port(port):
        raise InvalidURLError(f"The port of {_shown(text)} must be a number below 65536, behind a colon.")
    return host + bracket + name, int(port) if port else None


def _is_port(text: str) -> bool:
    return not text or (text.isascii() and text.isdigit() and len(text) <= _PORT_DIGITS and int(text) < 1 << 16)


def _query(query: str, text: str) -> dict[str, str]:
    options: dict[str, str] = {}
    for position, pair in enumerate(query.replace("&amp;", "&").split("&"), 1):
        key, equals, value = pair.partition("=")
        if pair and not (key and equals):
            raise InvalidURLError(f"Option {position} of {_shown(text)} must have the form key=value.")
        if pair:
            options[unquote_plus(key)] = unquote_plus(value)
    return options


def _shown(text: str) -> str:
    """The URL for an error message, without what may be a password or an option's secret value.

    A password that was not encoded may hold any sign, so everything before the last ``@`` may belong to it.
    """
    front, at, rest = text.rpartition("@")
    if at:
        scheme, mark, _ = front.partition("://")
        known = scheme + mark if mark else ""
        rest = f"{known}…" if "?" in front else f"{known}…@{rest}"
    return repr(rest.partition("?")[0][:200])
