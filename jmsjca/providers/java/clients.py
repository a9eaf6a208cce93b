"""The clients: how each vendor's connection factory is made, what it can do, and where its jars are."""

import re
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from jmsjca.config import ConnectionURL
from jmsjca.destinations import Destination
from jmsjca.errors import (
    ConfigurationError,
    ConnectionLostError,
    IllegalStateError,
    InvalidClientIDError,
    InvalidDestinationError,
    InvalidOptionError,
    InvalidSelectorError,
    JMSError,
    JMSSecurityError,
    MessageFormatError,
    NotSupportedError,
    ResourceAllocationError,
)
from jmsjca.providers.brokers.profile import BrokerProfile
from jmsjca.providers.common.network import LOGIN_REMEDY, NetworkOptions
from jmsjca.providers.java.bridge import BridgeReplyError
from jmsjca.providers.java.codec import MESSAGE_ID
from jmsjca.selectors.rewriting import EngineValues, rewrite
from jmsjca.spi import Capabilities

__all__ = ["CLIENTS", "Client", "JavaOptions", "find_jars", "namespace_of", "translated"]

_API = "{}/jms/ConnectionFactory.class"
_COORDINATES = re.compile(r"[\w.\-]+:[\w.\-]+:[\w.\-]+\Z")


@dataclass(frozen=True, slots=True)
class JavaOptions(NetworkOptions):
    """The options of a URL: those of the network, and the client's jars.

    Args:
        class_path: The client's jars, separated by colons or commas: paths, folders with ``/*`` at their end, or Maven
            coordinates ``group:artifact:version`` of jars that are in the local repository already.
    """

    class_path: str = ""


@dataclass(frozen=True, slots=True)
class Client:
    """A client of Java, and the broker that it connects to.

    Args:
        profile: The broker and its capabilities.
        factory: The class of the connection factory, whose constructor takes the client's URL.
        port: The usual port.
        url: Returns the client's URL for a host with port, and the options.
        forbidden: What a name of a destination must not contain: the client would interpret it.
        polls: True if a wait for a message may prefetch another one.
        hears_refusals: True if the client reports a refused send of a transaction as if its connection had failed.
        prefixes_topics: True if the client adds a prefix to the names of topics.
        headers: The names in selectors of headers that the broker knows by another name.
        codes: The errors by the codes of the client, or by those at the beginning of its texts.
        texts: The errors by the beginning of the texts, for what has neither a code nor an exception of JMS.
        appends_returned: True if the broker keeps the order in which messages were returned; else the last returned one
            is the first again.
        changed: The codes for a shared subscription that exists with another topic or selector.
    """

    profile: BrokerProfile
    factory: str
    port: int
    url: Callable[[str, JavaOptions], str]
    forbidden: re.Pattern[str]
    polls: bool = False
    hears_refusals: bool = False
    prefixes_topics: bool = False
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    values: Mapping[str, EngineValues] = field(default_factory=dict[str, EngineValues])
    codes: Mapping[str, type[JMSError]] = field(default_factory=dict[str, type[JMSError]])
    texts: Mapping[str, type[JMSError]] = field(default_factory=dict[str, type[JMSError]])
    appends_returned: bool = False
    changed: tuple[str, ...] = ()

    def selector(self, selector: str | None) -> str | None:
        """Return a selector as the broker decides it exactly; None for none.

        Raises:
            InvalidSelectorError: It is invalid.
            NotSupportedError: The broker cannot decide it as JMS says.
        """
        return rewrite(selector, self.headers, self.values) if selector else None

    def check_name(self, of: Destination) -> None:
        """Raise an error for a name that the client would interpret.

        Raises:
            InvalidDestinationError: It has a wildcard, options, or a list.
        """
        if not of.temporary and self.forbidden.search(of.name):
            raise InvalidDestinationError(f"{self.profile.name} would interpret the name of {of}: use another one.")


