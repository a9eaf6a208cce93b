"""An activation spec as text, for the management bean and for logs: as JMSJCA shows it, and without secrets."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pydantic import SecretStr

from jmsjca.config.acknowledge import AcknowledgeMode
from jmsjca.config.option_names import is_own
from jmsjca.config.url import ConnectionURL

if TYPE_CHECKING:
    from jmsjca.config.spec import ActivationSpec

__all__ = ["dump"]

_TYPES = {"queue": "javax.jms.Queue", "topic": "javax.jms.Topic"}
_MODES = {AcknowledgeMode.AUTO: "Auto-acknowledge", AcknowledgeMode.DUPS_OK: "Dups-ok-acknowledge"}


def dump(spec: "ActivationSpec") -> str:
    """Give a heading and one indented line ``name = value`` per field; what is not set is ``null``."""
    lines = (f"\t{name} = {_text(value)}" for name, value in _values(spec).items())
    return "\n".join(("ActivationSpec:", *lines))


def _values(spec: "ActivationSpec") -> dict[str, object]:
    return {
        "DestinationType": _TYPES[spec.destination_type],
        "Destination": spec.destination,
        "MessageSelector": spec.selector,
        "AcknowledgeMode": _MODES[spec.acknowledge_mode],
        "Delivery concurrency mode": spec.concurrency_mode,
        "SubscriptionDurability": spec.subscription_durability,
        "ClientId": spec.client_id,
        "SubscriptionName": spec.subscription_name,
        "EndpointPoolMaxSize": spec.endpoint_pool_max_size,
        "ConnectionURL": ConnectionURL.parse(spec.connection_url) if spec.connection_url else None,
        "UserName": spec.user_name,
        "Password": _masked(spec.password),
        "ContextName": spec.context_name,
        "MBeanName": spec.mbean_name,
        "OptionsStr": _shown_options(spec.options),
        "RedeliveryHandling": spec.redelivery_handling,
        "BatchSize": spec.batch_size,
        "SplitFailedBatches": spec.split_failed_batches,
        "HoldUntilAck": spec.hold_until_ack,
        "AcknowledgementTimeout": spec.acknowledgement_timeout,
        "MaxOutstanding": spec.max_outstanding,
        "Transaction": spec.transaction,
    }


def _shown_options(options: Mapping[str, str]) -> str | None:
    pairs = (
        f"{name}={value if is_own(name) else '###'}" for name, value in options.items()
    )  # a provider's may be secret
    return "; ".join(pairs) or None


def _masked(password: SecretStr | None) -> str | None:
    if password is None:
        return None
    return "###" if password.get_secret_value() else "zero-length"


def _text(value: object) -> str:
    text = "null" if value is None else str(value)
    return text if text.isprintable() else repr(text)[1:-1]  # one line each, whatever a value holds
