"""Shared parts of network protocols: URL options, TLS sockets, passwords, and rules for destinations."""

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, wait
from contextlib import ExitStack, suppress
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, Generic, Self, TypeVar

from jmsjca.arguments import did_you_mean
from jmsjca.config import ConnectionURL, Credentials
from jmsjca.config.connection_url import check_text
from jmsjca.config.options import SPELLINGS
from jmsjca.destinations import Destination, Subscription, destination
from jmsjca.errors import (
    ConnectionLostError,
    InvalidDestinationError,
    InvalidOptionError,
    InvalidURLError,
    JMSError,
    JMSSecurityError,
    WrongProtocolError,
)

__all__ = [
    "LOGIN_REMEDY",
    "NetworkOptions",
    "OwnedDestinations",
    "await_answer",
    "check_protocol",
    "check_silent_peer",
    "connection_error",
    "open_socket",
    "peer_name",
    "request_quick_ack",
    "require_tls_for_password",
    "silent_peer_error",
    "spoken_protocol",
    "tls_context",
]

_MAX_REMOVED = 10_000

T = TypeVar("T")


# TLS alerts that a retry cannot cure (RFC 8446, section 6.2).
_PERMANENT_ALERTS = ("ALERT_ACCESS_DENIED", "ALERT_HANDSHAKE_FAILURE", "ALERT_UNKNOWN_CA", "CERTIFICATE")

# Reasons of OpenSSL for an answer that is not TLS.
_NO_TLS = {"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG", "RECORD_LAYER_FAILURE"}

# The first bytes of servers.
_GREETINGS = {
    "AMQP 0-9-1": (b"AMQP\0\0\x09",),
    "AMQP 1.0": (b"AMQP",),
    "HTTP": (b"HTTP/",),
    "Open MQ's own protocol": (b"101 imqbroker",),
    "STOMP": (b"ERROR\n", b"ERROR\r\n", b"CONNECTED\n", b"CONNECTED\r\n"),
    "TLS": (b"\x15\x03", b"\x16\x03"),
}
_SILENCE = 2.0  # seconds without a byte of the server, after which it is asked in other protocols
_QUESTIONS = {"AMQP 1.0": b"AMQP\3\1\0\0", "STOMP": b"CONNECT\naccept-version:1.2\nhost:/\n\n\0"}
_ANSWER_BYTES, _ANSWER_TIMEOUT = 64, 1.0
_OPENWIRE_AT = 5  # offset of the magic of OpenWire, behind size and type of its first command

_REMEDIES: dict[type[OSError], str] = {
    ConnectionRefusedError: "nothing listens there: start the broker, or correct the host or the port",
    ConnectionResetError: "the server ended the connection: correct the port, or use TLS",
    socket.gaierror: "the name of the host is not known here: correct it, or the DNS",
    TimeoutError: "no answer: check host, port and firewalls, or raise connect_timeout",
}
LOGIN_REMEDY = "Correct the user name or the password, or grant the permission."

_OPTIONAL_TIMES = {"heartbeat": 0.001}  # that 0 turns off, and the least else: both protocols count milliseconds

_QUICKACK: int | None = getattr(socket, "TCP_QUICKACK", None)


@dataclass(frozen=True, slots=True)
class NetworkOptions:
    """Options after the ``?`` in the URL of a broker on the network.

    Args:
        connect_timeout: Seconds for each of the TCP connection, the TLS handshake and the login; above 0.
        reply_timeout: Seconds to wait for the broker's response to a request, including a commit; above 0.
        heartbeat: Seconds without outgoing data after which this client sends a heartbeat. After twice this time
            without incoming data the broker is considered dead. At least 0.001; 0 turns heartbeats off.
        allow_insecure_login: True to allow sending the password without TLS.
        ca_file: The only certificate authorities (PEM) trusted to sign the broker's certificate. Default: the system's.
        certificate_file: This client's certificate (PEM), for brokers that request one.
        key_file: The private key (PEM) of that certificate, if it is not in the same file.
        management_url: The URL of the broker's management over HTTP: of Jolokia on ActiveMQ Classic, of the API of
            RabbitMQ. Default: none.
    """

    connect_timeout: float = 30.0
    reply_timeout: float = 60.0
    heartbeat: float = 10.0
    allow_insecure_login: bool = False
    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
    management_url: str | None = None

    @classmethod
    def parse(cls, url: ConnectionURL) -> Self:
        """Return the options of a URL.

        Raises:
            InvalidOptionError: An option is unknown, or its value is invalid.
        """
        known = {field.name: field.type for field in fields(cls)}
        for name in url.query:
            if name not in known:
                raise InvalidOptionError(_unknown_option_message(name, url, known))
        return cls(**{name: _parse_value(name, text, known[name]) for name, text in url.query.items()})


