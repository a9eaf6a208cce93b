"""Credentials: user name and password, where they come from, and user names that are connection URLs."""

import base64
import binascii
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

from jmsjca.arguments import SECRET_OR_NONE
from jmsjca.config.connection_url import ConnectionURL
from jmsjca.errors import ConfigurationError, JMSError, ResourceAllocationError, excerpt

__all__ = ["CredentialSource", "Credentials", "Login", "check_source", "decode_password", "is_url", "resolve_source"]


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


def check_source(source: CredentialSource | None) -> None:
    """Refuse a source of credentials that has none of its forms.

    Raises:
        ConfigurationError: It is neither a pair, nor a function, nor ``env:NAME`` or ``file:PATH``. The message does
            not contain it.
    """
    known = isinstance(source, str) and _REFERENCE.fullmatch(source) is not None
    if not (source is None or known or _is_pair(source) or callable(source)):
        kind = type(source).__name__
        raise ConfigurationError(
            f"credentials is a {kind}: it must be a pair (user name, password), a function that"
            " returns one, 'env:NAME' or 'file:PATH'."
        )


def _is_pair(source: object) -> bool:
    return isinstance(source, tuple) and len(cast("tuple[object, ...]", source)) == 2  # noqa: PLR2004  # a pair


def resolve_source(source: CredentialSource, user_name: str | None = None) -> Credentials:
    """Return the credentials of a source, which is asked at each new connection, so that passwords can rotate.

    Args:
        source: A pair; a function that returns a pair; or the name of an environment variable or a file. These hold
            ``user:password``; with a user name, only the password.
        user_name: The user name of a variable or file that holds only a password.

    Raises:
        ConfigurationError: The environment variable is not set, or a value has no user name or no colon.
        ArgumentTypeError: The user name or the password of a pair is no text.
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
    if not colon:  # it is the password alone, and must not be shown as a user name
        raise ConfigurationError(
            f"The credentials of {source} have no colon: use user:password, or give the user name beside them."
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
        reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
    # Raised here, so that the exception with the content of the file is not in the chain.
    raise ResourceAllocationError(f"The file {name!r} of the credentials cannot be read: {reason}.")


def _call(source: Callable[[], tuple[str, str | None]]) -> tuple[str, str | None]:
    try:
        user, password = source()
    except JMSError:
        raise
    except Exception as error:  # noqa: BLE001  # raised below as an error of ours
        kind = type(error).__name__
    else:
        return user, password
    # Raised here, so that the function's exception, whose text may hold the password, is not in the chain.
    raise ResourceAllocationError(f"{_describe(source)}, which supplies the credentials, raised {kind}.")


def _describe(source: object) -> str:
    if isinstance(source, str | tuple):
        return source if isinstance(source, str) else "the pair"
    return f"the function {getattr(source, '__name__', type(source).__name__)}"


def decode_password(password: str | None) -> str | None:
    """Return a password, decoded if JMSJCA encoded it (``__:ENC:08:`` and base64, which hides it, but is no cipher).

    Raises:
        ConfigurationError: The encoding is invalid. The message does not contain the password.
    """
    if password is None or not password.startswith(_ENCODED):
        return password
    try:
        return base64.b64decode(password.removeprefix(_ENCODED), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        pass  # raised below: the exception holds the decoded bytes, and must not be in the chain
    raise ConfigurationError(f"A password begins with {_ENCODED}, but what follows is not base64.")


def is_url(user_name: str | None) -> bool:
    """Return True if a user name is a connection URL ("overloaded user name" in JMSJCA's manual)."""
    return user_name is not None and _URL.match(user_name) is not None


@dataclass(frozen=True, slots=True)
class Login:
    """The URL and the credentials of a connection.

    Attributes:
        url: The connection URL.
        user_name: The user name; None for the one in the URL, if any.
        password: The password of ``user_name``; not used without one.
        source: The source of the credentials, asked at each connection; None for the user name and the password.
    """

    url: str = field(repr=False)
    user_name: str | None = None
    password: str | None = field(default=None, repr=False)
    source: CredentialSource | None = field(default=None, repr=False)

    def fill_in(self, user_name: str | None, password: str | None) -> "Login":
        """Return the login of the next level of configuration, which has the credentials of this one if it has none.

        User name and password travel together: a password is never given to another user name, or to the broker of
        another level, and a password without a user name is not used (JMSJCA, credentials).

        Args:
            user_name: The user name of that level; None or empty for the credentials of this login.
            password: The password of that level; None for none.
        """
        return Login(self.url, user_name, password) if user_name else self

    def override(self, user_name: str | None, password: str | None) -> "Login":
        """Return the login with other credentials, or with the URL that the user name is.

        Such a URL may have ``username`` and ``password`` in its query. Without a user name there, the credentials of
        this login remain, and the given password is not used (JMSJCA, overloaded user name).

        Args:
            user_name: The user name, or a connection URL; None or empty for those of this login.
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
