"""Staged messages in an object store with conditional creation: S3, Google Cloud Storage, Azure.

An object is there whole or not at all, so there are no temporary files. A folder is an object, its marker: a folder
exists as long as its marker does, and all other objects in it are invisible without it. So a folder is removed at once,
although its objects are deleted one by one, and an object that a late attempt creates in it afterwards is never read.

The listings and reads of the store must show each object that was created before. All three services do that.
"""

import io
import re
import uuid
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, BinaryIO, cast

from jmsjca.config.connection_url import resolve_source
from jmsjca.errors import InvalidOptionError, JMSError, ProviderNotInstalledError, StoreError
from jmsjca.spark.store import StoreUnavailableError

__all__ = ["Bucket", "ObjectStore", "parse_bucket_url"]

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]+)((?:/[^?#]*)?)\Z")
_SCHEMES = {"s3": "s3", "s3a": "s3", "gs": "gs", "az": "az", "abfs": "abfs", "abfss": "abfss"}
_REFRESH = timedelta(minutes=5)  # after which credentials are read again, so that they can rotate
_RETRY = {"max_retries": 5, "retry_timeout": timedelta(seconds=60)}
_NO_CONDITIONS = (
    "it does not refuse to create an object that exists (the header If-None-Match, conditional writes), by which one of"
    " several attempts at a partition is the first. Use a store that has conditional writes, or a shared folder, or set"
    " guarantee=at-least-once."
)
_MARKER = "FOLDER"
_CHUNK = 1 << 16
_ATTEMPTS = 5  # to create an object that others create and delete at the same time
_SHOWN = 400  # characters of an error of the store


def parse_bucket_url(text: str) -> str | None:
    """Return the URL of a bucket and a prefix in it, in one form; None for the URL of something else.

    Raises:
        InvalidOptionError: The URL has credentials or a query. The message does not contain it.
    """
    match = _URL.match(text)
    scheme = _SCHEMES.get((match[1] if match else text.partition(":")[0]).lower())
    if scheme is None:
        return None
    if match is None or ":" in match[2] or ("@" in match[2] and not scheme.startswith("abfs")):
        raise InvalidOptionError(
            f"The option 'stagingLocation' must be {scheme}://BUCKET/PREFIX, without user, password or query: use the"
            " option 'stagingCredentials'."
        )
    return f"{scheme}://{match[2]}{match[3].rstrip('/')}"


@dataclass(frozen=True, slots=True)
class Bucket:
    """A bucket and a prefix in it.

    Each process reads the credentials itself, so that options, Spark's plans and pickles contain no secret.

    Attributes:
        url: The URL, as ``s3://bucket/prefix``.
        endpoint: The URL of the service; None for the provider's own URL.
        region: The region; None for the region that the environment sets.
        credentials: ``env:NAME`` or ``file:PATH``, which hold ``KEY:SECRET`` for S3, ``ACCOUNT:KEY`` for Azure, and the
            JSON of a service account for Google; None for the credentials in the environment of each process.
    """

    url: str
    endpoint: str | None = None
    region: str | None = None
    credentials: str | None = field(default=None, repr=False)

    def connect(self) -> Any:
        """Return the client of this process.

        Raises:
            ProviderNotInstalledError: The library obstore is missing.
            ConfigurationError: The environment variable of the credentials is not set, or has no colon.
            ResourceAllocationError: The file of the credentials cannot be read.
        """
        return _connect(self)


@dataclass(frozen=True, slots=True)
class ObjectStore:
    """A store that is a bucket and a prefix in it; see `Store` for the methods.

    Args:
        bucket: The bucket.
        prefix: The prefix of all names, with ``/`` at its end; empty for the whole bucket.
        exclusive: True if several processes may create one object, and one succeeds; False after `relaxed`.
    """

    bucket: Bucket
    prefix: str = ""
    exclusive: bool = True

    def __str__(self) -> str:
        return self.address("")

    def relaxed(self) -> "ObjectStore":
        """Return the same store with a `create` that needs no conditional creation."""
        return replace(self, exclusive=False)

    def within(self, folder: str) -> "ObjectStore":
        """Return the store of a folder."""
        return replace(self, prefix=f"{self.prefix}{folder}/")

    def address(self, name: str) -> str:
        """Return the URL of an object or folder."""
        return f"{self.bucket.url}/{self.prefix}{name}".rstrip("/")

    def create(self, name: str, write: Callable[[BinaryIO], object]) -> bool:
        """Create an object. Return False if it exists already."""
        content = io.BytesIO()
        write(content)
        if not self.exclusive:
            return self.version(name) is None and self._put(name, content.getbuffer(), mode="overwrite")
        for _ in range(_ATTEMPTS):
            if self._put(name, content.getbuffer(), mode="create"):
                return True
            # A store may also refuse a creation because of another one, or a deletion, at the same time.
            if self.version(name) is not None:
                return False
        raise StoreUnavailableError(f"{self.address(name)} could not be created: the store reports conflicts.")

    def create_like(self, name: str, data: bytes, common: str) -> bool:
        """Create an object. Return False if it exists already."""
        del common
        return self.create(name, lambda file: file.write(data))

    def flush(self, folder: str) -> None:
        """Do nothing: an object is durable when it is created."""

    def replace(self, name: str, data: bytes) -> None:
        """Create or replace an object."""
        self._put(name, data, mode="overwrite")

    def mark(self, name: str) -> None:
        """Create an empty object."""
        self.replace(name, b"")

    def open(self, name: str) -> BinaryIO:
        """Open an object for reading. Its content is transferred as it is read."""
        with self._failures(name):
            chunks = iter(_obstore().get(self._client, self.prefix + name).stream(min_chunk_size=_CHUNK))
        return cast("BinaryIO", io.BufferedReader(_Download(chunks, lambda: self._failures(name)), _CHUNK))

    def version(self, name: str) -> str | None:
        """Return the entity tag; None if there is no such object."""
        try:
            with self._failures(name):
                state = _obstore().head(self._client, self.prefix + name)
        except FileNotFoundError:
            return None
        return f"{state['e_tag']} {state['last_modified']}"

    def delete(self, name: str) -> None:
        """Delete an object, if it exists."""
        self._delete([name])

    def set_aside(self, name: str) -> None:
        """Rename a damaged object."""
        with self._failures(name):
            _obstore().rename(self._client, self.prefix + name, f"{self.prefix}{name}.damaged")

    def add_folder(self, name: str = "") -> bool:
        """Create the marker of a folder, and the marker of the store's root. Return False if the folder exists."""
        if name:
            self.add_folder()
        return not self.has_folder(name) and self.create(_marker(name), lambda _: None)

    def has_folder(self, name: str = "") -> bool:
        """Return True if a folder has its marker."""
        return self.version(_marker(name)) is not None

    def remove_folder(self, name: str) -> None:
        """Delete the marker of a folder; `sweep_folders` deletes the rest."""
        self.delete(_marker(name))

    def names(self, folder: str = "") -> set[str]:
        """Return the names in a folder; none if there is no folder."""
        found = self._list(f"{folder}/" if folder else "")
        return {name for name in found - {_MARKER} if "/" not in name} if _MARKER in found else set()

    def folders(self, beginning: str = "") -> dict[str, set[str]]:
        """Return the folders with names that start with a prefix, and the files of each. One listing returns all."""
        found = self._grouped(beginning)
        return {folder: names - {_MARKER} for folder, names in sorted(found.items()) if _MARKER in names}

    def sweep(self, folder: str = "", name: str = "") -> int:
        """Do nothing: no object is incomplete."""
        del folder, name
        return 0

    def sweep_folders(self, beginning: str, last: str) -> None:
        """Delete the objects in folders without marker."""
        for folder, names in self._grouped(beginning).items():
            if len(folder) == len(last) and folder <= last and _MARKER not in names:
                self._delete([f"{folder}/{name}" for name in names])

    def look(self) -> None:
        """Raise an error if the service cannot be reached, or refuses the credentials."""
        self.has_folder()

    def probe(self) -> None:
        """Raise an error for a store in which reading is impossible.

        Raises:
            StoreError: The bucket cannot be used, or does not list an object that was just created. Or the store is
                exclusive, and a second creation of an object is not refused.
        """
        name = f"probe-{uuid.uuid4().hex}"
        mode = "create" if self.exclusive else "overwrite"
        try:
            created = self._put(name, b"probe", mode=mode)
            if not created or (self.exclusive and self._put(name, b"probe", mode="create")):
                raise StoreError(f"{self} cannot hold staged messages: {_NO_CONDITIONS}")
            if name not in self._list(""):
                raise StoreError(f"{self} cannot hold staged messages: it does not list an object that was created.")
        except FileNotFoundError as error:
            raise StoreError(f"{self} cannot hold staged messages: the bucket does not exist ({error}).") from None
        finally:
            self.delete(name)

    @property
    def _client(self) -> Any:
        return self.bucket.connect()

    def _put(self, name: str, data: bytes | memoryview, *, mode: str) -> bool:
        """Write an object in one request. Return False if the mode is "create" and it exists or is contended."""
        obstore = _obstore()
        with self._failures(name):
            try:
                obstore.put(self._client, self.prefix + name, data, mode=mode, use_multipart=False)
            except obstore.exceptions.AlreadyExistsError:
                return False
        return True

    def _delete(self, names: list[str]) -> None:
        with self._failures(*names[:1]):
            for name in names:
                with suppress(FileNotFoundError):
                    _obstore().delete(self._client, self.prefix + name)

    def _list(self, folder: str) -> set[str]:
        """Return the names of all objects below a folder, without the marker of the folder."""
        start = self.prefix + folder
        with self._failures(folder):
            chunks = _obstore().list(self._client, start.rstrip("/") or None)
            return {str(each["path"]).removeprefix(start) for chunk in chunks for each in chunk}

    def _grouped(self, beginning: str) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for path in self._list(""):
            folder, _, name = path.partition("/")
            if name and "/" not in name and folder.startswith(beginning):
                found.setdefault(folder, set()).add(name)
        return found

    @contextmanager
    def _failures(self, name: str = "") -> Generator[None]:
        """Turn errors of the client into ours, which have its first words, and not the settings of the client."""
        try:
            yield
        except FileNotFoundError as error:
            told: Exception = FileNotFoundError(f"{self.address(name)}: {_first_words(error)}")
        except JMSError:
            raise
        except Exception as error:  # noqa: BLE001  # each library below has errors of its own
            told = StoreUnavailableError(f"{self.address(name)} cannot be used now: {_first_words(error)}")
        else:
            return
        raise told


class _Download(io.RawIOBase):
    """The content of an object, as it comes."""

    def __init__(self, chunks: Iterator[Any], failures: Callable[[], Any]) -> None:
        self._chunks = chunks
        self._failures = failures
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read what has come into a buffer, and return its size; 0 at the end."""
        while not self._rest:
            with self._failures():
                chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._rest = memoryview(chunk)
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size


def _marker(folder: str) -> str:
    return f"{folder}/{_MARKER}" if folder else _MARKER


def _first_words(error: Exception) -> str:
    words = " ".join(str(error).partition("\n\nDebug source")[0].split())
    return words if len(words) <= _SHOWN else f"{words[:_SHOWN]} …"


def _obstore() -> Any:
    import obstore  # an extra

    return obstore


@lru_cache(16)
def _connect(bucket: Bucket) -> Any:
    try:
        from obstore.store import from_url  # an extra
    except ImportError as error:
        raise ProviderNotInstalledError(
            f"Staging in {bucket.url} needs the library obstore on the driver and on every executor: pip install"
            ' "jmsjca[objectstore]"'
        ) from error
    if bucket.url.partition(":")[0] in {"file", "memory"}:
        return from_url(bucket.url)
    options: dict[str, Any] = {"client_options": {"allow_http": str(bucket.endpoint).startswith("http://")}}
    settings = {"endpoint": bucket.endpoint, "region": bucket.region} | _login(bucket, options)
    config = cast("Any", {name: value for name, value in settings.items() if value is not None})
    return from_url(bucket.url, config=config, retry_config=cast("Any", _RETRY), **options)


def _login(bucket: Bucket, options: dict[str, Any]) -> dict[str, str | None]:
    """Return the settings for credentials, or add their provider to the options."""
    if bucket.credentials is None:
        return {}
    kind = bucket.url.partition(":")[0]
    if kind == "s3":
        source = bucket.credentials
        _s3_credentials(source)  # an error here is clearer than one in a thread of the client
        options["credential_provider"] = lambda: _s3_credentials(source)
        return {}
    if kind == "gs":
        return {"service_account_key": resolve_source(bucket.credentials, "service account").password}
    login = resolve_source(bucket.credentials)
    return {"account_name": login.user_name, "account_key": login.password}


def _s3_credentials(source: str) -> dict[str, Any]:
    login = resolve_source(source)
    secret, _, token = (login.password or "").partition(":")
    return {
        "access_key_id": login.user_name,
        "secret_access_key": secret,
        "token": token or None,
        "expires_at": datetime.now(UTC) + _REFRESH,
    }
