r"""The data handler for name-value text: one line ``path=value`` for each scalar.

A path is written as for `BusinessObject.get`: ``Address[0].City=Ulm``. ``_type`` and ``_verb`` name the type and the
verb, also of a child (``Bank._type=Account``). A child without ``_type`` has the type of the definition; without
definitions, its type is the attribute's name. In a value, ``\n``, ``\r`` and ``\\`` represent a line feed, a carriage
return and a backslash. Empty lines are ignored.
"""

import re
from collections.abc import Iterator
from typing import TypeAlias

from jmsjca.connector.business_objects import Attribute, BusinessObject, Scalar
from jmsjca.connector.data_handlers.text_values import chosen_type, decoded, texts, typed
from jmsjca.connector.definitions import BusinessObjectDefinitions
from jmsjca.errors import DataHandlerError, excerpt

__all__ = ["NameValueDataHandler"]

_TYPE, _VERB = "_type", "_verb"
_STEP = re.compile(r"([^.\[\]=\r\n]+)(?:\[([0-9]{1,9})\])?")
_ESCAPES = {"\\": r"\\", "\n": r"\n", "\r": r"\r"}
_ESCAPED = {text: character for character, text in _ESCAPES.items()}
_Node: TypeAlias = "str | _Tree"
_Tree: TypeAlias = "dict[str | int, _Node]"


class NameValueDataHandler:
    """Conversion between name-value text and business objects."""

    def __init__(self, definitions: BusinessObjectDefinitions | None = None) -> None:
        """Set up the handler.

        Args:
            definitions: The definitions of the business objects; None reads each scalar as text.
        """
        self._definitions = definitions

    def to_business_object(self, content: str | bytes, *, type: str | None = None) -> BusinessObject:
        """Return the business object of a name-value text.

        Args:
            content: The lines, as text or as bytes in UTF-8.
            type: The type of the business object; None if the line ``_type`` names it.

        Raises:
            UnknownBusinessObjectError: ``type`` is None and there is no line ``_type``.
            DataHandlerError: A line is malformed or given twice, or the business object is invalid.
        """
        tree: _Tree = {}
        for number, line in enumerate(re.split(r"\r\n|\n|\r", decoded(content)), start=1):
            if line:
                _insert(tree, line, number)
        kind = chosen_type(_text(tree, _TYPE, "", ""), type, content)
        try:
            found = _object(tree, kind, "")
        except RecursionError as error:
            raise DataHandlerError(f"The paths of the body are too long: {excerpt(content)!r}.") from error
        return typed(found, self._definitions)

    def to_content(self, business_object: BusinessObject) -> str:
        """Return the name-value text of a business object.

        Raises:
            DataHandlerError: The business object is invalid, or the name of an attribute cannot be part of a line.
        """
        source = texts(business_object, self._definitions)
        lines = [f"{_TYPE}={_escaped(source.type)}", *_verb(source, ""), *_lines(source, "")]
        return "".join(f"{line}\n" for line in lines)


def _insert(tree: _Tree, line: str, number: int) -> None:
    path, separator, text = line.partition("=")
    steps = list(_steps(path))
    if not separator or not steps:
        raise DataHandlerError(
            f"Line {number} of the body is not path=value, as in Address[0].City=Ulm: {excerpt(line)!r}."
        )
    node: _Node = tree
    for step in steps[:-1]:
        node = node.setdefault(step, {}) if isinstance(node, dict) else node
    if isinstance(node, str) or steps[-1] in node:
        raise DataHandlerError(f"Line {number} sets attribute {excerpt(path)!r} again, to {excerpt(text)!r}.")
    node[steps[-1]] = _unescaped(text, path)


def _steps(path: str) -> Iterator[str | int]:
    """Yield the names and indexes of a path; nothing if one of its steps is malformed."""
    matches = [_STEP.fullmatch(step) for step in path.split(".")]
    for match in matches if all(matches) else []:
        if match:
            yield match[1]
            if match[2] is not None:
                yield int(match[2])


def _text(tree: _Tree, name: str, default: str, path: str) -> str:
    text = tree.get(name, default)
    if isinstance(text, str):
        return text
    raise DataHandlerError(f"Attribute {path}{name} is a text, and has the lines of a child or list: {excerpt(text)}.")


def _object(tree: _Tree, kind: str, path: str) -> BusinessObject:
    verb = _text(tree, _VERB, "", path)
    values = {name: _value(name, node, f"{path}{name}") for name, node in tree.items() if isinstance(name, str)}
    return BusinessObject(kind, verb, {name: value for name, value in values.items() if name not in {_TYPE, _VERB}})


def _value(name: str, node: _Node, path: str) -> Attribute:
    if isinstance(node, str):
        return node
    indexes = sorted(index for index in node if isinstance(index, int))
    if not indexes:
        return _single(name, node, path)
    if indexes != list(range(len(node))):
        raise DataHandlerError(
            f"The elements of attribute {path} are not [0] to [{len(node) - 1}], but {excerpt(list(node))}."
        )
    return [_single(name, node[index], f"{path}[{index}]") for index in indexes]


def _single(name: str, node: _Node, path: str) -> Scalar | BusinessObject:
    if isinstance(node, str):
        return node
    return _object(node, _text(node, _TYPE, name, f"{path}."), f"{path}.")


def _lines(source: BusinessObject, path: str) -> Iterator[str]:
    for name, value in source.attributes.items():
        match = _STEP.fullmatch(name)
        if match is None or name in {_TYPE, _VERB} or match[2] is not None:
            raise DataHandlerError(f"Attribute {path}{excerpt(name)} has a name that cannot be written; rename it.")
        if isinstance(value, list):
            for index, element in enumerate(value):
                yield from _element_lines(name, element, f"{path}{name}[{index}]")
        else:
            yield from _element_lines(name, value, f"{path}{name}")


def _element_lines(name: str, value: Scalar | BusinessObject, path: str) -> Iterator[str]:
    if not isinstance(value, BusinessObject):
        yield f"{path}={_escaped(str(value))}"
        return
    # A child without lines would not be there when the text is read.
    if value.type != name or not (value.attributes or value.verb):
        yield f"{path}.{_TYPE}={_escaped(value.type)}"
    yield from _verb(value, f"{path}.")
    yield from _lines(value, f"{path}.")


def _verb(source: BusinessObject, path: str) -> list[str]:
    return [f"{path}{_VERB}={_escaped(source.verb)}"] if source.verb else []


def _escaped(text: str) -> str:
    return re.sub(r"[\\\n\r]", lambda match: _ESCAPES[match[0]], text)


def _unescaped(text: str, path: str) -> str:
    def character(match: re.Match[str]) -> str:
        """Return the character of an escape."""
        if match[0] not in _ESCAPED:
            raise DataHandlerError(
                f"Attribute {excerpt(path)} has the escape {match[0]!r}; write \\\\ for a backslash."
            )
        return _ESCAPED[match[0]]

    return re.sub(r"\\(.?)", character, text)
