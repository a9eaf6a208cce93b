"""Access to the console: which requests are answered, and the security headers of every response.

Checks are made in the order host, origin, size, token, and CSRF token of a POST. A refusal names the remedy, and
reveals nothing about the broker.
"""

import asyncio
import hashlib
import hmac
import secrets
from collections.abc import Awaitable, Callable, Collection, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from jmsjca.errors import ConfigurationError

__all__ = ["LOOPBACK_HOSTS", "Access", "ConsoleGuard", "Form"]

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
Form = Mapping[str, Sequence[str]]
"""The fields of a form by name."""

LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "::1")

_MIN_TOKEN = 16  # characters
_MAX_QUERY = 8 * 1024  # bytes
_MAX_FORM = 64 * 1024
_MAX_FIELDS = 1000
_FORM_SECONDS = 30.0  # for the whole form, so that a slow client does not occupy a place forever
_FORM_TYPE = b"application/x-www-form-urlencoded"
_SAFE_METHODS = ("GET", "HEAD")
_POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_LIVE_POLICY = f"{_POLICY}; script-src 'self'; connect-src 'self'"
_LIVE_PAGES = ("/", "/activations", "/activation")  # the pages with scripts; they show no messages
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # with no-referrer, browsers send "Origin: null" with a form
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True)
class Access:
    """The secrets of a console, and the host names that it answers to.

    Args:
        token: Access token of at least 16 characters; None for a random token.
        hosts: Host names that a request may name, without ports.

    Raises:
        ConfigurationError: The token is too short, or has characters other than visible ASCII.
    """

    token: str = field(repr=False)
    hosts: Collection[str] = LOOPBACK_HOSTS

    @classmethod
    def of(cls, token: str | None, hosts: Collection[str]) -> "Access":
        """Create the access from the arguments of a console.

        Raises:
            ConfigurationError: As for the constructor.
        """
        return cls(secrets.token_urlsafe(32) if token is None else token, tuple(host.lower() for host in hosts))

    def __post_init__(self) -> None:
        if len(self.token) < _MIN_TOKEN or not all("!" <= char <= "~" for char in self.token):
            raise ConfigurationError(
                f"The token of the console needs {_MIN_TOKEN} visible ASCII characters or more; leave it out for a "
                "random one."
            )

    @property
    def session(self) -> str:
        """Value of the cookie. It does not reveal the token."""
        return self._derived("session")

    @property
    def csrf(self) -> str:
        """Value of the hidden field in every form."""
        return self._derived("csrf")

    @property
    def cookie_name(self) -> str:
        """Name of the cookie. It depends on the token, because browsers send cookies to all ports of a host."""
        return f"jmsjca_{self._derived('name')[:12]}"

    def is_token(self, candidate: str) -> bool:
        """Return True for the access token. The comparison takes constant time."""
        return _equal(candidate, self.token)

    def is_session(self, cookies: str) -> bool:
        """Return True if the header ``Cookie`` contains the cookie of this console."""
        try:
            morsel = SimpleCookie(cookies).get(self.cookie_name)
        except CookieError:
            return False
        return morsel is not None and _equal(morsel.value, self.session)

    def is_csrf(self, candidates: Sequence[str]) -> bool:
        """Return True if a form contains the CSRF token exactly once."""
        return len(candidates) == 1 and _equal(candidates[0], self.csrf)

    def _derived(self, purpose: str) -> str:
        return hmac.new(self.token.encode(), f"jmsjca console {purpose}".encode(), hashlib.sha256).hexdigest()


def _equal(candidate: str, secret: str) -> bool:
    return hmac.compare_digest(candidate.encode("utf-8", "surrogateescape"), secret.encode())


class _RefusedError(Exception):
    """A refused request. The response has only a status and the remedy."""

    def __init__(self, status: int, remedy: str) -> None:
        super().__init__(remedy)
        self.status = status


