"""What AMQP 1.0 or this release of jmsjca lacks, whatever the broker."""

from jmsjca.providers.evidence import Gap

__all__ = ["ENDS_LATE", "EVERYWHERE"]

_NO_DELAY = Gap(
    "redelivery_delay",
    "The outcome modified has delivery-failed, undeliverable-here and annotations, and no delay.",
    "AMQP 1.0, section 3.4.5",
)
_NOT_YET = tuple(
    Gap(capability, seen, "Not offered over AMQP in this release")
    for capability, seen in (
        ("configurable", "The protocol has no frame that changes what a destination does; its operator does that."),
    )
)
EVERYWHERE = (_NO_DELAY, *_NOT_YET)
ENDS_LATE = (
    "ends_at_close",
    "detach -> what is unsettled goes back; so a closed consumer's link stays while a unit holds messages of it.",
)
