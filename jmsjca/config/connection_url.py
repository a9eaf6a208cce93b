"""Connection URLs ``scheme://user:password@host:port,host:port/path?key=value``, their text forms, and credentials."""

import base64
import binascii
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple, Self, cast
from urllib.parse import quote, unquote, unquote_plus, urlencode

from jmsjca.arguments import SECRET_OR_NONE, Constraint
from jmsjca.config.options import jmsjca_options, provider_options
from jmsjca.errors import ConfigurationError, InvalidURLError, JMSError, ResourceAllocationError, excerpt

__all__ = [
    "CREDENTIALS",
    "FAMILIES",
    "Address",
    "ConnectionURL",
    "CredentialSource",
    "Credentials",
    "Login",
    "absolute_url",
    "add_options",
    "check_text",
    "check_unicode",
    "decode_password",
    "is_url",
    "percent_remedy",
    "resolve_source",
    "successor",
]

_PORT_DIGITS = 5
_PROTOCOL = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*\Z")
_MEMBER = re.compile(r"[^\s:]\S*\Z")
_SECOND_USER = re.compile(r"@[^@]*,")
_RELATIVE = re.compile(r"(embedded):(?://)?(?=\.\.?/)")
_FILE_NAME = re.compile(r".+\.(db3?|sqlite3?)\Z", re.IGNORECASE)


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
            text: For example ``embedded:///var/lib/app/broker.db`` or ``amqp://localhost:5672``; a fail-over list is
                ``amqp://one:5672,two:5672``.

        Raises:
            InvalidURLError: The value is no text; or the text has no ``://``, a list with an empty host, a second
                user name or a second scheme, an invalid port, or an option without ``=``; or it is not valid Unicode;
                or a broker in memory has the name of a file.
        """
        _TEXT("The connection URL", text)
        check_unicode(text, "The connection URL", InvalidURLError)
        if text.startswith("failover:"):
            raise InvalidURLError(
                f"{_redacted(text)} is a fail-over list of ActiveMQ: write amqp://one:5672,two:5672 or"
                " stomp://one:61613,two:61613, or java+tcp://one:61616,two:61616 to use ActiveMQ's own client of Java."
            )
        protocol, mark, rest = absolute_url(text).partition("://")
        if not mark or not _PROTOCOL.match(protocol):
            raise InvalidURLError(
                f"{_redacted(text)} is no connection URL: it must begin with a scheme, as embedded:// does."
            )
        if f",{protocol}://" in rest:  # otherwise the other URLs would become a part of the path or of an option
            raise InvalidURLError(
                f"{_redacted(text)} is a list of URLs: a fail-over list has one scheme, before all hosts, and one path"
                f" and options, after all hosts, as in {protocol}://one,two. Within an option write %2C for the comma."
            )
        end = min((i for i in (rest.find("/"), rest.find("?")) if i >= 0), default=len(rest))
        path, _, query = rest[end:].partition("?")
        userinfo, _, hosts = rest[:end].rpartition("@")
        (host, port), *others = _parse_addresses(hosts, text, userinfo)
        if protocol == "embedded" and not path.strip("/") and _FILE_NAME.match(host):
            raise InvalidURLError(
                f"embedded://{host} is a broker in memory, and its name looks like a file "
                f"(did you mean embedded:./{host} or embedded:///folder/{host}?)."
            )
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
        """Protocol, hosts and path. They are equal in all URLs of one broker, with any user and any options."""
        return self.protocol, frozenset(self.addresses), self.path

    def rotations(self, position: int) -> Iterator[Self]:
        """Yield this URL once per host, with that host first, in the order in which an attempt to connect tries them.

        Args:
            position: The index of the host to begin with, modulo the number of hosts.
        """
        for start in range(position, position + len(self.addresses)):
            turn = start % len(self.addresses)
            (host, port), *others = self.addresses[turn:] + self.addresses[:turn]
            yield replace(self, host=host, port=port, others=tuple(others))

    def for_provider(self) -> Self:
        """Return this URL without the options of JMSJCA, because providers do not know them.

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
        """Return whether an ``@`` after the hosts may end a password with a ``/`` or ``?`` that is not percent-encoded.

        ``amqp://joe:12/x@host`` is parsed as the host joe, the port 12 and the path ``/x@host``. A path without a host,
        for example of a file, has no user name before it.
        """
        authority = any(host or port is not None for host, port in self.addresses)
        return authority and ("@" in self.path or any("@" in key for key in self.query))


