"""The management of brokers: requests over HTTP, checked responses, and what the administrations share."""

import base64
import http.client
import json
from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import SplitResult, urlsplit

from jmsjca.config import Credentials, DestinationSettings
from jmsjca.destinations import Destination, Queue, Subscription
from jmsjca.errors import (
    ConnectionLostError,
    InvalidDestinationError,
    InvalidOptionError,
    JMSError,
    JMSSecurityError,
    NotSupportedError,
    excerpt,
)
from jmsjca.providers.common.network import NetworkOptions, tls_context
from jmsjca.spi import Connection

__all__ = [
    "MANAGED",
    "NOT_FOUND",
    "OK",
    "HTTPManagement",
    "ResponseFields",
    "SettingsElsewhere",
    "creatable_name",
    "discard",
    "expect_list",
    "expect_number",
    "number_in",
    "unexpected_response",
]

MANAGED: Mapping[str, Any] = {
    "admin": True,
    "counts_held": True,
    "lists_destinations": True,
    "creates_queues": True,
    "counts_consumers": True,
    "counts_traffic": True,
}
"""The capabilities that a management over HTTP adds to a connection."""

_MAX_DIGITS = 20  # of the largest number that a broker counts
_MAX_SHOWN_CHARACTERS = 300

_RESPONSE_BYTES = 64 * 1024 * 1024  # a listing of very many queues
_REFUSED = (401, 403)
OK, NOT_FOUND = 200, 404  # statuses, also of Jolokia


class HTTPManagement:
    """Sends requests to one URL, each on a new connection.

    Args:
        options: The options of the broker's URL; ``management_url`` is the URL of the requests.
        credentials: User name and password; None for anonymous requests.

    Raises:
        InvalidOptionError: The option is not a URL of HTTP.
        JMSSecurityError: The password would be sent without TLS.
    """

    def __init__(self, options: NetworkOptions, credentials: Credentials | None) -> None:
        url = _split_url(options.management_url or "")
        secure = url.scheme == "https"
        if credentials and credentials.password and not (secure or options.allow_insecure_login):
            raise JMSSecurityError(
                f"{url.scheme}://{url.hostname} would send the password of {credentials.user_name!r} in the clear. Use"
                " https in management_url, or, on a network that you trust, the option allow_insecure_login=true."
            )
        self._host, self._port = url.hostname or "", url.port
        self._path = url.path or "/"
        self._timeout = options.reply_timeout
        self._tls = tls_context(options) if secure else None
        self._headers = {"Content-Type": "application/json", "Origin": f"{url.scheme}://{url.netloc}"}
        if credentials is not None:
            text = f"{credentials.user_name}:{credentials.password or ''}"
            self._headers["Authorization"] = f"Basic {base64.b64encode(text.encode()).decode()}"

    def post(self, body: Any) -> Any:
        """Send a value as JSON, and return the value of the response.

        Raises:
            ConnectionLostError: The management cannot be reached, or did not respond in time.
            JMSSecurityError: It refuses the user, or its certificate is not trusted.
            JMSError: It responded with another status than 200, or with something else than JSON.
        """
        return self.request("POST", body=body)[1]

    def request(
        self, method: str, path: str = "", body: Any = None, *, expected: Collection[int] = (OK,)
    ) -> tuple[int, Any]:
        """Send a request; return the status of the response and its value, None if it has none.

        Args:
            method: The method of HTTP.
            path: The rest after the path of the URL: percent-encoded, with the query.
            body: A value that is sent as JSON; None for none.
            expected: The statuses that are not errors.

        Raises:
            ConnectionLostError: The management cannot be reached, or did not respond in time.
            JMSSecurityError: It refuses the user, or its certificate is not trusted.
            JMSError: It responded with another status, or with something else than JSON.
        """
        try:
            status, content = self._send(method, path, b"" if body is None else json.dumps(body).encode())
        except (OSError, http.client.HTTPException) as error:
            raise ConnectionLostError(f"The broker's management at {self._name} cannot be reached: {error}") from error
        if status in _REFUSED:
            raise JMSSecurityError(f"The broker's management at {self._name} refuses the user (status {status}).")
        if status not in expected:
            wanted = " or ".join(map(str, expected))
            raise JMSError(f"The broker's management at {self._name} answers with the status {status}, not {wanted}.")
        if len(content) > _RESPONSE_BYTES:
            raise JMSError(f"A response of the broker's management has more than {_RESPONSE_BYTES} bytes.")
        if not content and status != OK:
            return status, None
        try:
            return status, json.loads(content)
        except (ValueError, RecursionError) as error:
            raise JMSError(f"A response of the broker's management at {self._name} is no JSON.") from error

    @property
    def _name(self) -> str:
        return f"{self._host}{'' if self._port is None else f':{self._port}'}{self._path}"

    def _send(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        if self._tls is None:
            connection = http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)
        else:
            connection = http.client.HTTPSConnection(self._host, self._port, timeout=self._timeout, context=self._tls)
        try:
            connection.request(method, self._path.removesuffix("/") + path if path else self._path, body, self._headers)
            response = connection.getresponse()
            return response.status, response.read(_RESPONSE_BYTES + 1)
        finally:
            connection.close()