class ConsoleGuard:
    """ASGI middleware that forwards only permitted requests to the console.

    The application finds the fields of a checked form in ``scope["jmsjca.form"]``.

    Args:
        app: The application that gets the permitted requests.
        access: The secrets and the hosts.
    """

    def __init__(self, app: Application, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        elif scope["type"] == "http":
            await self._answer(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        strict = _with_headers(send, _POLICY)
        try:
            headers = _single_headers(scope)
            self._admit(scope, headers)
            if scope["method"] in _SAFE_METHODS and (token := _query_token(scope)) is not None:
                await self._log_in(scope, strict, token)
                return
            self._require_login(headers)
            if scope["method"] not in _SAFE_METHODS:
                scope = {**scope, "jmsjca.form": await self._read_form(scope, headers, receive)}
        except _RefusedError as error:
            await _respond(strict, error.status, str(error), head=scope["method"] == "HEAD")
            return
        await self._app(scope, receive, _with_headers(send, _policy_of(scope)))

    def _admit(self, scope: Scope, headers: Mapping[str, str]) -> None:
        """Refuse a request that a page of another site may have sent, and a request with a long address.

        The host name is checked because an attacker's name can resolve to this machine. Such a page is same-origin.
        """
        host, origin = headers.get("host", ""), headers.get("origin")
        if _host_name(host) not in self._access.hosts:
            raise _RefusedError(400, "This host name is not one of the console's: see its argument hosts.")
        own = {f"http://{host.lower()}", f"https://{host.lower()}"}
        is_cross_site = headers.get("sec-fetch-site") == "cross-site" and headers.get("sec-fetch-mode") != "navigate"
        if is_cross_site or (origin is not None and origin.lower() not in own):
            raise _RefusedError(403, "The request comes from another site.")
        if len(scope["query_string"]) > _MAX_QUERY:
            raise _RefusedError(414, f"The address is longer than {_MAX_QUERY} bytes.")

    def _require_login(self, headers: Mapping[str, str]) -> None:
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self._access.is_token(bearer.strip()):
            return
        if not self._access.is_session(headers.get("cookie", "")):
            raise _RefusedError(401, "Open the address with the token that the console printed at its start.")

    async def _log_in(self, scope: Scope, send: Send, token: str) -> None:
        """Set the cookie, and redirect to the first page, so that the address bar does not show the token."""
        if not self._access.is_token(token):
            raise _RefusedError(401, "The token is wrong: use the one that the console printed at its start.")
        root = scope.get("root_path", "")
        secure = "; Secure" if scope.get("scheme") == "https" else ""
        cookie = f"{self._access.cookie_name}={self._access.session}; HttpOnly; SameSite=Strict; Path={root or '/'}"
        extra = {"Location": f"{root}/", "Set-Cookie": cookie + secure}
        await _respond(send, 303, "", extra=extra)

    async def _read_form(self, scope: Scope, headers: Mapping[str, str], receive: Receive) -> Form:
        if scope["method"] != "POST":
            raise _RefusedError(405, "Use GET, HEAD or POST.")
        if headers.get("content-type", "").partition(";")[0].strip().lower().encode() != _FORM_TYPE:
            raise _RefusedError(415, "Send a form.")
        try:
            async with asyncio.timeout(_FORM_SECONDS):
                body = await _read(receive)
            fields = parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=_MAX_FIELDS)
        except TimeoutError:
            raise _RefusedError(408, "The form did not arrive in time.") from None
        except ValueError:
            raise _RefusedError(400, "The form cannot be read.") from None
        form: dict[str, list[str]] = {}
        for name, value in fields:
            form.setdefault(name, []).append(value)
        if not self._access.is_csrf(form.pop("csrf", [])):
            raise _RefusedError(403, "The form has expired: load its page again.")
        return form


def _query_token(scope: Scope) -> str | None:
    pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    return next((value for name, value in pairs if name == "token"), None)


def _single_headers(scope: Scope) -> Mapping[str, str]:
    """Return the headers by lower-case name.

    Raises:
        _RefusedError: A header that the checks read is repeated: a reverse proxy may have read the other value.
    """
    found: dict[str, str] = {}
    for raw_name, raw_value in scope["headers"]:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        if name == "cookie" and name in found:
            found[name] += f"; {value}"  # HTTP/2 splits this header
        elif name in found and name in {"host", "origin", "authorization", "content-type", "content-length"}:
            raise _RefusedError(400, f"The header {name} is repeated.")
        else:
            found[name] = value
    return found


def _host_name(host: str) -> str:
    try:
        parts = urlsplit(f"//{host}")
        _ = parts.port  # raises ValueError if it is not a number
    except ValueError:
        return ""
    return (parts.hostname or "") if parts.netloc == host and "@" not in host else ""


async def _read(receive: Receive) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _RefusedError(400, "The client has gone.")
        body += message.get("body", b"")
        if len(body) > _MAX_FORM:
            raise _RefusedError(413, f"The form is longer than {_MAX_FORM} bytes.")
        if not message.get("more_body", False):
            return bytes(body)


def _policy_of(scope: Scope) -> str:
    page = scope["path"].removeprefix(scope.get("root_path", ""))
    return _LIVE_POLICY if page in _LIVE_PAGES else _POLICY


def _with_headers(send: Send, policy: str) -> Send:
    """Wrap ``send`` so that it adds the security headers to every response, including errors."""
    headers = {**_HEADERS, "Content-Security-Policy": policy}
    raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    names = {name for name, _ in raw}

    async def _send(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            own = [pair for pair in message.get("headers", ()) if pair[0].lower() not in names]
            message = {**message, "headers": own + raw}
        await send(message)

    return _send


async def _respond(
    send: Send, status: int, text: str, *, extra: Mapping[str, str] | None = None, head: bool = False
) -> None:
    body = text.encode()
    headers = {"Content-Type": "text/plain; charset=utf-8", "Content-Length": str(len(body)), **(extra or {})}
    raw = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": b"" if head else body})
