"""Response selectors: which message is the response to a request, as the verb's application-specific information says.

``response_selector=Name LIKE '{1}' AND Zip LIKE '{2}':PrimaryID,Address[4].AddressID``: each ``{n}`` is replaced by the
value of the n-th path.
"""

from jmsjca.connector.application_information import parse_information
from jmsjca.connector.business_objects import BusinessObject, shown
from jmsjca.connector.definitions import BusinessObjectDefinitions
from jmsjca.errors import InvalidSelectorError, excerpt
from jmsjca.selectors import build_indexed_selector
from jmsjca.selectors.ast import Value

__all__ = ["response_selector"]


def response_selector(
    business_object: BusinessObject, definitions: BusinessObjectDefinitions | None, *, raw: bool
) -> str | None:
    """Return the selector for the response to a request; None if its verb has none.

    Args:
        business_object: The request.
        definitions: The definitions, with the application-specific information of verbs.
        raw: True to insert values as they are; False to double their quotes, so that they cannot change the selector.

    Raises:
        ConfigurationError: The application-specific information is malformed.
        InvalidAttributeError: A path cannot be resolved.
        InvalidSelectorError: A placeholder has no path, or the value of a path is None, an object or a list.
    """
    definition = definitions.get(business_object.type) if definitions is not None else None
    information = parse_information(definition.verbs.get(business_object.verb, "") if definition else "")
    text = information.get("response_selector")
    if text is None:
        return None
    template, paths = _split(text)
    return build_indexed_selector(template, [_value(business_object, path) for path in paths], raw=raw)


def _split(text: str) -> tuple[str, list[str]]:
    """Return the template, and the paths after the last colon that is outside of quotes."""
    position = max((i for i, each in enumerate(text) if each == ":" and text.count("'", 0, i) % 2 == 0), default=None)
    if position is None:
        return text, []
    return text[:position], [path.strip() for path in text[position + 1 :].split(",")]


def _value(business_object: BusinessObject, path: str) -> Value:
    value = business_object.get(path)
    if value is None or isinstance(value, BusinessObject | list):
        raise InvalidSelectorError(
            f"The response selector of {business_object.type} needs a scalar at {excerpt(path)!r}, not {shown(value)}."
        )
    return value
