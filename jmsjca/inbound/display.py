"""The display name of an activation, as the manual forms it."""

from typing import TYPE_CHECKING

from jmsjca.config import ConnectionURL
from jmsjca.messages.shown import shown

if TYPE_CHECKING:
    from jmsjca.config import ActivationSpec

__all__ = ["display_name"]


def display_name(spec: "ActivationSpec", url: str) -> str:
    """Tell how and to what an activation listens: mode, kind, destination, selector, context, URL without password.

    Args:
        spec: The spec in force.
        url: The connection URL in force.
    """
    selector = f"({shown(spec.selector, 100)})" if spec.selector else ""
    context = f"{{{shown(spec.context_name)}}}" if spec.context_name else ""
    return f"{spec.concurrency_mode}-{_receiver(spec)}{selector}{context} @ [{ConnectionURL.parse(url)}]"


def _receiver(spec: "ActivationSpec") -> str:
    if spec.destination_type == "queue":
        return f"QueueReceiver({spec.destination})"
    if spec.subscription_durability == "Durable":
        return f"Durable TopicSubscriber({spec.subscription_name})({spec.destination})"
    return f"NonDurable TopicSubscriber({spec.destination})"
