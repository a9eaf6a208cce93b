"""The option ``stagingLocation``: a folder, or a bucket of an object store."""

import re
from pathlib import Path

from jmsjca.errors import InvalidOptionError
from jmsjca.spark.folder_store import FolderStore
from jmsjca.spark.object_store import Bucket, ObjectStore, parse_bucket_url
from jmsjca.spark.store import Store

__all__ = ["check_location", "open_location", "parse_location"]


def parse_location(text: str) -> str:
    """Return the absolute path of a path or of a ``file:`` URL in Spark's form, or the URL of a bucket.

    Called on the driver.

    Raises:
        InvalidOptionError: It is empty or the URL of something else, or has credentials.
    """
    if not text.strip():
        raise InvalidOptionError(
            "The option 'stagingLocation' is empty: name a folder, or a bucket, that driver and executors share."
        )
    path = re.sub("^file:(//(?=/))?(?=/(?!/))", "", text)
    scheme = re.match("[A-Za-z][A-Za-z0-9+.-]+:", path)
    if scheme is None:
        return str(Path(path).absolute())
    url = parse_bucket_url(text)
    if url is None:
        raise InvalidOptionError(
            "The option 'stagingLocation' must be a folder that driver and executors share, or a bucket (s3://, gs://,"
            f" az://, abfss://), not {scheme[0]}… Other stores cannot create a file in exactly one of several"
            " processes: mount them as a folder, with guarantee=at-least-once if its file system has no hard links, or"
            " use another one."
        )
    return url


def open_location(
    location: str, *, endpoint: str | None = None, region: str | None = None, credentials: str | None = None
) -> Store:
    """Return the store of a location that `parse_location` returned.

    Args:
        location: The location.
        endpoint: The URL of the service, of a bucket.
        region: The region of a bucket.
        credentials: The reference to the credentials for a bucket.

    Raises:
        InvalidOptionError: As `check_location`.
    """
    check_location(location, endpoint=endpoint, region=region, credentials=credentials)
    if "://" in location:
        return ObjectStore(Bucket(location, endpoint, region, credentials))
    return FolderStore(Path(location))


def check_location(location: str | None, *, endpoint: str | None, region: str | None, credentials: str | None) -> None:
    """Raise an error for settings of a bucket that cannot be, or do not fit a location.

    Args:
        location: The location; None without one.
        endpoint: The URL of the service, of a bucket.
        region: The region of a bucket.
        credentials: The reference to the credentials for a bucket.

    Raises:
        InvalidOptionError: A folder has settings of a bucket, the credentials are no reference, or the endpoint is no
            URL of a service, or has credentials. The message does not contain them.
    """
    _check_endpoint(endpoint)
    if location is None or "://" in location:
        Bucket(location or "", endpoint, region, credentials).check()
    elif endpoint or region or credentials:
        raise InvalidOptionError(
            "The options stagingEndpoint, stagingRegion and stagingCredentials are for buckets, and"
            f" stagingLocation is the folder {location}: leave them out."
        )


def _check_endpoint(endpoint: str | None) -> None:
    if endpoint and not re.fullmatch("https?://[^@?#/]+(/[^@?#]*)?", endpoint):
        raise InvalidOptionError(
            "The option 'stagingEndpoint' must be the URL of a service, as https://host:port, without user, password or"
            " query: use the option 'stagingCredentials'."
        )
