"""Deployment descriptors as XML: read without entities, external files or namespaces."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, ParseError
from xml.parsers.expat import ErrorString

from jmsjca.errors import ConfigurationError, excerpt

__all__ = ["children", "parse", "properties", "text_of"]


def parse(path: Path) -> Element:
    """Return the root element of a file, all names without their namespaces.

    A document type that only names an external DTD is accepted, as descriptors of that time have one, and not read.

    Args:
        path: The file.

    Raises:
        ConfigurationError: defusedxml is not installed; or the file cannot be read, is no XML, declares entities, or
            has a DTD of its own.
    """
    try:
        from defusedxml.common import DefusedXmlException  # noqa: PLC0415  # an extra
        from defusedxml.ElementTree import DefusedXMLParser  # noqa: PLC0415  # an extra
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
    # Raised out here, without a chain: the parser's text names an undefined entity, which is part of a password that
    # has an & not escaped.
    raise ConfigurationError(f"{path} is refused: {reason}.")


def _refuse_internal_subset(name: str, system_id: Any, public_id: Any, has_internal_subset: Any) -> None:
    del system_id, public_id
    if has_internal_subset:
        raise ConfigurationError(f"the document type {name} declares a DTD of its own; remove it")


def _without_namespaces(root: Element) -> Element:
    for element in root.iter():
        element.tag = _local_name(element.tag)
    return root


def _local_name(tag: Any) -> str:
    return str(tag).rpartition("}")[2]


def children(element: Element | None, path: str) -> Iterator[Element]:
    """Iterate over the elements at a path; over none if the element is None."""
    if element is not None:
        yield from element.iterfind(path)


def text_of(element: Element | None, path: str) -> str:
    """Return the text at a path without surrounding blanks; empty without such an element."""
    return ((element.findtext(path) if element is not None else None) or "").strip()


def properties(element: Element, prefix: str) -> Iterator[tuple[str, str]]:
    """Iterate over the names and values of an element's properties.

    Args:
        element: The parent of the properties.
        prefix: The name of each property's element, for instance "config-property".
    """
    for each in element.iterfind(prefix):
        yield text_of(each, f"{prefix}-name"), text_of(each, f"{prefix}-value")
