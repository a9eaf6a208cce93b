"""The object message: a pickled Python object, which is unpickled only on request."""

import copy
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple, Self

from jmsjca.errors import MessageFormatError
from jmsjca.messages.message import Message

__all__ = ["ObjectMessage", "PlainData", "plain_data_of"]


class PlainData(NamedTuple):
    """What an object message holds in place of a pickle: data of types that a protocol has itself."""

    value: Any


class ObjectMessage(Message):
    """A message whose body is a pickled object, as it was when it was given (JMS 3.1, section 3.11).

    Pickles can run any code when they are loaded, so this library never does it on its own: reading `body` raises
    `MessageFormatError`. `pickled` is what was sent, and a message can be sent on as it is. Who trusts the senders, and
    knows the classes, asks with `get_object`. Maps, streams or JSON texts carry data without that danger.

    Over AMQP an object may also be plain data, of the types of that protocol: see `from_data`. `body` gives it.
    """

    __slots__ = ()

    _body: bytes | PlainData | None

    @classmethod
    def from_pickled(cls, pickled: bytes | None) -> Self:
        """Make a message of a pickle, which is not looked at."""
        message = cls()
        message._body = pickled
        return message

    @classmethod
    def from_data(cls, data: Any) -> Self:
        """Make a message of plain data: texts, numbers, bytes, UUIDs, None, and lists and dictionaries of them.

        Java's JMS clients read it over AMQP ("AMQP typed encoding"). Where it goes over something else it is pickled.

        Raises:
            MessageFormatError: It cannot be copied, so it is no such data.
        """
        message = cls()
        message._body = PlainData(_copy_data(data))
        return message

    @property
    def body(self) -> Any:
        """None if there is no object, a copy of plain data; else it is refused. Setting it pickles the object now."""
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
        self._check_writeable()
        self._body = self._checked(value)

    @property
    def pickled(self) -> bytes | None:
        """The pickle as it was sent, or one of plain data; None if there is no object."""
        return self._checked(self._body.value) if isinstance(self._body, PlainData) else self._body

    def _plain_data(self) -> PlainData | None:
        """The data, where there is no need to unpickle; None for a pickle. For providers."""
        return self._body if isinstance(self._body, PlainData) else None

    def get_object(
        self,
        allowed: AbstractSet[tuple[str, str]],
        *,
        max_bytes: int = 1024 * 1024,
        max_depth: int = 100,
    ) -> Any:
        """Unpickle the object, if it needs no class but the allowed ones.

        Args:
            allowed: Pairs of a module and a qualified name, each exact, of every class and function that the pickle may
                name. What pickles need no name for (numbers, texts, bytes, lists, tuples, dictionaries, sets, None)
                comes along. The empty set allows nothing at all. Allow classes only whose construction with any
                arguments is harmless.
            max_bytes: The longest pickle that is looked at.
            max_depth: How deep containers may be nested.

        Returns:
            The object; None if there is none. Plain data needs no name.

        Raises:
            MessageFormatError: It names something else, is too long or too deep, or is no pickle.
        """
        from jmsjca.messages.safe_pickle import load  # noqa: PLC0415  # who asks for no object does not need it

        if self._body is None or isinstance(self._body, PlainData):
            return self.body
        return load(self._body, allowed, max_bytes, max_depth)

    def _decoded(self, body: Any) -> Any:
        return body

    def _content(self) -> object:
        return self.body

    def _checked(self, body: Any) -> Any:
        from jmsjca.messages.safe_pickle import dump  # noqa: PLC0415

        return None if body is None else dump(body)


# For providers; a method of this name would be offered to every user of a message.
plain_data_of = ObjectMessage._plain_data  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


def _copy_data(data: Any) -> Any:
    try:
        return copy.deepcopy(data)
    except Exception as error:  # whatever is no data may raise
        raise MessageFormatError(
            f"{type(data).__name__} cannot be copied, so it is no plain data ({type(error).__name__})."
        ) from error
