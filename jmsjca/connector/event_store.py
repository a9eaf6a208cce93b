"""Event stores: events that an application records in a table, a folder or another place, instead of messages."""

import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import IntEnum
from typing import Protocol, Self

from jmsjca.connector.business_objects import BusinessObject, Scalar
from jmsjca.connector.definitions import BusinessObjectDefinitions
from jmsjca.connector.meta_objects import information_pairs
from jmsjca.errors import ConfigurationError

__all__ = ["EventRecord", "EventStore", "RecordStatus", "key_of", "keys_only"]

_DELETE = "Delete"
_QUOTED_IF = re.compile(r"[;']|^\s|\s$")
_TYPED_KEYS: Mapping[str, Callable[[str], Scalar]] = {
    "integer": int,
    "float": float,
    "boolean": lambda text: text.lower() == "true",
}


class RecordStatus(IntEnum):
    """The status of an event record."""

    READY_FOR_POLL = 0
    SUCCESS = 1
    UNSUBSCRIBED = 2
    IN_PROGRESS = 3
    ERROR_PROCESSING_EVENT = -1
    ERROR_POSTING_EVENT = -2
    ERROR_OBJECT_NOT_FOUND = -3


@dataclass(frozen=True)
class EventRecord:
    """A record of an event.

    Attributes:
        event_id: The unique id.
        object_name: The type of the business object.
        object_verb: The verb.
        object_key: The keys of the business object, ``CustomerID=7``; several are separated by ``;``. A value with a
            ``;``, a quote or a blank at an end is quoted: ``Name='O''Brien'``.
        event_priority: 0 is the highest priority.
        event_time: The time of the event.
        event_status: The status.
        event_comment: The description of an error.
        connector_id: The connector that the event is for, if several share a store.
    """

    event_id: str
    object_name: str
    object_verb: str
    object_key: str = ""
    event_priority: int = 0
    event_time: datetime = field(default_factory=lambda: datetime.now(UTC))
    event_status: RecordStatus = RecordStatus.READY_FOR_POLL
    event_comment: str = ""
    connector_id: str = ""

    @classmethod
    def of(cls, changed: BusinessObject, definitions: BusinessObjectDefinitions, *, connector_id: str = "") -> Self:
        """Return the record of a change that was detected.

        A logical delete has the verb Delete like a physical one, although the application has updated a status.

        Args:
            changed: The business object after the change, with the verb of the application's action.
            definitions: Its definition names the keys, and the values of a logical delete.
            connector_id: The connector that the event is for.

        Raises:
            ConfigurationError: The type has no definition.
        """
        key, definition = key_of(changed, definitions), definitions[changed.type]
        verb = _DELETE if definition.is_inactive(changed) else changed.verb
        return cls(f"{uuid.uuid4()}", changed.type, verb, key, connector_id=connector_id)


class EventStore(Protocol):
    """A store of event records. One connector uses it at a time, or the part with its connector id."""

    def in_progress(self) -> int:
        """Return the number of records in progress."""
        ...

    def recover(self) -> int:
        """Change the records in progress back to READY_FOR_POLL, and return their number."""
        ...

    def claim(self, limit: int) -> Sequence[EventRecord]:
        """Change the next records to IN_PROGRESS and return them, by priority and time.

        Args:
            limit: The maximum number.
        """
        ...

    def business_object(self, record: EventRecord) -> BusinessObject | None:
        """Return the business object of a record; None if the application does not have it any more."""
        ...

    def finish(self, record: EventRecord, status: RecordStatus, comment: str = "") -> None:
        """Archive a record with its final status.

        Args:
            record: The record.
            status: The status.
            comment: The description of an error.
        """
        ...

    def resubmit(self, *statuses: RecordStatus) -> int:
        """Change archived records with these statuses back to READY_FOR_POLL, and return their number."""
        ...


def key_of(business_object: BusinessObject, definitions: BusinessObjectDefinitions) -> str:
    """Return the keys of a business object as text, as `EventRecord.object_key` has them.

    Raises:
        ConfigurationError: The type has no definition.
    """
    definition = definitions.get(business_object.type)
    if definition is None:
        raise ConfigurationError(f"Type {business_object.type!r} has no definition, so that its keys are unknown.")
    keys = [name for name, attribute in definition.attributes.items() if attribute.key]
    return ";".join(f"{name}={_key_text(business_object.attributes.get(name))}" for name in keys)


def keys_only(record: EventRecord, definitions: BusinessObjectDefinitions | None) -> BusinessObject:
    """Return the business object of a physical delete: nothing but its keys is left.

    Args:
        record: The record.
        definitions: The definitions, for the types of the keys; None leaves them as texts.
    """
    names = definitions[record.object_name].attributes if definitions and record.object_name in definitions else {}
    spelling = {name.lower(): name for name in names}
    keys = BusinessObject(record.object_name, record.object_verb)
    for key, text in information_pairs(record.object_key):
        name = spelling.get(key.lower(), key)
        typed = _TYPED_KEYS.get(names[name].type) if name in names else None
        keys.attributes[name] = _unquoted(text) if typed is None else typed(text)
    return keys


def _key_text(value: object) -> str:
    text = "" if value is None else str(value)
    if not _QUOTED_IF.search(text):
        return text
    doubled = text.replace("'", "''")
    return f"'{doubled}'"


def _unquoted(text: str) -> str:
    is_quoted = len(text) > 1 and text[0] == text[-1] == "'"
    return text[1:-1].replace("''", "'") if is_quoted else text
