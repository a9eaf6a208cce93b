"""The repair of a staging location by an administrator, while no query uses it.

Only what has one right answer is repaired by itself. Everything else is reported, and stays until it is restored from a
backup, or until the administrator accepts the loss of an epoch.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from jmsjca.errors import InvalidArgumentError, StoreError
from jmsjca.spark.durable_files import replace_sealed, sweep
from jmsjca.spark.epoch_plans import EpochPlans
from jmsjca.spark.staging import Staging, generations

__all__ = ["Finding", "repair"]

_EPOCH = re.compile(r"(\w+)/(\d+)")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was wrong in a staging location.

    Attributes:
        path: The file or folder.
        problem: The damage.
        repaired: The repair; empty if it is not repaired.
    """

    path: Path
    problem: str
    repaired: str = ""


def repair(location: Path, accepted: Sequence[str] = ()) -> list[Finding]:
    """Check all files of a staging location, and repair what can be repaired.

    Args:
        location: The option ``stagingLocation`` of the queries. None of them may run.
        accepted: The epochs whose damaged and missing files are given up, as "GENERATION/EPOCH": messages that were in
            them are lost, and the epochs have no further rows.

    Raises:
        InvalidArgumentError: An epoch is not named like this.
        StoreError: The location does not exist.
    """
    if not location.is_dir():
        raise StoreError(f"There is no folder {location}.")
    epochs = [_parse_epoch(text) for text in accepted]
    found = [finding for staging in generations(location) for finding in _check(staging)]
    for gen, epoch in epochs:
        found = [*_accept(Staging(location, gen), epoch), *(f for f in found if not _is_of(f, gen, epoch))]
    return found


def _parse_epoch(text: str) -> tuple[str, int]:
    match = _EPOCH.fullmatch(text)
    if match is None:
        raise InvalidArgumentError(f"An epoch is named GENERATION/EPOCH, as in the error message, not {text!r}.")
    return match[1], int(match[2])


def _is_of(finding: Finding, gen: str, epoch: int) -> bool:
    folder = finding.path.parent
    return (folder.parent.name, folder.name) == (gen, f"e-{epoch:010d}")


def _check(staging: Staging) -> Iterator[Finding]:
    folder = staging.folder
    yield from _reset(folder / "OWNER", lambda: staging.claim(""), "removed: the next task writes it")
    yield from _reset(folder / "SOURCE", staging.origin, "removed: the next run of the query writes it")
    yield from _repair_low(staging)
    yield from _repair_plans(staging)
    aside = "moved aside: messages of earlier batches that the broker redelivers may become rows a second time"
    for path in [*sorted(folder.glob("doubt/*.ids")), folder / "doubt" / "KEYS"]:
        yield from _reset(path, staging.keys_in_doubt_parked, aside, keep=True)
    yield from _damaged_parts(staging)
    for used in [folder, *folder.glob("e-*"), folder / "doubt"]:
        if number := sweep(used):
            yield Finding(used, f"{number} temporary files of crashed processes", "removed")


def _reset(path: Path, read: Callable[[], object], repaired: str, *, keep: bool = False) -> Iterator[Finding]:
    """Remove a file, or move it aside, if it is damaged."""
    if not path.exists():
        return
    problem = _problem(read)
    if problem and str(path) in problem:
        if keep:
            path.rename(path.with_name(f"{path.name}.damaged"))
        else:
            path.unlink()
        yield Finding(path, problem, repaired)


def _problem(read: Callable[[], object]) -> str:
    try:
        read()
    except StoreError as error:
        return str(error).partition(". ")[0]
    except Exception:  # noqa: BLE001  # another query is the owner, for instance: the file is whole
        return ""
    return ""


def _repair_low(staging: Staging) -> Iterator[Finding]:
    problem = _problem(lambda: staging.low)
    if problem:
        # Too low is safe: the folders of the committed epochs are gone, and no attempt at them finds one.
        epochs = [int(folder.name.removeprefix("e-")) for folder in staging.folder.glob("e-*")]
        low = min(epochs, default=1) - 1
        replace_sealed(staging.folder / "LOW", str(low))
        yield Finding(staging.folder / "LOW", problem, f"set to {low}, before the first epoch that is staged")


def _repair_plans(staging: Staging) -> Iterator[Finding]:
    plans = EpochPlans(staging)
    for epoch in plans.numbers():
        problem = _problem(lambda epoch=epoch: plans.find(epoch))  # type: ignore[misc]
        if str(plans.path(epoch)) in problem:
            yield Finding(plans.path(epoch), problem, plans.repair(epoch))


def _damaged_parts(staging: Staging) -> Iterator[Finding]:
    for part in staging.parts():
        for ending, read in (("arrow", staging.content), ("ok", staging.decision)):
            problem = _problem(lambda part=part, read=read: read(part))  # type: ignore[misc]
            if problem:
                yield Finding(staging.folder / f"e-{part.epoch:010d}" / f"{part.name}.{ending}", problem)


def _accept(staging: Staging, epoch: int) -> Iterator[Finding]:
    """Move the damaged files of an epoch aside, and end the epoch without its missing ones."""
    for finding in _damaged_parts(staging):
        if _is_of(finding, staging.folder.name, epoch):
            finding.path.rename(finding.path.with_name(f"{finding.path.name}.damaged"))
            yield Finding(finding.path, finding.problem, "moved aside: its loss was accepted")
    staging.accept_loss(epoch)
    folder = staging.folder / f"e-{epoch:010d}"
    yield Finding(folder, "files of the epoch are missing", "their loss was accepted: the epoch has no further rows")
