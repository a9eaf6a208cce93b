"""The gaps that all or several brokers have over AMQP 1.0."""

from tests.support.evidence import CapabilityGap

__all__ = ["LINK_OUTLIVES_CONSUMER", "protocol_gaps"]

LINK_OUTLIVES_CONSUMER = (
    "ends_at_close",
    "detach -> what is unsettled goes back; so a closed consumer's link stays while a unit holds messages of it.",
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
            "No frame of AMQP says that an application gets a message which was transferred before: prefetched ones"
            " have the same count or mark.",
            "AMQP 1.0, sections 3.2.1 and 3.4: delivery-count counts deliveries, first-acquirer covers any link",
        ),
        CapabilityGap(
            "redelivery_delay",
            "The outcome modified has delivery-failed, undeliverable-here and annotations, and no delay (AMQP 1.0,"
            " section 3.4.5).",
            delays,
        ),
        CapabilityGap(
            "configurable",
            "No frame of AMQP changes what a destination does with its messages; who operates the broker does that.",
            settings,
        ),
    )
