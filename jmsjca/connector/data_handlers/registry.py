"""The data handlers by MIME type: the built-in ones and those of the entry-point group ``jmsjca.data_handlers``."""

from importlib.metadata import entry_points
from typing import cast

from jmsjca.connector.data_handlers.handler import DataHandler
from jmsjca.connector.data_handlers.json_text import JSONDataHandler
from jmsjca.errors import ConfigurationError, excerpt

__all__ = ["data_handler"]

_GROUP = "jmsjca.data_handlers"
_BUILT_IN = {"application/json": JSONDataHandler}


def data_handler(mime_type: str) -> DataHandler:
    """Return a data handler for a MIME type.

    A package adds one by an entry point of the group ``jmsjca.data_handlers``: its name is the MIME type, its object a
    class or function that returns the handler. It takes precedence over a built-in handler of the same type.

    Args:
        mime_type: The MIME type, in any case; parameters (``; charset=utf-8``) are ignored.

    Raises:
        ConfigurationError: No data handler is registered for the MIME type.
    """
    name = mime_type.partition(";")[0].strip().lower()
    plugins = {point.name.lower(): point for point in entry_points(group=_GROUP)}
    if name in plugins:
        return cast("DataHandler", plugins[name].load()())
    if name in _BUILT_IN:
        return _BUILT_IN[name]()
    known = ", ".join(sorted(_BUILT_IN.keys() | plugins.keys()))
    raise ConfigurationError(
        f"No data handler for MIME type {excerpt(mime_type)!r}. There are: {known}. Register another one by an entry "
        f"point of the group {_GROUP}."
    )
