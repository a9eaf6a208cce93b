"""Broker profiles: the name, protocol and capabilities of a broker, and the filters of Artemis."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from jmsjca.errors import InvalidOptionError, NotSupportedError
from jmsjca.selectors.rewriting import EngineValues, rewrite
from jmsjca.spi import Capabilities

__all__ = ["BrokerProfile", "administered", "identifiers_in", "to_artemis_filter", "to_exact_artemis_filter"]

_B = TypeVar("_B", bound="BrokerProfile")


@dataclass(frozen=True, slots=True)
class BrokerProfile:
    """A broker over one protocol.

    Args:
        name: The product name that the broker announces to its clients.
        protocol: The protocol's name.
        release: The release that the contract suite ran against.
        capabilities: The capabilities of a connection to the broker.
    """

    name: str
    protocol: str
    release: str
    capabilities: Capabilities

    def require(self, capability: str, *, requested: bool = True) -> None:
        """Raise an error unless the broker has a requested capability.

        Args:
            capability: The name of the field of `jmsjca.spi.Capabilities`.
            requested: False if the caller does not request the capability; then nothing is checked.

        Raises:
            NotSupportedError: The capability is requested and missing.
        """
        if requested and not getattr(self.capabilities, capability):
            raise NotSupportedError(
                f"{self.name} lacks the capability {capability} over {self.protocol}: do without it, or use a broker"
                " that has it."
            )


def administered(broker: _B, added: Mapping[str, Any] | None) -> _B:
    """Return the profile of a broker with the capabilities that its management over HTTP adds.

    Args:
        broker: The profile.
        added: The capabilities; None if the management of this broker is not known.

    Raises:
        InvalidOptionError: The management of this broker is not known.
    """
    if added is None:
        raise InvalidOptionError(
            f"Option management_url is for ActiveMQ Classic and RabbitMQ, and this is {broker.name}: leave it out."
        )
    return replace(broker, capabilities=replace(broker.capabilities, **added))


_WORD = re.compile(r"'(?:[^']|'')*'|(?:[^\W\d]|\$)[\w$]*")
_ARTEMIS_NAMES = {
    "JMSDeliveryMode": "AMQDurable",
    "JMSMessageID": "AMQUserID",
    "JMSPriority": "AMQPriority",
    "JMSTimestamp": "AMQTimestamp",
}
_ARTEMIS_DELIVERY_MODES = {"PERSISTENT": "DURABLE", "NON_PERSISTENT": "NON_DURABLE"}
_DELIVERY_MODES = EngineValues(lambda mode: _ARTEMIS_DELIVERY_MODES.get(mode, ""), tuple(_ARTEMIS_DELIVERY_MODES))
_QUOTED_DELIVERY_MODES = {f"'{jms}'": f"'{artemis}'" for jms, artemis in _ARTEMIS_DELIVERY_MODES.items()}


def to_exact_artemis_filter(selector: str, ids: Mapping[str, EngineValues]) -> str:
    """Return a filter that selects what the selector says, where properties keep their types.

    Args:
        selector: The selector.
        ids: How the filter's engine shows the values of headers with ids.

    Raises:
        InvalidSelectorError: The selector is invalid.
        NotSupportedError: Artemis cannot decide the selector as JMS says.
    """
    return rewrite(selector, _ARTEMIS_NAMES, {"JMSDeliveryMode": _DELIVERY_MODES, **ids})


def to_artemis_filter(selector: str) -> str:
    """Return a selector with the header names of Artemis, as Artemis' JMS client writes it.

    A filter with the JMS names matches nothing, without an error. As in that client, both delivery mode literals are
    replaced in the whole selector if it mentions JMSDeliveryMode.
    """
    names = _ARTEMIS_NAMES | (_QUOTED_DELIVERY_MODES if "JMSDeliveryMode" in identifiers_in(selector) else {})
    return _WORD.sub(lambda word: names.get(word[0], word[0]), selector)


def identifiers_in(selector: str) -> set[str]:
    """Return the identifiers and keywords of a selector, without string literals."""
    return {word for word in _WORD.findall(selector) if not word.startswith("'")}