def require_tls_for_password(
    url: ConnectionURL, options: NetworkOptions, credentials: Credentials | None, tls_scheme: str
) -> None:
    """Raise an error if a password would be sent without TLS.

    Args:
        url: The broker's URL.
        options: The options of that URL; they may allow an insecure login.
        credentials: The credentials for the login; None for an anonymous one.
        tls_scheme: The URL scheme of the protocol over TLS.

    Raises:
        JMSSecurityError: The password would be sent in the clear, and the options do not allow that.
    """
    if credentials and credentials.password and url.protocol != tls_scheme and not options.allow_insecure_login:
        raise JMSSecurityError(
            f"{url} would send the password of {credentials.user_name!r} in the clear. Use {tls_scheme}://, or, on a"
            " network that you trust, the option allow_insecure_login=true."
        )


def open_socket(url: ConnectionURL, options: NetworkOptions, *, default_port: int, tls: bool) -> socket.socket:
    """Connect to the broker; with TLS, the certificate must be valid for exactly this host.

    Raises:
        InvalidURLError: The URL names no host, or one that cannot exist.
        WrongProtocolError: The server does not answer with TLS.
        JMSSecurityError: The broker's certificate is not trusted, or a configured certificate file cannot be read.
        ConnectionLostError: The broker cannot be reached.
    """
    host, port = url.host.strip("[]"), default_port if url.port is None else url.port
    if not host:
        raise InvalidURLError(f"{url} names no host.")
    check_text(host, f"The host {host!a:.200}", InvalidURLError)  # the resolver would look up the part before a NUL
    context = tls_context(options) if tls else None
    try:
        plain = socket.create_connection((host, port), timeout=options.connect_timeout)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if context is None:
            return plain
        return _wrap_tls(
            plain, context, host, options.connect_timeout, partial(_check_plain, url, options, default_port)
        )
    except ssl.SSLCertVerificationError as error:
        raise JMSSecurityError(
            f"The certificate of {host}:{port} is not to be trusted: {error.verify_message}. Use the host name of the"
            " certificate, and name its authority with the option ca_file."
        ) from error
    except ssl.SSLError as error:
        if error.reason in _NO_TLS:
            raise WrongProtocolError(
                f"{host}:{port} does not answer with TLS: correct the port or the protocol of {url}."
            ) from error
        raise connection_error(f"Cannot connect to {host}:{port}", error) from error
    except UnicodeError as error:  # the name is too long, or has an empty label
        raise InvalidURLError(f"{url} names a host that cannot exist: {error}.") from error
    except OSError as error:
        raise _unreachable(host, port, error) from error


def _unreachable(host: str, port: int, error: OSError) -> JMSError:
    remedy = next((text for kind, text in _REMEDIES.items() if isinstance(error, kind)), "check host, port and network")
    return connection_error(f"Cannot connect to {host}:{port} ({remedy})", error)


def peer_name(url: ConnectionURL, default_port: int) -> str:
    """Return ``host:port`` of a broker, for error messages."""
    return f"{url.host}:{default_port if url.port is None else url.port}"


def spoken_protocol(greeting: bytes) -> str | None:
    """Return the protocol that the first bytes of a server show; None if they do not show it."""
    for name, first in _GREETINGS.items():
        if greeting.startswith(first):
            return name
    return "OpenWire" if greeting[_OPENWIRE_AT:].startswith(b"ActiveMQ") else None


def check_protocol(greeting: bytes, expected: str, url: ConnectionURL, default_port: int) -> None:
    """Raise an error if the server at a URL speaks another protocol.

    Args:
        greeting: The first bytes that it sent.
        expected: The protocol of the URL, as `spoken_protocol` names it.
        url: The URL.
        default_port: The port if the URL has none.

    Raises:
        WrongProtocolError: It speaks another protocol.
    """
    spoken = spoken_protocol(greeting)
    if spoken not in {None, expected}:
        raise WrongProtocolError(
            f"The server at {peer_name(url, default_port)} speaks {spoken}, not {expected}: correct the port or the"
            f" protocol of {url}."
        )


