"""What is wrong with the fields of an activation spec, in words."""

from collections.abc import Collection, Iterator, Mapping

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from jmsjca.config.spec_properties import Mistake
from jmsjca.destinations import Destination
from jmsjca.messages.shown import shown

__all__ = ["conflicts", "explain"]

_SECRET = ("password", "connection_url", "options")
_FOLLOWING = "default_factory_not_called"  # another field is wrong, and told


def conflicts(fields: Mapping[str, object]) -> Iterator[str]:
    """Tell what contradicts a destination that says itself what it is."""
    destination = fields.get("destination")
    if isinstance(destination, Destination) and fields.get("destination_type", destination.kind) != destination.kind:
        kind = shown(fields["destination_type"])
        yield f"destination_type is {kind!r}, but the destination is {shown(destination)}"


def explain(error: ValidationError, known: Collection[str]) -> Iterator[str]:
    """Tell each thing that is wrong, with its field.

    Args:
        error: What was found.
        known: The names of the fields.
    """
    for detail in error.errors(include_url=False):
        if detail["type"] != _FOLLOWING:
            yield _explanation(detail, known)


def _explanation(detail: ErrorDetails, known: Collection[str]) -> str:
    given, field = detail["input"], str(detail["loc"][0]) if detail["loc"] else ""
    if isinstance(given, Mistake):
        return given.text
    if detail["type"] == "extra_forbidden":
        return f"{shown(field)}: there is no such field (there are {', '.join(known)})"
    text = detail["msg"].removeprefix("Value error, ").removesuffix(".")
    told = (
        "" if detail["type"] in ("missing", "value_error") or field in _SECRET else f" (given: {shown(given, 100)!r})"
    )
    return f"{field}: {text}{told}"