def find_jars(options: JavaOptions, url: ConnectionURL) -> tuple[str, ...]:
    """Return the jars of the option class_path.

    Raises:
        InvalidOptionError: The option is missing, or a jar is not there.
    """
    found: list[str] = []
    for part in filter(None, _split(options.class_path)):
        jars = _jars_of(part)
        if not jars:
            raise InvalidOptionError(f"Option class_path of {url}: there is no jar at {part!r:.300}.")
        found += jars
    if not found:
        raise InvalidOptionError(
            f"{url} needs the option class_path: the jars of the vendor's client, as paths, folders with /* at their"
            " end, or Maven coordinates of jars in ~/.m2."
        )
    return tuple(found)


def _split(text: str) -> list[str]:
    return [
        part if _COORDINATES.match(part) else piece
        for part in text.split(",")
        for piece in ([part] if _COORDINATES.match(part) else part.split(":"))
    ]


def _jars_of(part: str) -> list[str]:
    if _COORDINATES.match(part):
        group, artifact, version = part.split(":")
        path = Path.home() / ".m2" / "repository" / group.replace(".", "/") / artifact / version
        return [str(jar) for jar in [path / f"{artifact}-{version}.jar"] if jar.exists()]
    if part.endswith("/*"):
        return sorted(map(str, Path(part[:-2]).glob("*.jar")))
    return [part] if Path(part).exists() else []


@lru_cache(64)
def namespace_of(jars: tuple[str, ...]) -> str:
    """Return the name space of the JMS API among the jars: jakarta or javax.

    Raises:
        InvalidOptionError: No jar has the API.
    """
    for jar in jars:
        try:
            with zipfile.ZipFile(jar) as archive:
                names = set(archive.namelist())
        except (OSError, zipfile.BadZipFile) as error:
            raise InvalidOptionError(f"Option class_path: {jar} is no jar: {error}") from error
        for namespace in ("jakarta", "javax"):
            if _API.format(namespace) in names:
                return namespace
    raise InvalidOptionError(
        "Option class_path: no jar has the JMS API; add jakarta.jms-api, in the version that the client needs."
    )


def _artemis_url(address: str, options: JavaOptions) -> str:
    milliseconds = round(options.reply_timeout * 1000)
    return (
        f"tcp://{address}?reconnectAttempts=0&initialConnectAttempts=1&ha=false&useTopologyForLoadBalancing=false"
        f"&consumerWindowSize=0&callTimeout={milliseconds}"
    )


_DELIVERY_MODES = {"PERSISTENT": "DURABLE", "NON_PERSISTENT": "NON_DURABLE"}
_CHANGED = ("AMQ229082", "AMQ229083")  # another topic, another selector

ARTEMIS = Client(
    BrokerProfile(
        "Apache Artemis",
        "Core",
        "2.56.0",
        Capabilities(
            transacted_receive=True,
            transacted_send=True,
            atomic=True,
            give_back="counted",
            units="receive",
            exact_credit=True,
            delivery_delay=True,
            delivery_count=True,
            counts_lost=True,
            priority=True,
            selectors=True,
            exact_selectors=True,
            browse=True,
            durable=True,
            subscription_lock=True,
            no_local=True,
            durable_no_local=True,
            client_ids=True,
            shared=True,
            temporary=True,
            shared_between_processes=True,
            structured=True,
        ),
    ),
    "org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory",
    61616,
    _artemis_url,
    re.compile(r"[*#?]|::"),
    polls=True,
    headers={
        "JMSMessageID": MESSAGE_ID,
        "JMSDeliveryMode": "AMQDurable",
        "JMSPriority": "AMQPriority",
        "JMSTimestamp": "AMQTimestamp",
    },
    values={"JMSDeliveryMode": EngineValues(lambda mode: _DELIVERY_MODES.get(mode, ""), tuple(_DELIVERY_MODES))},
    codes=dict.fromkeys(_CHANGED, IllegalStateError),
    changed=_CHANGED,
)


def _activemq_url(address: str, options: JavaOptions) -> str:
    del options
    policy, prefetch = "jms.redeliveryPolicy", "jms.prefetchPolicy"
    return (
        f"tcp://{address}?{prefetch}.queuePrefetch=0&{prefetch}.topicPrefetch=0&{prefetch}.durableTopicPrefetch=0"
        f"&{policy}.initialRedeliveryDelay=0&{policy}.redeliveryDelay=0&{policy}.maximumRedeliveries=-1"
    )


