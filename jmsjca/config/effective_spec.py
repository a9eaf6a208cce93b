"""The effective activation spec: its fields after all options have been applied."""

import re
from collections.abc import Mapping
from typing import Any

from jmsjca.config.activation_spec import ActivationSpec, merge_options
from jmsjca.config.connection_url import add_options
from jmsjca.config.options import InboundOptions, provider_options, read_options
from jmsjca.errors import InvalidActivationSpecError, InvalidOptionError
from jmsjca.selectors import build_selector

__all__ = ["resolve_spec"]

_REPLACING = {
    "JMSJCA.concurrencymode": "concurrency_mode",
    "JMSJCA.redeliveryhandling": "redelivery_handling",
}
_SELECTOR = "JMSJCA.selector"
_SEPARATOR = re.compile(r"[,;&|\s]")


def resolve_spec(
    spec: ActivationSpec, adapter_options: str | Mapping[str, str] | None = None, adapter_url: str | None = None
) -> ActivationSpec:
    """Return the effective spec: options are applied to its fields, and the placeholders of its selector replaced.

    The options of the URL override those of the spec, which override those of the adapter. Only one URL is used: that
    of the spec, else that of the adapter. Options override fields.

    Args:
        spec: The spec as the application wrote it, not a result of this function.
        adapter_options: The options of the resource adapter.
        adapter_url: The URL of the resource adapter.

    Returns:
        A spec with all effective options in ``options``, and the URL in use as ``connection_url``, with the provider's
        options added.

    Raises:
        InvalidURLError: The adapter's URL does not parse.
        InvalidOptionError: An option is unknown, or its value is invalid.
        InvalidSelectorError: A placeholder of the selector is not closed.
        InvalidActivationSpecError: Fields are invalid with the options applied; the message lists all of them.
    """
    url = spec.connection_url or adapter_url
    options = merge_options(read_options(adapter_options), spec.options, url=url)
    inbound = InboundOptions.of(options)  # raises on invalid values
    changes: dict[str, object] = {
        "options": options,
        "connection_url": add_options(url, provider_options(options)) if url else None,
        "selector": _selector(spec, options),
    }
    if inbound.bean_managed and spec.transaction == "required":
        changes["transaction"] = "bean"
    return _with_changes(spec, changes, {name: options[name] for name in _REPLACING if _is_set(options, name)})


def _with_changes(spec: ActivationSpec, changes: Mapping[str, object], replacing: Mapping[str, str]) -> ActivationSpec:
    replaced = {_REPLACING[name]: value for name, value in replacing.items()}
    fields: dict[str, Any] = {**dict(spec), **changes, **replaced}
    try:
        return ActivationSpec(**fields)
    except InvalidActivationSpecError as error:
        problem = str(error)
    # Raised here, without a chain: the message has the whole value.
    for name, value in replacing.items():
        if _has_next_option(value):
            raise InvalidOptionError(
                f"The value of {name} seems to contain the next option: end each option with its line, or begin the"
                " options with JMSJCA.sep= and the character that separates them."
            )
    raise InvalidActivationSpecError(f"With {', '.join(replacing)} from the options in force: {problem}")


def _has_next_option(value: str) -> bool:
    """Return whether the options that follow, one of which may be a password, were not separated from a value."""
    front, equals, _ = value.partition("=")
    return bool(equals and _SEPARATOR.search(front))


def _selector(spec: ActivationSpec, options: Mapping[str, str]) -> str | None:
    template = options[_SELECTOR] if _is_set(options, _SELECTOR) else spec.selector
    if not template or not template.strip():
        return None
    return build_selector(
        template, spec.selector_variables, selector=spec.selector, subscriber_name=spec.subscriber_name
    )


def _is_set(options: Mapping[str, str], name: str) -> bool:
    return bool(options.get(name, "").strip())
