"""ActiveMQ Classic over AMQP 1.0: capabilities."""

from functools import partial

from jmsjca.providers.amqp.codec.jms_mapping import (
    ENCODED_ID_PREFIX,
    ID_KINDS,
    ID_PREFIX,
    amqp_id_in_selector,
    to_jms_message_id,
)
from jmsjca.providers.brokers.activemq import OVER_AMQP, RELEASE
from jmsjca.providers.brokers.profile import AMQPBrokerProfile
from jmsjca.selectors.rewriting import EngineValues, rewrite

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
    RELEASE,
    OVER_AMQP,
    product="ActiveMQ",
    naming="scheme",
    translate_selector=partial(rewrite, values=_IDS),
    in_use_texts=("Durable consumer is in use", "created by another connection"),
)
