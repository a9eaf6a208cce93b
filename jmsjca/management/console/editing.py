"""The form that edits a message: the text that it offers, and the edit that it orders."""

from collections.abc import Sequence

from jmsjca.errors import InvalidArgumentError
from jmsjca.management.console.access import Form
from jmsjca.management.insight import Edit
from jmsjca.management.message_changes import parse_property
from jmsjca.messages.bytes_message import BytesMessage
from jmsjca.messages.message import Message, TextMessage

__all__ = ["EDIT_FIELDS", "edit_of", "editable_text"]

EDIT_FIELDS = ("body", "properties", "removed")
_MAX_TEXT = 16 * 1024  # bytes; percent-encoded, three times as many in a form of 64 KiB


def editable_text(message: Message) -> str | None:
    """Return the body as a text for a form; None if it is no text, too long, or has characters that forms lose."""
    if isinstance(message, TextMessage):
        text = message.body or ""
    elif isinstance(message, BytesMessage):
        try:
            text = (message.get_body(bytes) or b"")[: _MAX_TEXT + 1].decode()
        except UnicodeDecodeError:
            return None
    else:
        return None
    # The number of characters comes first: a large body is not copied.
    is_short = len(text) <= _MAX_TEXT and len(text.encode("utf-8", "surrogatepass")) <= _MAX_TEXT
    return text if is_short and all(char.isprintable() or char in "\n\t" for char in text) else None


def edit_of(form: Form, message: Message) -> Edit:
    """Return the edit that a form orders.

    Args:
        form: The form: the body, properties to set as lines ``NAME=VALUE``, and names of properties to remove.
        message: The message as it is.

    Raises:
        InvalidArgumentError: The form changes nothing, a property is not ``NAME=VALUE``, or the message has no property
            of a name to remove.
    """
    body, old = _text(form, "body"), editable_text(message)
    changed = None if old is None or body == old else body
    properties = dict(map(parse_property, _lines(form, "properties")))
    removed = _lines(form, "removed")
    if changed is None and not properties and not removed:
        raise InvalidArgumentError("There is nothing to edit: change the body, or name properties.")
    edit = Edit(changed, properties, removed)
    edit.check(message)
    return edit


def _text(form: Form, name: str) -> str:
    """Return a field, whose line ends browsers send as CR LF."""
    return (form.get(name) or [""])[-1].replace("\r\n", "\n")


def _lines(form: Form, name: str) -> Sequence[str]:
    return [line.strip() for line in _text(form, name).split("\n") if line.strip()]
