"""ActiveMQ Classic over AMQP 1.0: capabilities."""

from functools import partial

from jmsjca.providers.amqp.brokers.profile import AMQPBrokerProfile
from jmsjca.providers.amqp.codec.jms_mapping import (
    ENCODED_ID_PREFIX,
    ID_KINDS,
    ID_PREFIX,
    amqp_id_in_selector,
    to_jms_message_id,
)
from jmsjca.selectors.rewriting import EngineValues, rewrite
from jmsjca.spi import Capabilities

__all__ = ["ACTIVEMQ"]


_SHOWN_KINDS = tuple((start.removeprefix(ID_PREFIX), following) for start, following in ID_KINDS)
_STRING = "AMQP_STRING:"
_MARKED = (_STRING, *(start for start, _ in _SHOWN_KINDS))


def _correlation_id(text: str) -> str:
    """Return a correlation id as the engine shows it: other types than text without "ID:"."""
    return _shown(amqp_id_in_selector(text), text)


def _message_id(text: str) -> str:
    """Return a message id as the engine shows it: as a correlation id, with "ID:"."""
    shown = _shown(amqp_id_in_selector(text, to_jms_message_id), text)
    return shown if shown.startswith(ID_PREFIX) or not text.startswith(ID_PREFIX) else ID_PREFIX + shown


def _shown(value: object, text: str) -> str:
    if not isinstance(value, str):
        return text.removeprefix(ID_PREFIX)
    return _STRING + value if value.startswith(_MARKED) else value


_IDS = {
    "JMSMessageID": EngineValues(_message_id, start=ID_PREFIX, differing=((ENCODED_ID_PREFIX, None),)),
    "JMSCorrelationID": EngineValues(_correlation_id, differing=(*ID_KINDS, *_SHOWN_KINDS)),
}

ACTIVEMQ = AMQPBrokerProfile(
    "Apache ActiveMQ Classic",
    "AMQP",
    "6.3.1",
    Capabilities(
        transacted_receive=True,
        transacted_send=True,
        atomic=True,
        give_back="local",
        counts_lost=True,
        selectors=True,
        exact_selectors=True,
        browse=True,
        durable=True,
        client_ids=True,
        checks=True,
        subscription_lock=True,
        temporary=True,
        temporary_guarded=True,
        temporary_ends=True,
        no_local=True,
        groups=True,
        groups_apart=True,
        shared_between_processes=True,
        structured=True,
    ),
    product="ActiveMQ",
    naming="scheme",
    translate_selector=partial(rewrite, values=_IDS),
    in_use_texts=("Durable consumer is in use", "created by another connection"),
)
