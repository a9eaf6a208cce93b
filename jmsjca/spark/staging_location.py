"""The staging location: a folder or a bucket of an object store, and its repair by an administrator.

The repair of a staging location by an administrator, while no query uses it.

Only what has one right answer is repaired by itself. Everything else is reported, and stays until it is restored from a
backup, or until the administrator accepts the loss of an epoch.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from jmsjca.config.connection_url import CREDENTIALS
from jmsjca.errors import ConfigurationError, InvalidArgumentError, InvalidOptionError, JMSError, StoreError
from jmsjca.spark.epoch_plans import EpochPlans
from jmsjca.spark.folder_store import FolderStore
from jmsjca.spark.object_store import Bucket, ObjectStore, parse_bucket_url
from jmsjca.spark.staging import Staging, generations
from jmsjca.spark.store import EpochPartition, Store, StoreUnavailableError, epoch_folder, read_sealed, replace_sealed

__all__ = ["Finding", "check_location", "open_location", "parse_location", "repair"]


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
    """Raise an error if the settings of a bucket are invalid or do not fit the location.

    Args:
        location: The location; None if the option is not set.
        endpoint: The URL of the service of a bucket.
        region: The region of a bucket.
        credentials: The reference to the credentials for a bucket.

    Raises:
        InvalidOptionError: A folder has settings of a bucket; the credentials are not a reference; or the endpoint is
            not the URL of a service, or contains credentials. The message never contains credentials.
    """
    if endpoint and not re.fullmatch("https?://[^@?#/]+(/[^@?#]*)?", endpoint):
        raise InvalidOptionError(
            "The option 'stagingEndpoint' must be the URL of a service, as https://host:port, without user, password or"
            " query: use the option 'stagingCredentials'."
        )
    if location is None or "://" in location:
        try:
            CREDENTIALS("credentials", credentials)
        except ConfigurationError:
            raise InvalidOptionError(
                "The option 'stagingCredentials' must be env:NAME or file:PATH. It does not take the secret itself."
            ) from None
    elif endpoint or region or credentials:
        raise InvalidOptionError(
            "The options stagingEndpoint, stagingRegion and stagingCredentials are for buckets, and"
            f" stagingLocation is the folder {location}: leave them out."
        )


_EPOCH = re.compile(r"(\w+)/(\d+)")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was wrong in a staging location.

    Attributes:
        path: The address of the file or folder.
        problem: The damage.
        repaired: The repair; empty if it is not repaired.
    """

    path: str
    problem: str
    repaired: str = ""


def repair(location: Store, accepted: Sequence[str] = ()) -> list[Finding]:
    """Check all files of a staging location, and repair what can be repaired.

    Args:
        location: The store of the option ``stagingLocation`` of the queries. None of them may run.
        accepted: Epochs, as "GENERATION/EPOCH". The loss of their damaged and missing files is accepted: the messages
            in these files are lost, and the epochs have no further rows.

    Raises:
        InvalidArgumentError: An epoch has another form than "GENERATION/EPOCH".
        StoreError: There are no staged messages, and no loss is accepted. Or a file cannot be read, so that its state
            is not known; earlier repairs of this call remain.
    """
    epochs = [_parse_epoch(text) for text in accepted]
    try:
        return _repair(location, epochs)
    except OSError as error:
        raise StoreUnavailableError(
            f"{location} could not be checked to its end: {error}. Mend that, and repeat the command."
        ) from error


def _repair(location: Store, epochs: Sequence[tuple[str, int]]) -> list[Finding]:
    stagings = generations(location)
    if not stagings and not epochs:  # all may be lost, and its loss accepted
        raise StoreError(f"There are no staged messages in {location}: is it the stagingLocation of the queries?")
    found = [finding for staging in stagings for finding in _damages(staging)]
    for gen, epoch in epochs:
        staging = Staging(location, gen)
        found = [*_accept(staging, epoch), *(f for f in found if not _is_of(f, staging, epoch))]
    return found


def _parse_epoch(text: str) -> tuple[str, int]:
    match = _EPOCH.fullmatch(text)
    if match is None:
        raise InvalidArgumentError(f"An epoch is named GENERATION/EPOCH, as in the error message, not {text!r}.")
    return match[1], int(match[2])


