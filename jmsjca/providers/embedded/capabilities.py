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
    volatile_reuse=True,
    subscription_lock=True,
    subscription_kinds=True,
    ends_at_close=True,
    client_ids=True,
    temporary=True,
    temporary_guarded=True,
    temporary_ends=True,
    no_local=True,
    durable_no_local=True,
    groups=True,
    groups_apart=True,
    structured=True,
    duplicate_detection=True,
    checks=True,
    admin=True,
    configurable=True,
    shared_between_processes=True,
)
