"""The provider families of JMSJCA: how each family, or its successor, is reached today."""

from collections.abc import Mapping

__all__ = ["FAMILIES", "successor"]

_OPEN_MQ = "Sun MQ lives on as Open MQ, which is reached over STOMP: stomp://host:7672"
_WEBSPHERE = "IBM MQ is reached over AMQP 1.0 by its AMQP channel: amqp://host:5672"
_JBOSS = "JBoss MQ became HornetQ and ActiveMQ Artemis, which is reached over AMQP 1.0: amqp://host:5672"
_STCMS = (
    "SeeBeyond's and Sun's message server has no successor; move to a broker with AMQP 1.0 or STOMP: amqp://host:5672"
)
_WEBLOGIC = "WebLogic JMS has neither AMQP 1.0 nor STOMP; bridge it to a broker that has: amqp://host:5672"
_WAVE = "JMS Grid (SpiritWave) has no successor; move to a broker with AMQP 1.0 or STOMP: amqp://host:5672"
_JNDI = "there is no JNDI provider: bind factories in the naming context, and write lookup://name"

FAMILIES: Mapping[str, str] = {
    **dict.fromkeys(("stcms", "stcmss", "stcms453", "stcms453s"), _STCMS),
    **dict.fromkeys(("mq", "mqtcp", "mqssl", "httpjms", "httpsjms"), _OPEN_MQ),
    **dict.fromkeys(("wmq", "wmqs", "wmq5", "wmqs5", "wmq5s"), _WEBSPHERE),
    **dict.fromkeys(("t3", "t3s"), _WEBLOGIC),
    "jboss": _JBOSS,
    **dict.fromkeys(("stream", "tcp", "ssl", "http"), _WAVE),
    "jndi": _JNDI,
}
"""For each scheme of JMSJCA's adapters, the protocol and URL by which its broker or the successor is reached today."""


def successor(scheme: str) -> str | None:
    """Return how the broker of a scheme of JMSJCA is reached today; None for other schemes."""
    return FAMILIES.get(scheme.lower())
