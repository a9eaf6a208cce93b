"""The activation spec: what a message-driven endpoint listens to, and how."""

import logging
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError, ValidationInfo

from jmsjca.config.distribution import DistributedSubscription
from jmsjca.config.inbound_options import InboundOptions
from jmsjca.config.spec_dump import dump
from jmsjca.config.spec_fields import SpecFields
from jmsjca.config.spec_problems import conflicts, explain
from jmsjca.config.spec_properties import fields_from
from jmsjca.destinations import Destination, Queue, Subscription, Topic
from jmsjca.errors import InvalidActivationSpecError
from jmsjca.redelivery import RedeliveryPolicy

__all__ = ["ActivationSpec"]

logger = logging.getLogger("jmsjca.config")


class ActivationSpec(SpecFields):
    """What an endpoint listens to, and how messages are delivered to it (JCA 1.6, section 13.4).

    Attributes:
        destination: The name of the destination, or a `Queue` or a `Topic`.
        destination_type: "queue" or "topic"; taken from the destination if that is more than a name.
        connection_url: The broker; None for that of the resource adapter.
        user_name: Who connects; None for the user name and password of the resource adapter.
        password: The password of ``user_name``; ignored without one.
        client_id: The client id of the connection; a durable subscription without one gets one made from its name.
        options: JMSJCA's options, which replace fields, and the provider's: a mapping, or text as the manual has it.
        selector: Only messages that match are delivered; may hold ``${subscribername}``.
        subscription_durability: "Durable" or "NonDurable"; for topics.
        subscription_name: The name of a durable subscription, or ``jmsjca://?distribution=1&subscribername=…``.
        concurrency_mode: "serial": one message after the other, in order; "sync": several receivers; "cc": one
            consumer that feeds several handlers.
        endpoint_pool_max_size: How many handlers work at the same time, in modes "sync" and "cc".
        batch_size: How many messages make one unit, in modes "sync" and "cc"; 0 and 1 for no batches.
        split_failed_batches: True if the messages of a batch that was rolled back come again one by one, so that the
            good ones do not share the fate of a bad one.
        hold_until_ack: True if the unit ends when the handler, or somebody else, acknowledges; not in mode "serial".
        acknowledgement_timeout: Seconds after which a held unit is rolled back that nobody acknowledged; None: never.
        max_outstanding: How many units may be open; by default 10 times ``endpoint_pool_max_size``.
        redelivery_handling: What is done with messages that come again, as in `RedeliveryPolicy.parse`.
        transaction: "local": the receipt and what the handler sends through its session commit together; "none"; or
            "required" and "bean", which join a transaction of the container.
        acknowledge_mode: AUTO or DUPS_OK; counts only where ``transaction`` is "none".
        context_name: What is logged before and after each call of the handler; None for nothing.
        mbean_name: The name of the management bean; None for none.

    Raises:
        InvalidActivationSpecError: Fields are wrong; every one is listed.
    """

    def __init__(self, **fields: Any) -> None:
        problems = list(conflicts(fields))
        try:
            super().__init__(**fields)
        except ValidationError as error:
            problems += explain(error, type(self).model_fields)
        if problems:
            raise InvalidActivationSpecError(f"The activation spec is wrong: {'; '.join(problems)}.")

    @classmethod
    def from_properties(cls, properties: Mapping[str, object], *, from_descriptor: bool = False) -> "ActivationSpec":
        """Make a spec from properties in the spelling of JMSJCA's manual.

        Args:
            properties: For instance ``{"destination": "orders", "destinationType": "javax.jms.Queue"}``. Capitals do
                not count in names. Those that JMSJCA checks and does not use are taken as well. Values are texts,
                or what `str` makes such texts of.
            from_descriptor: True for what stands in a deployed descriptor: in mode "serial" batches and held
                acknowledgement are left out with a warning, as JMSJCA does it without one.

        Raises:
            InvalidActivationSpecError: Properties are wrong, or unknown; every one is listed.
        """
        fields = fields_from(properties)
        return ActivationSpec(**dict(_FromDescriptor(**fields))) if from_descriptor else cls(**fields)

    def __hash__(self) -> int:  # pydantic's own fails, as options are a dict
        return hash((self.destination, self.destination_type, self.subscription_name))

    @property
    def durable(self) -> bool:
        """True for a durable subscription of a topic."""
        return self.destination_type == "topic" and self.subscription_durability == "Durable"

    @property
    def distributed(self) -> DistributedSubscription | None:
        """What a subscription name that begins with ``jmsjca://`` says; None for a usual subscription."""
        return DistributedSubscription.parse(self.subscription_name or "") if self.durable else None

    @property
    def subscriber_name(self) -> str | None:
        """The name of the subscription as the broker knows it."""
        distributed = self.distributed
        return distributed.subscriber_name if distributed else self.subscription_name

    def source(self) -> Destination | Subscription:
        """What the consumer of this spec consumes from; of a distributed subscription, what is read from the topic."""
        if self.destination_type == "queue":
            return Queue(self.destination)
        topic = Topic(self.destination)
        return Subscription(topic, self.subscriber_name, self.effective_client_id) if self.durable else topic

    @property
    def effective_client_id(self) -> str | None:
        """The client id to connect with: the given one, else one made from a durable subscription's name."""
        if self.client_id or not self.durable:
            return self.client_id
        return f"CLIENTID-{self.subscriber_name}"

    @property
    def redelivery_policy(self) -> RedeliveryPolicy:
        """The redelivery handling, for messages of this destination."""
        return RedeliveryPolicy.parse(self.redelivery_handling, self.destination, self.destination_type)

    @property
    def inbound_options(self) -> InboundOptions:
        """The options that are no fields.

        Raises:
            InvalidOptionError: A value cannot be used.
        """
        return InboundOptions.of(self.options)

    def dump(self) -> str:
        """Give all fields as lines of text, without secrets: what the management bean shows."""
        return dump(self)


class _FromDescriptor(ActivationSpec):
    """Leaves out, with a warning, what the mode does not have."""

    @classmethod
    def _misfit(cls, value: int, others: ValidationInfo) -> int:
        name, destination = others.field_name, others.data.get("destination")
        logger.warning("%s is ignored for %s: mode 'serial' has none; use 'sync' or 'cc'.", name, destination)
        return type(value)()
