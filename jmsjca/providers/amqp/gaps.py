"""What AMQP 1.0 or this release of jmsjca lacks, whatever the broker."""

from jmsjca.providers.evidence import Gap

__all__ = ["EVERYWHERE"]

_NO_DELAY = Gap(
    "redelivery_delay",
    "The outcome modified has delivery-failed, undeliverable-here and annotations, and no delay.",
    "AMQP 1.0, section 3.4.5",
)
_NO_ADMIN = Gap(
    "admin",
    "AMQP 1.0 has no performative that asks for queues or depths; each broker has management messages of its own.",
    "Not offered over AMQP in this release",
)
_NO_TEMPORARY = Gap(
    "temporary", "Not asked for: no dynamic terminus is attached.", "Not offered over AMQP in this release"
)
_NO_SHARED = Gap("shared", "Not asked for: no source asks for it.", "Not offered over AMQP in this release")
_NO_LOCAL = Gap(
    "no_local", "Not asked for: no source has the filter apache.org:no-local-filter.", "Not offered in this release"
)
_NOT_YET = tuple(
    Gap(capability, seen, "Not offered over AMQP in this release")
    for capability, seen in (
        ("subscription_lock", "Not asked for: nothing tells whether a second subscriber is refused or takes over."),
        ("groups", "Not asked for: no case of the contract suite proves it."),
        ("configurable", "The protocol has no frame that changes what a destination does; its operator does that."),
    )
)
EVERYWHERE = (_NO_DELAY, _NO_ADMIN, _NO_TEMPORARY, _NO_SHARED, _NO_LOCAL, *_NOT_YET)