def _split_url(text: str) -> SplitResult:
    """Return the parts of the option ``management_url``. Its errors show no user and no password."""
    form = "Option management_url is http://HOST:PORT/PATH or https://…, in ASCII, without a user and a query"
    try:
        url = urlsplit(text)
        port_is_valid = url.port is None or url.port > 0
    except ValueError:  # without the cause: its text may show the user and the password
        raise InvalidOptionError(f"{form}; its host or its port is invalid.") from None
    is_web = url.scheme in {"http", "https"} and url.hostname and port_is_valid
    if not is_web or url.username or url.query or not text.isascii():
        raise InvalidOptionError(f"{form}; it is {excerpt(f'{url.scheme}://{url.hostname}')}.")
    return url


def unexpected_response(expected: str, found: Any) -> JMSError:
    """Return the error for a response of an unexpected form.

    Args:
        expected: A description of the expected value.
        found: The actual value.
    """
    shown = repr(found)[:_MAX_SHOWN_CHARACTERS]
    return JMSError(f"A response of the broker's management is invalid: expected {expected} got {shown}")


def creatable_name(queue: Destination) -> str:
    """Return the name of a queue that an operator may create.

    Raises:
        InvalidDestinationError: It is a topic, or temporary.
    """
    if not isinstance(queue, Queue) or queue.temporary:
        raise InvalidDestinationError(f"{queue} cannot be created here: only queues with a name of yours are.")
    return queue.name


def expect_list(what: str, found: Any) -> list[Any]:
    """Return a value that must be a list.

    Raises:
        JMSError: The value is not a list.
    """
    if not isinstance(found, list):
        raise unexpected_response(f"a list, {what},", found)
    return list(found)  # pyright: ignore[reportUnknownArgumentType]  # of anything


def expect_number(what: str, found: Any) -> int:
    """Return a count, which the broker may send as a string.

    Raises:
        JMSError: The value is not a count.
    """
    text = str(int(found)) if isinstance(found, int) and not isinstance(found, bool) else found
    if isinstance(text, str) and text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS:
        return int(text)
    raise unexpected_response(f"a number, {what},", found)


def number_in(row: Mapping[str, Any], name: str) -> int:
    """Return a count in a row of JSON; 0 if it is not there.

    Raises:
        JMSError: The value is not a count, or a string.
    """
    found = row.get(name, 0)
    if isinstance(found, str):
        raise unexpected_response(f"a number, {name},", found)
    return expect_number(name, found)


class ResponseFields:
    """The fields of a map in a response. Each method but `get` raises `JMSError` for a field of another type.

    Args:
        found: The value, which must be a map.

    Raises:
        JMSError: The value is not a map.
    """

    def __init__(self, found: Any) -> None:
        if not isinstance(found, Mapping):
            raise unexpected_response("a map,", found)
        self._found: Mapping[Any, Any] = found

    def get(self, name: str) -> Any:
        """Return a field of any type; None without it."""
        return self._found.get(name)

    def text(self, name: str) -> str:
        """Return a string field."""
        found = self.get(name)
        if not isinstance(found, str):
            raise unexpected_response(f"a string, {name},", found)
        return found

    def number(self, name: str) -> int:
        """Return a field that is a count."""
        return expect_number(name, self.get(name))

    def list(self, name: str) -> list[Any]:
        """Return a list field."""
        return expect_list(name, self.get(name))


class SettingsElsewhere:
    """The part of an administration that the broker does not have: the settings of destinations are made elsewhere."""

    def configure(self, address: Destination | None, settings: DestinationSettings) -> None:
        """Raise `NotSupportedError`."""
        del settings
        raise NotSupportedError(
            f"Settings of {address} are made in the broker's own configuration, such as its policies."
        )

    def settings(self, address: Destination | None) -> DestinationSettings:
        """Raise `NotSupportedError`."""
        raise NotSupportedError(
            f"Settings of {address} are made in the broker's own configuration, such as its policies."
        )


def discard(connection: Connection, source: Destination | Subscription, limit: int, patience: float) -> int:
    """Receive and acknowledge at most `limit` messages; return their number.

    Args:
        connection: The connection that receives them.
        source: The queue.
        limit: The maximum number of messages.
        patience: Seconds to wait for a message; then another consumer has it.
    """
    if not limit:
        return 0
    left, consumer = limit, connection.consumer(source)
    try:
        while left and (chunk := consumer.receive(left, patience)):
            unit = connection.unit(atomic=False)
            unit.take(chunk)
            unit.commit()
            left -= len(chunk)
    finally:
        consumer.close()
    return limit - left
