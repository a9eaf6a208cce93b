"""What the files of the source tell about the messages that it has received."""

from pathlib import Path

from jmsjca.spark.staging import Part, Staging

__all__ = ["count_recognised", "count_unconfirmed"]


def count_unconfirmed(location: Path) -> int:
    """Count the messages that are staged, and whose settlement the broker has not confirmed.

    Args:
        location: The staging location.

    Returns:
        Their number; 0 also if files are being removed at this moment.
    """
    try:
        return sum(staging.received(part) for staging, part in _parts(location) if not staging.is_confirmed(part))
    except FileNotFoundError:
        return 0


def count_recognised(location: Path) -> int:
    """Count the messages in the newest epoch that came again, were recognised and dropped."""
    parts = _parts(location)
    newest = max((part.epoch for _, part in parts), default=0)
    return sum(staging.received(part) - staging.rows(part).num_rows for staging, part in parts if part.epoch == newest)


def _parts(location: Path) -> list[tuple[Staging, Part]]:
    stagings = [Staging(location, folder.name) for folder in location.glob("v1/*")]
    return [(staging, part) for staging in stagings for part in staging.parts()]
