"""What an embedded broker can do."""

from jmsjca.spi import Capabilities

__all__ = ["CAPABILITIES"]

CAPABILITIES = Capabilities(
    transacted_receive=True,
    transacted_send=True,
    atomic=True,
    give_back="uncounted",
    exact_credit=True,
    redelivery_delay=True,
    delivery_delay=True,
    delivery_count=True,
    counts_lost=True,
    priority=True,
    selectors=True,
    exact_selectors=True,
    browse=True,
    browse_counts=True,
    durable=True,
    shared=True,
    subscription_lock=True,
    client_ids=True,
    temporary=True,
    no_local=True,
    groups=True,
    structured=True,
    duplicate_detection=True,
    checks=True,
    admin=True,
    configurable=True,
    shared_between_processes=True,
)
