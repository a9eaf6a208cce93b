"""Deployment descriptors as XML, read without entities, external files or namespaces. Unread elements are known."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, ParseError
from xml.parsers.expat import ErrorString

from jmsjca.errors import ConfigurationError, excerpt

__all__ = ["Descriptor", "children"]

_NAMES = ("ejb-name", "connectionfactory-interface", "adminobject-interface")  # each names its parent


class Descriptor:
    """A deployment descriptor. It records which elements are read, so that the others can be reported.

    Attributes:
        name: Name of the file.
        root: Root element. All names are without namespaces.
        namespace: Namespace of the root element; empty if it has none.

    Args:
        path: The file.

    Raises:
        ConfigurationError: defusedxml is not installed; or the file cannot be read, is not XML, declares entities, or
            has an internal DTD.
    """

    def __init__(self, path: Path) -> None:
        self.name = path.name
        self.root, self.namespace = _parse(path)
        self._read: set[Element] = set()

    def text(self, element: Element | None, path: str) -> str:
        """Read the text at a path, stripped; empty if there is no such element."""
        found = None if element is None else element.find(path)
        if found is None:
            return ""
        self._read.add(found)
        return (found.text or "").strip()

    def properties(self, element: Element | None, prefix: str) -> Iterator[tuple[str, str]]:
        """Yield name and value of an element's properties.

        Args:
            element: Parent of the properties.
            prefix: Element name of the properties, for example "config-property".
        """
        for each in children(element, prefix):
            self.text(each, f"{prefix}-type")  # marks it as read: the Java type of the field is not needed
            yield self.text(each, f"{prefix}-name"), self.text(each, f"{prefix}-value")

    def done(self, element: Element) -> None:
        """Mark an element and everything in it as read."""
        self._read.update(element.iter())

    def unread(self) -> Iterator[tuple[str, str]]:
        """Yield the outermost unread elements: the named element around each one, and its own name."""
        for child in self.root:
            yield from self._unread(child, child.tag)

    def _unread(self, element: Element, where: str) -> Iterator[tuple[str, str]]:
        name = next((text.strip() for each in _NAMES if (text := element.findtext(each))), "")
        where = f"{element.tag} {name}" if name else where
        has_named = any(each.find(name) is not None for each in element for name in _NAMES)
        if not has_named and self._read.isdisjoint(element.iter()):
            yield where, element.tag
            return
        for child in element:
            yield from self._unread(child, where)


def children(element: Element | None, path: str) -> Iterator[Element]:
    """Iterate over the elements at a path; yield nothing if the element is None."""
    if element is not None:
        yield from element.iterfind(path)


def _parse(path: Path) -> tuple[Element, str]:
    """Parse a file into its root element and the namespace.

    A document type that only names an external DTD is accepted; the DTD is not read.
    """
    try:
        from defusedxml.common import DefusedXmlException  # an extra
        from defusedxml.ElementTree import DefusedXMLParser  # an extra
    except ImportError as error:
        raise ConfigurationError('Descriptors in XML need defusedxml: pip install "jmsjca[descriptors]"') from error
    parser = DefusedXMLParser(forbid_dtd=False, forbid_entities=True, forbid_external=True)
    parser.parser.StartDoctypeDeclHandler = _refuse_internal_subset
    try:
        parser.feed(path.read_bytes())
        return _without_namespaces(parser.close())
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error}.") from error
    except ParseError as error:
        line, column = error.position
        reason = f"{ErrorString(error.code)}: line {line}, column {column}"
    except LookupError:
        reason = "its encoding is unknown"
    except (DefusedXmlException, ConfigurationError, ValueError) as error:
        raise ConfigurationError(f"{path} is refused: {excerpt(error, 200)}.") from error
    # Raised outside the except block, without a chain: the parser's text names an undefined entity, and that can be
    # part of a password with an unescaped &.
    raise ConfigurationError(f"{path} is refused: {reason}.")


def _refuse_internal_subset(name: str, system_id: Any, public_id: Any, has_internal_subset: Any) -> None:
    del system_id, public_id
    if has_internal_subset:
        raise ConfigurationError(f"the document type {name} declares a DTD of its own; remove it")


def _without_namespaces(root: Element) -> tuple[Element, str]:
    namespace = root.tag.rpartition("}")[0].removeprefix("{")
    for element in root.iter():
        element.tag = str(element.tag).rpartition("}")[2]
    return root, namespace
