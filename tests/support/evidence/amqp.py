"""The gaps that all or several brokers have over AMQP 1.0."""

from tests.support.evidence import CapabilityGap

__all__ = ["LINK_OUTLIVES_CONSUMER", "protocol_gaps"]

LINK_OUTLIVES_CONSUMER = (
    "ends_at_close",
    "detach -> the broker requeues unsettled messages. So the link stays open while a unit holds messages of it.",
)


def protocol_gaps(*, delays, settings):
    """Return the gaps of AMQP itself, with a reference to the broker's documentation for each.

    Args:
        delays: The reference on delays before a message is redelivered.
        settings: The reference on how the settings of a destination are changed.
    """
    return (
        CapabilityGap(
            "counts_handovers",
            "No frame of AMQP shows whether an application got a message that was transferred before: a prefetched"
            " message has the same count or mark.",
            "AMQP 1.0, sections 3.2.1 and 3.4: delivery-count counts deliveries, first-acquirer covers any link",
        ),
        CapabilityGap(
            "redelivery_delay",
            "The outcome modified has the fields delivery-failed, undeliverable-here and annotations, but no delay"
            " (AMQP 1.0, section 3.4.5).",
            delays,
        ),
        CapabilityGap(
            "configurable",
            "No frame of AMQP changes the settings of a destination; the operator of the broker does that.",
            settings,
        ),
    )