def check_silent_peer(
    url: ConnectionURL, options: NetworkOptions, expected: str, default_port: int, *, tls: bool
) -> None:
    """Raise an error if a server that does not answer in the expected protocol answers in another one.

    Args:
        url: The URL.
        options: The options of the URL.
        expected: The protocol in which it does not answer, as `spoken_protocol` names it.
        default_port: The port if the URL has none.
        tls: True to ask over TLS.

    Raises:
        WrongProtocolError: It speaks another protocol.
    """
    questions = [question for protocol, question in _QUESTIONS.items() if protocol != expected]
    for question in questions if tls else [*questions, _hello_of_tls()]:
        check_protocol(_answer_to(question, url, options, default_port, tls=tls), expected, url, default_port)


def silent_peer_error(error: ConnectionLostError, url: ConnectionURL, default_port: int) -> ConnectionLostError:
    """Return the error of a login to a server that sent nothing, with the remedy."""
    return ConnectionLostError(
        f"{error} The server at {peer_name(url, default_port)} has sent nothing: if this happens each time, correct the"
        f" port or the protocol of {url}; the port may need TLS."
    )


def _hello_of_tls() -> bytes:
    """Return the first bytes of a client over TLS."""
    hello = ssl.MemoryBIO()
    with suppress(ssl.SSLWantReadError):
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).wrap_bio(
            ssl.MemoryBIO(), hello, server_hostname="localhost"
        ).do_handshake()
    return hello.read()


def _check_plain(url: ConnectionURL, options: NetworkOptions, default_port: int) -> None:
    """Raise an error if a server that does not answer with TLS answers without it.

    Raises:
        WrongProtocolError: It speaks a protocol without TLS.
    """
    for question in _QUESTIONS.values():
        spoken = spoken_protocol(_answer_to(question, url, options, default_port, tls=False))
        if spoken not in {None, "TLS"}:
            raise WrongProtocolError(
                f"{peer_name(url, default_port)} does not answer with TLS, it speaks {spoken}: correct the port or the"
                f" protocol of {url}."
            )


def _answer_to(question: bytes, url: ConnectionURL, options: NetworkOptions, default_port: int, *, tls: bool) -> bytes:
    """Return the first bytes of a server's answer on another connection; none if it does not answer soon."""
    hasty = replace(options, connect_timeout=min(options.connect_timeout, _ANSWER_TIMEOUT))
    try:
        with open_socket(url, hasty, default_port=default_port, tls=tls) as asking:
            asking.sendall(question)
            return asking.recv(_ANSWER_BYTES)
    except (OSError, JMSError):
        return b""


def connection_error(context: str, error: Exception) -> JMSError:
    """Return the JMS error for a TLS alert or a network error of a connection.

    Args:
        context: The failed operation, as the beginning of the error message.
        error: The error of the socket.
    """
    reason: str = getattr(error, "reason", None) or ""
    if isinstance(error, ssl.SSLError) and any(alert in reason for alert in _PERMANENT_ALERTS):
        return JMSSecurityError(
            f"{context}: the broker requires another client certificate or other TLS parameters: {error}"
        )
    return ConnectionLostError(f"{context}: {error}")


def request_quick_ack(sock: socket.socket) -> None:
    """Make TCP acknowledge the data just read at once, where the system supports it.

    A broker that writes a response in two segments waits for the acknowledgement of the first, which the kernel delays
    by up to 40 ms. The kernel resets this option, so it must be set after every read.
    """
    if _QUICKACK is not None:
        sock.setsockopt(socket.IPPROTO_TCP, _QUICKACK, 1)


def _wrap_tls(
    plain: socket.socket, context: ssl.SSLContext, host: str, timeout: float, on_silence: Callable[[], None]
) -> ssl.SSLSocket:
    """Return the socket after the handshake. The function is called if the server answers nothing."""
    wrapped = context.wrap_socket(plain, server_hostname=host, do_handshake_on_connect=False)
    with ExitStack() as stack:
        stack.callback(wrapped.close)
        _shake_hands(wrapped, timeout, on_silence)
        stack.pop_all()
    return wrapped


def _shake_hands(wrapped: ssl.SSLSocket, timeout: float, on_silence: Callable[[], None]) -> None:
    end = time.monotonic() + timeout
    wrapped.settimeout(min(timeout, _SILENCE))
    try:
        wrapped.do_handshake()
    except (ssl.SSLEOFError, ConnectionResetError):
        on_silence()
        raise
    except TimeoutError:
        if timeout <= _SILENCE:
            raise
        on_silence()
        wrapped.settimeout(max(end - time.monotonic(), 0.001))
        wrapped.do_handshake()  # continues
    wrapped.settimeout(timeout)