ACTIVEMQ = Client(
    BrokerProfile(
        "ActiveMQ",
        "OpenWire",
        "6.3.1",
        Capabilities(
            transacted_receive=True,
            transacted_send=True,
            atomic=True,
            give_back="counted",
            delivery_count=True,
            units="receive",
            exact_credit=True,
            counts_lost=True,
            selectors=True,
            exact_selectors=True,
            browse=True,
            durable=True,
            subscription_lock=True,
            no_local=True,
            client_ids=True,
            checks=True,
            temporary=True,
            temporary_guarded=True,
            shared_between_processes=True,
            structured=True,
        ),
    ),
    "org.apache.activemq.ActiveMQConnectionFactory",
    61616,
    _activemq_url,
    re.compile(r"[*>?,]"),
    headers={"JMSMessageID": MESSAGE_ID},
    appends_returned=True,
    hears_refusals=True,
    texts={"Durable consumer is in use": IllegalStateError},
)


def _qpid_url(address: str, options: JavaOptions) -> str:
    milliseconds = round(options.reply_timeout * 1000)
    # Without the prefix Broker-J would take a topic for a queue. Without forced sends the commit of a refused one fails
    # in a way that leaves it in doubt.
    options_of_jms = "jms.topicPrefix=amq.topic/&jms.prefetchPolicy.all=0&jms.forceSyncSend=true"
    return f"amqp://{address}?{options_of_jms}&jms.requestTimeout={milliseconds}"


_QPID_IN_USE = ("Subscription details dont match", "There are active consumers", "Subscription is already in use")

QPID = Client(
    BrokerProfile(
        "Qpid Broker-J",
        "AMQP 1.0 through Qpid JMS",
        "10.1.0",
        Capabilities(
            transacted_receive=True,
            transacted_send=True,
            atomic=True,
            give_back="counted",
            units="receive",
            exact_credit=True,
            delivery_count=True,
            counts_lost=True,
            selectors=True,
            browse=True,
            durable=True,
            shared=True,
            client_ids=True,
            temporary=True,
            shared_between_processes=True,
            structured=True,
        ),
    ),
    "org.apache.qpid.jms.JmsConnectionFactory",
    5672,
    _qpid_url,
    re.compile(r"[*#]"),
    hears_refusals=True,
    prefixes_topics=True,
    headers={"JMSMessageID": MESSAGE_ID},
    texts=dict.fromkeys(_QPID_IN_USE, IllegalStateError),
    changed=("Subscription details dont match",),
)

CLIENTS = {"java+amqp": QPID, "java+core": ARTEMIS, "java+tcp": ACTIVEMQ}


_KINDS: dict[str, type[JMSError]] = {
    "lost": ConnectionLostError,
    "security": JMSSecurityError,
    "destination": InvalidDestinationError,
    "selector": InvalidSelectorError,
    "client": InvalidClientIDError,
    "state": IllegalStateError,
    "format": MessageFormatError,
    "resource": ResourceAllocationError,
    "unsupported": NotSupportedError,
    "configuration": ConfigurationError,
}


def translated(
    error: BridgeReplyError, client: Client, doing: str, default: type[JMSError] = ConnectionLostError
) -> JMSError:
    """Return the JMS error for an exception of a client.

    Args:
        error: The exception.
        client: The client.
        doing: The failed operation, as the continuation of "cannot".
        default: The class if JMS has none for it.
    """
    codes = (code for _, text, own in error.causes for code in (own or "", text.partition(":")[0]))
    known = (kind for text, kind in client.texts.items() if any(told.startswith(text) for _, told, _ in error.causes))
    kind = next(
        (client.codes[code] for code in codes if code in client.codes),
        next(known, _KINDS.get(error.kind, default)),
    )
    remedy = f" {LOGIN_REMEDY}" if kind is JMSSecurityError else ""
    return kind(f"Java's client cannot {doing}: {error.text}.{remedy}")
