"""The object message: a pickled Python object, which is unpickled only on request."""

import copy
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple, Self, TypeVar

from jmsjca.errors import MessageFormatError
from jmsjca.messages.message import Message

__all__ = ["ObjectMessage", "PlainData", "body_of", "plain_data_of"]

T = TypeVar("T")


class PlainData(NamedTuple):
    """The body of an object message that is not a pickle: data of types that the protocol has natively."""

    value: Any


class ObjectMessage(Message):
    """A message with a pickled object as body; the object is pickled when the body is set (JMS 3.1, section 3.11).

    Loading a pickle can run any code, so this library never does that by itself: reading `body` raises
    `MessageFormatError`. `pickled` is the pickle as it was sent, and a message can be forwarded without loading it. An
    application that trusts the senders and knows the classes calls `get_object`. Map messages, stream messages and JSON
    texts carry data without that risk.

    Over AMQP the object may also be plain data of that protocol's types, which `body` returns: see `from_data`.
    """

    __slots__ = ()

    _body: bytes | PlainData | None

    @classmethod
    def from_pickled(cls, pickled: bytes | None) -> Self:
        """Return a message with a pickle as its body. The pickle is not checked."""
        message = cls()
        message._body = pickled
        return message

    @classmethod
    def from_data(cls, data: Any) -> Self:
        """Return a message with plain data: strings, numbers, bytes, UUIDs, None, and lists and dictionaries of them.

        Java's JMS clients can read it over AMQP ("AMQP typed encoding"). Over other protocols the data is pickled.

        Raises:
            MessageFormatError: The data cannot be copied, so it has other types.
        """
        message = cls()
        message._body = PlainData(_copy_data(data))
        return message

    @property
    def body(self) -> Any:
        """A copy of plain data; None without an object. A pickle is refused. Setting it pickles the object at once."""
        if self._body is None:
            return None
        if isinstance(self._body, PlainData):
            return _copy_data(self._body.value)
        raise MessageFormatError(
            "The object of an ObjectMessage is not unpickled by itself, for a pickle can run any code. Name the classes"
            ' that it may hold: get_object(allowed={("decimal", "Decimal")}); or take the bytes: pickled.'
        )

    @body.setter
    def body(self, value: Any) -> None:
        """Set the body."""
        self._set_body(value)

    @property
    def pickled(self) -> bytes | None:
        """The pickle as it was sent, or the pickled plain data; None if there is no object."""
        return self._stored(self._body.value) if isinstance(self._body, PlainData) else self._body

    def _plain_data(self) -> PlainData | None:
        """Return the plain data; None if the body is a pickle."""
        return self._body if isinstance(self._body, PlainData) else None

    def get_object(
        self,
        allowed: AbstractSet[tuple[str, str]],
        *,
        max_bytes: int = 1024 * 1024,
        max_depth: int = 100,
    ) -> Any:
        """Return the unpickled object, if the pickle names only allowed classes.

        Args:
            allowed: Pairs (module, qualified name) of every class and function that the pickle may name. Values that
                need no name in a pickle (numbers, strings, bytes, lists, tuples, dictionaries, sets, None) are always
                allowed, except that the empty set allows nothing at all. Allow only classes that can be constructed
                safely with any arguments.
            max_bytes: The maximum size of the pickle.
            max_depth: The maximum nesting depth of containers.

        Returns:
            The object; None if there is no object. Plain data needs no allowed name.

        Raises:
            MessageFormatError: The pickle names something else, is too large or too deep, or is not a pickle.
        """
        from jmsjca.messages.safe_pickle import load  # needed only to unpickle

        if self._body is None or isinstance(self._body, PlainData):
            return self.body
        return load(self._body, allowed, max_bytes, max_depth)

    def _decoded(self, body: Any) -> Any:
        return body

    def _content(self) -> object:
        return self.body

    def _stored(self, body: Any) -> Any:
        from jmsjca.messages.safe_pickle import dump

        return None if body is None else dump(body)


# For providers; a method of this name would be offered to every user of a message.
plain_data_of = ObjectMessage._plain_data  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


def body_of(message: Message, kind: type[T], allowed: AbstractSet[tuple[str, str]] | None) -> T:
    """Return the body of a message, which must have one of this type.

    Args:
        message: The message.
        kind: The type.
        allowed: To unpickle an object: the classes and functions that it may name; None to refuse a pickle.

    Raises:
        MessageFormatError: The body has another type, is missing, or names something that is not allowed.
    """
    if allowed is None or not isinstance(message, ObjectMessage):
        body: object = message.get_body(kind)
    else:
        body = message.get_object(allowed)
    if body is None or not isinstance(body, kind):
        raise MessageFormatError(
            f"The body of this {type(message).__name__} is not a {kind.__name__}: it is a {type(body).__name__}."
        )
    return body


def _copy_data(data: Any) -> Any:
    try:
        return copy.deepcopy(data)
    except Exception as error:  # the classes of other objects may raise anything
        raise MessageFormatError(
            f"{type(data).__name__} cannot be copied, so it is no plain data ({type(error).__name__})."
        ) from error