def await_answer(answer: "Future[Any]", timeout: float, spoke: Callable[[], bool], ask: Callable[[], None]) -> float:
    """Wait some seconds for the answer to a login; return how many seconds of the timeout are left.

    Args:
        answer: The answer.
        timeout: Seconds in all.
        spoke: Returns True if the server has sent something.
        ask: Called if it has sent nothing: `check_silent_peer`.
    """
    end = time.monotonic() + timeout
    if timeout > _SILENCE and not wait([answer], _SILENCE).done and not spoke():
        ask()
    return max(end - time.monotonic(), 0)


def tls_context(options: NetworkOptions) -> ssl.SSLContext:
    """Return the context of verified TLS connections.

    Raises:
        JMSSecurityError: A configured certificate file cannot be read.
    """
    try:
        context = ssl.create_default_context(cafile=options.ca_file)  # with ca_file, only its authorities are trusted
        context.hostname_checks_common_name = False  # a common name is not a host name (RFC 9525, section 2)
        if options.certificate_file:
            context.load_cert_chain(options.certificate_file, options.key_file)
    except (OSError, ValueError) as error:  # ValueError: a file name with NUL
        raise JMSSecurityError(f"The files of ca_file, certificate_file or key_file cannot be used: {error}") from error
    return context


def _parse_value(name: str, text: str, kind: object) -> Any:
    if kind is bool:
        if text.lower() not in {"true", "false"}:
            raise InvalidOptionError(f"Option {name} is true or false, not {text[:50]!r}.")
        return text.lower() == "true"
    return _parse_seconds(name, text) if kind is float else text


def _parse_seconds(name: str, text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    least = _OPTIONAL_TIMES.get(name)
    if not 0 <= seconds <= 86_400 or not (seconds or least):  # noqa: PLR2004  # a day; this also refuses NaN
        above = "" if least else " above 0,"
        raise InvalidOptionError(f"Option {name} is a number of seconds{above} up to a day, not {text[:50]!r}.")
    if least and 0 < seconds < least:
        raise InvalidOptionError(
            f"Option {name} is a number of seconds up to a day, not {text[:50]!r}: above 0 it is at least {least}."
        )
    return seconds


def _unknown_option_message(name: str, url: ConnectionURL, known: Iterable[str]) -> str:
    of_jmsjca = SPELLINGS.get(name.lower().replace("_", ""))
    meant = {of_jmsjca.lower(): of_jmsjca} if of_jmsjca else {each.lower(): each for each in known}
    return f"{url.protocol}:// has no option {name[:50]!r} {did_you_mean(name.lower(), meant)}."


class OwnedDestinations(Generic[T]):
    """Base class of the temporary destinations of a connection. Thread-safe.

    A provider stores a resource with each destination, for example the link that keeps it alive.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owned: dict[Destination, T] = {}
        self._removed: dict[Destination, None] = {}  # the oldest first

    def check_owned(self, source: Destination | Subscription) -> None:
        """Raise an error for a source that this connection cannot consume from.

        Raises:
            InvalidDestinationError: A temporary destination belongs to another connection or was deleted, or a durable
                subscription would use a temporary topic.
        """
        target = source.topic if isinstance(source, Subscription) else source
        if not target.temporary:
            return
        if target not in self._owned:
            raise InvalidDestinationError(
                f"{target} was deleted or belongs to another connection, which alone can consume from it."
            )
        if isinstance(source, Subscription) and source.durable:
            raise InvalidDestinationError(f"A durable subscription cannot use the temporary topic {target}.")

    def check_not_removed(self, to: Destination) -> None:
        """Raise an error for a temporary destination that this connection has removed.

        Raises:
            InvalidDestinationError: The destination was removed.
        """
        if self._removed and to in self._removed:
            raise InvalidDestinationError(f"{to} was deleted.")

    def resolve(self, what: Destination) -> Destination:
        """Return the temporary destination of this connection that has the same name, else the given destination."""
        own = destination(what.name, what.kind, temporary=True)
        return own if own in self._owned else what

    def _add(self, created: Destination, resource: T) -> None:
        with self._lock:
            self._owned[created] = resource

    def _discard(self, what: Destination) -> T:
        """Disown a destination and return its resource.

        Raises:
            InvalidDestinationError: This connection does not own the destination.
        """
        with self._lock:
            if what not in self._owned:
                raise InvalidDestinationError(f"{what} was deleted or belongs to another connection.")
            self._removed[what] = None
            if len(self._removed) > _MAX_REMOVED:
                del self._removed[next(iter(self._removed))]
            return self._owned.pop(what)