def _parse_addresses(hosts: str, text: str, userinfo: str) -> list[Address]:
    if _SECOND_USER.search(userinfo):  # or a password that contains both characters
        raise InvalidURLError(
            f"{_redacted(text)} has a comma after an @: a list of hosts has one user name and password, before all"
            " hosts; in a password write %40 for @."
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
        raise InvalidURLError(
            f"The port of {_redacted(text)} must be a number below 65536, after a colon{percent_remedy(text)}."
        )
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

    A password that is not percent-encoded may contain any character, so everything before the last ``@`` may belong to
    it.
    """
    front, at, rest = text.rpartition("@")
    if at:
        scheme, mark, _ = front.partition("://")
        known = scheme + mark if mark else ""
        rest = f"{known}…" if "?" in front else f"{known}…@{rest}"
    return repr(rest.partition("?")[0][:200])


def absolute_url(text: str) -> str:
    """Return the URL of an embedded broker's file with an absolute path; any other URL unchanged.

    A program may change its working directory before it connects: call this where the URL is given.

    Args:
        text: For instance ``embedded:./broker.db`` or ``embedded://../broker.db``.
    """
    found = _RELATIVE.match(text)
    return f"{found[1]}://{quote(str(Path.cwd()))}/{text[found.end() :].removeprefix('./')}" if found else text


def percent_remedy(text: str) -> str:
    """Return the remedy for a URL with a part that may belong to a password; empty if it has no ``@``."""
    remedy = "; percent-encode / ? @ and : in a user name or a password, for example %2F for /"
    return remedy if "@" in text else ""


def add_options(url: str, options: Mapping[str, str]) -> str:
    """Return a URL with additional options. Options that the URL already has are kept.

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
    except UnicodeEncodeError:  # raised without its cause, which contains the text
        raise kind(f"{what} holds half of a surrogate pair, which is not valid Unicode text.") from None


def check_text(text: str | None, what: str, kind: type[JMSError]) -> None:
    """Raise an error for text that would be truncated on the way: STOMP frames and C strings end at NUL.

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
_WEBSPHERE = (
    "IBM MQ is reached by its own client of Java, wmq://host:1414?QueueManager=…, or over AMQP 1.0 by its AMQP channel:"
    " amqp://host:5672"
)
_JBOSS = "JBoss MQ became HornetQ and ActiveMQ Artemis, which is reached over AMQP 1.0: amqp://host:5672"
_STCMS = (
    "SeeBeyond's and Sun's message server has no successor; move to a broker with AMQP 1.0 or STOMP: amqp://host:5672"
)
_WEBLOGIC = (
    "WebLogic JMS is reached by its own client of Java, jndi://NAME?java.naming.factory.initial=…; it has neither AMQP"
    " 1.0 nor STOMP, so the other way is a bridge to a broker that has: amqp://host:5672"
)
_OPEN_WIRE = (
    "ActiveMQ and Artemis are reached over AMQP 1.0, amqp://host:5672, or STOMP, stomp://host:61613. OpenWire needs"
    " ActiveMQ's own client of Java: java+tcp://host:61616"
)
_HTTP = (
    "a web address is not a broker; brokers are reached over AMQP 1.0, amqp://host:5672, or STOMP, stomp://host:61613"
)
_WAVE = "JMS Grid (SpiritWave) has no successor; move to a broker with AMQP 1.0 or STOMP: amqp://host:5672"

FAMILIES: Mapping[str, str] = {
    **dict.fromkeys(("stcms", "stcmss", "stcms453", "stcms453s"), _STCMS),
    **dict.fromkeys(("mq", "mqtcp", "mqssl", "httpjms", "httpsjms"), _OPEN_MQ),
    **dict.fromkeys(("wmqs", "wmq5", "wmqs5", "wmq5s"), _WEBSPHERE),
    **dict.fromkeys(("t3", "t3s"), _WEBLOGIC),
    "jboss": _JBOSS,
    **dict.fromkeys(("tcp", "ssl"), _OPEN_WIRE),
    "http": _HTTP,
    "stream": _WAVE,
}
"""For each scheme of JMSJCA's adapters that has no provider here: the URL of its broker, or the broker's successor."""


def successor(scheme: str) -> str | None:
    """Return how to reach the broker of a scheme of JMSJCA today; None for other schemes."""
    return FAMILIES.get(scheme.lower())


@dataclass(frozen=True, slots=True)
class Credentials:
    """A user name and its password. A password without a user name is ignored.

    Args:
        user_name: The user name.
        password: The password; never part of `repr`.
    """

    user_name: str
    password: str | None = field(default=None, repr=False)


CredentialSource = str | tuple[str, str | None] | Callable[[], tuple[str, str | None]]
"""A pair of user name and password; a function that returns one; or ``env:NAME`` or ``file:PATH``."""

_ENCODED = "__:ENC:08:"
_REFERENCE = re.compile(r"(env|file):(.+)", re.DOTALL)
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*://")
_USER_NAME, _PASSWORD = "username", "password"


def _is_source(source: object) -> bool:
    known = isinstance(source, str) and _REFERENCE.fullmatch(source) is not None
    return source is None or known or _is_pair(source) or callable(source)


CREDENTIALS = Constraint[CredentialSource | None](
    "a pair (user name, password), a function that returns one, 'env:NAME' or 'file:PATH'",
    fits=_is_source,
    error=ConfigurationError,
    secret=True,
)


def _is_pair(source: object) -> bool:
    return isinstance(source, tuple) and len(cast("tuple[object, ...]", source)) == 2  # noqa: PLR2004  # a pair


def resolve_source(source: CredentialSource, user_name: str | None = None) -> Credentials:
    """Return the credentials of a source. It is read at each new connection, so that passwords can rotate.

    Args:
        source: A pair; a function that returns a pair; or the name of an environment variable or a file that holds
            ``user:password`` (with a user name only the password).
        user_name: The user name of a variable or file that holds only a password.

    Raises:
        ConfigurationError: The environment variable is not set, or a value has no user name or no colon.
        ArgumentTypeError: The user name or the password of a pair is not a text.
        ResourceAllocationError: The file cannot be read, or the function raised an exception.
    """
    if isinstance(source, str):
        text = _read_reference(source)
        user, password = (user_name, text) if user_name else _split(source, text)
    else:
        user, password = _call(source) if callable(source) else source
    SECRET_OR_NONE("The user name of the credentials", user)
    SECRET_OR_NONE("The password of the credentials", password)
    if not user:
        raise ConfigurationError(f"The credentials of {_describe(source)} have no user name: use user:password.")
    return Credentials(user, decode_password(password))


def _split(source: str, text: str) -> tuple[str, str | None]:
    user, colon, password = text.partition(":")
    if not colon:  # the text is a password, and must not be shown as a user name
        raise ConfigurationError(
            f"The credentials of {source} have no colon: use user:password, or configure the user name separately."
        )
    return user, password


def _read_reference(source: str) -> str:
    kind, name = cast("re.Match[str]", _REFERENCE.fullmatch(source)).groups()
    if kind == "env":
        if name not in os.environ:
            raise ConfigurationError(f"The environment variable {excerpt(name)!r} of the credentials is not set.")
        return os.environ[name]
    try:
        return Path(name).read_text("utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
    # Raised here, so that the chain has no exception with the content of the file.
    raise ResourceAllocationError(f"The file {name!r} of the credentials cannot be read: {reason}.")


def _call(source: Callable[[], tuple[str, str | None]]) -> tuple[str, str | None]:
    try:
        user, password = source()
    except JMSError:
        raise
    except Exception as error:  # noqa: BLE001  # raised below as a JMSError
        kind = type(error).__name__
    else:
        return user, password
    # Raised here, so that the chain has no exception of the function: its text may contain the password.
    raise ResourceAllocationError(f"{_describe(source)}, which supplies the credentials, raised {kind}.")


def _describe(source: object) -> str:
    if isinstance(source, str | tuple):
        return source if isinstance(source, str) else "the pair"
    return f"the function {getattr(source, '__name__', type(source).__name__)}"


def decode_password(password: str | None) -> str | None:
    """Return a password, decoded if JMSJCA encoded it (``__:ENC:08:`` and base64, which is not encryption).

    Raises:
        ConfigurationError: The encoding is invalid. The message does not contain the password.
    """
    if password is None or not password.startswith(_ENCODED):
        return password
    try:
        return base64.b64decode(password.removeprefix(_ENCODED), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        pass  # raised below, so that the chain has no exception with the decoded bytes
    raise ConfigurationError(f"A password begins with {_ENCODED}, but what follows is not base64.")


def is_url(user_name: str | None) -> bool:
    """Return True if a user name is a connection URL (an "overloaded user name" in JMSJCA's manual)."""
    return user_name is not None and _URL.match(user_name) is not None


@dataclass(frozen=True, slots=True)
class Login:
    """The URL and the credentials of a connection.

    Attributes:
        url: The connection URL.
        user_name: The user name; None for the one in the URL, if any.
        password: The password of ``user_name``; not used without a user name.
        source: The source of the credentials, read at each connection; None for the user name and the password.
    """

    url: str = field(repr=False)
    user_name: str | None = None
    password: str | None = field(default=None, repr=False)
    source: CredentialSource | None = field(default=None, repr=False)

    def fill_in(self, user_name: str | None, password: str | None) -> "Login":
        """Return the login for the next level of configuration. Without a user name there, it uses these credentials.

        User name and password stay together: a password is never used with another user name, or for the broker of
        another level, and a password without a user name is not used (JMSJCA, credentials).

        Args:
            user_name: The user name of that level; None or empty for the credentials of this login.
            password: The password of that level; None for none.
        """
        return Login(self.url, user_name, password) if user_name else self

    def override(self, user_name: str | None, password: str | None) -> "Login":
        """Return the login with other credentials. If the user name is a URL, the login uses that URL.

        Such a URL may have ``username`` and ``password`` in its query. Without a user name there, the credentials of
        this login remain, and the given password is not used (JMSJCA, overloaded user name).

        Args:
            user_name: The user name, or a connection URL; None or empty keeps the credentials of this login.
            password: The password.

        Raises:
            InvalidURLError: The URL does not parse.
        """
        if not user_name:
            return self
        if not is_url(user_name):
            return replace(self, user_name=user_name, password=password, source=None)
        query = ConnectionURL.parse(user_name).query
        url = _without(user_name, {_USER_NAME, _PASSWORD})
        if _USER_NAME not in query:
            return replace(self, url=url)
        return Login(url, query[_USER_NAME], query.get(_PASSWORD, password))


def _without(url: str, names: set[str]) -> str:
    """Return a URL without some options of its query."""
    front, mark, query = url.partition("?")
    pairs = [pair for pair in query.split("&") if pair.partition("=")[0] not in names]
    return front + mark + "&".join(pairs) if any(pairs) else front
