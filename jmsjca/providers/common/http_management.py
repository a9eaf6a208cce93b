"""Requests to a broker's management over HTTP: JSON in, JSON out, bounded, and over verified TLS."""

import base64
import http.client
import json
from collections.abc import Collection
from typing import Any
from urllib.parse import SplitResult, urlsplit

from jmsjca.config import Credentials
from jmsjca.errors import ConnectionLostError, InvalidOptionError, JMSError, JMSSecurityError, excerpt
from jmsjca.providers.common.network import NetworkOptions, tls_context

__all__ = ["HTTPManagement"]

_RESPONSE_BYTES = 64 * 1024 * 1024  # a listing of very many queues
_REFUSED = (401, 403)
_OK = 200


class HTTPManagement:
    """Sends requests to one URL, each on a connection of its own.

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
        self, method: str, path: str = "", body: Any = None, *, expected: Collection[int] = (_OK,)
    ) -> tuple[int, Any]:
        """Send a request; return the status of the response and its value, None if it has none.

        Args:
            method: The method of HTTP.
            path: The rest after the path of the URL: percent-encoded, with the query.
            body: A value that is sent as JSON; None for none.
            expected: The statuses that are no error.

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
        if not content and status != _OK:
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
