"""The object stores for staged messages: their URLs, and the clients that the library obstore has for them."""

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, cast

from jmsjca.config.credentials import check_source, resolve_source
from jmsjca.errors import ConfigurationError, InvalidOptionError, ProviderNotInstalledError

__all__ = ["Bucket", "parse_bucket_url"]

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]+)((?:/[^?#]*)?)\Z")
_SCHEMES = {"s3": "s3", "s3a": "s3", "gs": "gs", "az": "az", "abfs": "abfs", "abfss": "abfss"}
_REFRESH = timedelta(minutes=5)  # after which credentials are read again, so that they can rotate
_RETRY = {"max_retries": 5, "retry_timeout": timedelta(seconds=60)}


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

    Each process connects by itself, so that no secret is among the options, in Spark's plans or in pickles.

    Attributes:
        url: The URL, as ``s3://bucket/prefix``.
        endpoint: The URL of the service; None for the one of the provider.
        region: The region; None for that of the environment.
        credentials: ``env:NAME`` or ``file:PATH``, which hold ``KEY:SECRET`` for S3, ``ACCOUNT:KEY`` for Azure, and the
            JSON of a service account for Google; None for those that the environment of each process provides.
    """

    url: str
    endpoint: str | None = None
    region: str | None = None
    credentials: str | None = field(default=None, repr=False)

    def check(self) -> None:
        """Raise an error for credentials that are no reference.

        Raises:
            InvalidOptionError: They are not ``env:NAME`` or ``file:PATH``. The message does not contain them.
        """
        try:
            check_source(self.credentials)
        except ConfigurationError:
            pass  # raised below
        else:
            return
        raise InvalidOptionError(
            "The option 'stagingCredentials' must be env:NAME or file:PATH. It does not take the secret itself."
        )

    def connect(self) -> Any:
        """Return the client of this process.

        Raises:
            ProviderNotInstalledError: The library obstore is missing.
            ConfigurationError: The environment variable of the credentials is not set, or has no colon.
            ResourceAllocationError: The file of the credentials cannot be read.
        """
        return _connect(self)


@lru_cache(16)
def _connect(bucket: Bucket) -> Any:
    try:
        from obstore.store import from_url  # noqa: PLC0415  # an extra
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
