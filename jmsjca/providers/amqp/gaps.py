"""What AMQP 1.0 lacks, whatever the broker."""

from jmsjca.providers.evidence import Gap

__all__ = ["ENDS_LATE", "everywhere"]

ENDS_LATE = (
    "ends_at_close",
    "detach -> what is unsettled goes back; so a closed consumer's link stays while a unit holds messages of it.",
)


def everywhere(*, delays: str, settings: str) -> tuple[Gap, ...]:
    """The gaps, with what a broker's documentation tells of them.

    Args:
        delays: Of delays before a message comes again.
        settings: Of who sets what a destination does.
    """
    return (
        Gap(
            "redelivery_delay",
            "The outcome modified has delivery-failed, undeliverable-here and annotations, and no delay (AMQP 1.0,"
            " section 3.4.5).",
            delays,
        ),
        Gap(
            "configurable",
            "No frame of AMQP changes what a destination does with its messages; who operates the broker does that.",
            settings,
        ),
    )