def _is_of(finding: Finding, staging: Staging, epoch: int) -> bool:
    return finding.path.startswith(f"{staging.store.address(epoch_folder(epoch))}/")


def _damages(staging: Staging) -> Iterator[Finding]:
    store = staging.store
    yield from _reset(store, "OWNER", lambda: read_sealed(store, "OWNER"), "removed: the next task writes it")
    yield from _reset(store, "SOURCE", staging.origin, "removed: the next run of the query writes it")
    yield from _repair_low(staging)
    yield from _repair_plans(staging)
    aside = "moved aside: messages of earlier batches that the broker redelivers may become rows a second time"
    for name in sorted(store.names("doubt")):
        if name == "KEYS" or name.endswith(".ids"):
            yield from _reset(store, f"doubt/{name}", staging.keys_in_doubt_parked, aside, keep=True)
    for part, ending, problem in _damaged(staging):
        yield Finding(store.address(part.file(ending)), problem)
    for folder in ["", *map(epoch_folder, staging.epochs()), "doubt"]:
        if number := store.sweep(folder):
            yield Finding(store.address(folder), f"{number} temporary files of crashed processes", "removed")


def _reset(
    store: Store, name: str, read: Callable[[], object], repaired: str, *, keep: bool = False
) -> Iterator[Finding]:
    """Remove a file, or move it aside, if it is damaged."""
    if store.version(name) is None:  # reading may create it
        return
    problem = _problem(read)
    if problem and store.address(name) in problem:
        if keep:
            store.set_aside(name)
        else:
            store.delete(name)
        yield Finding(store.address(name), problem, repaired)


def _problem(read: Callable[[], object]) -> str:
    """Return the damage of a file; empty if it is whole, or gone.

    Raises:
        OSError: It cannot be read now. Nothing is known about it.
        StoreUnavailableError: The same.
    """
    try:
        read()
    except FileNotFoundError:
        return ""
    except (OSError, StoreUnavailableError):
        raise
    except StoreError as error:
        return str(error).partition(". ")[0]
    except JMSError:
        raise
    except Exception as error:  # noqa: BLE001  # a library may fail in its own way on a file without checksums
        return f"it cannot be read: {type(error).__name__}: {error}"
    return ""


def _repair_low(staging: Staging) -> Iterator[Finding]:
    problem = _problem(lambda: staging.low)
    if problem:
        # Too low is safe: the folders of the committed epochs are gone, and no attempt at them finds one.
        low = min(staging.epochs(), default=1) - 1
        replace_sealed(staging.store, "LOW", str(low))
        yield Finding(staging.store.address("LOW"), problem, f"set to {low}, before the first epoch that is staged")


def _repair_plans(staging: Staging) -> Iterator[Finding]:
    plans = EpochPlans(staging)
    for epoch in plans.numbers():
        problem = _problem(lambda epoch=epoch: plans.find(epoch))  # type: ignore[misc]
        address = staging.store.address(plans.name(epoch))
        if address in problem:
            yield Finding(address, problem, plans.repair(epoch))


def _damaged(staging: Staging, epoch: int | None = None) -> Iterator[tuple[EpochPartition, str, str]]:
    """Yield the damaged files of partitions: the partition, the ending of the file's name, and the damage."""
    for part in staging.published(epoch):
        for ending, read in (("arrow", staging.content), ("ok", staging.decision)):
            problem = _problem(lambda part=part, read=read: read(part))  # type: ignore[misc]
            if problem:
                yield part, ending, problem


def _accept(staging: Staging, epoch: int) -> Iterator[Finding]:
    """Move the damaged files of an epoch aside, and end the epoch without its missing ones."""
    store = staging.store
    for part, ending, problem in _damaged(staging, epoch):
        store.set_aside(part.file(ending))
        yield Finding(store.address(part.file(ending)), problem, "moved aside: its loss was accepted")
    staging.accept_loss(epoch)
    folder = store.address(epoch_folder(epoch))
    yield Finding(folder, "files of the epoch are missing", "their loss was accepted: the epoch has no further rows")
