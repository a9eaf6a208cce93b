"""The clients: how each vendor's connection factory is made, what it can do, and where its jars are."""

import re
import zipfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from pathlib import Path
from urllib.parse import quote, unquote

from jmsjca.arguments import did_you_mean
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
    InvalidURLError,
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

__all__ = [
    "CLIENTS",
    "IBM_MQ",
    "OTHER",
    "Client",
    "JavaOptions",
    "Recipe",
    "find_jars",
    "namespace_of",
    "recipe_of",
    "translated",
]

_API = "{}/jms/ConnectionFactory.class"
_COORDINATES = re.compile(r"[\w.\-]+:[\w.\-]+:[\w.\-]+\Z")


@dataclass(frozen=True, slots=True)
class JavaOptions(NetworkOptions):
    """The options of a URL: those of the network, and the client's jars.

    Args:
        class_path: The client's jars, separated by colons or commas: paths, folders with ``/*`` at their end, or Maven
            coordinates ``group:artifact:version`` of jars that are in the local repository already.
        tls: True to connect with TLS. IBM MQ has ``SSLCipherSuite`` instead.
        allow_classes: The classes, separated by commas, that a URL may name in addition to the known ones.
        allow_remote_lookups: True to allow names and servers of JNDI by which a server could make this client load
            code: ``ldap:``, ``rmi:`` and their like.
        xa: False to commit units of joined transactions in one phase, although the client has XA.
    """

    class_path: str = ""
    tls: bool = False
    allow_classes: str = ""
    allow_remote_lookups: bool = False
    xa: bool = True


@dataclass(frozen=True, slots=True)
class Client:
    """A client of Java, and the broker that it connects to.

    Args:
        profile: The broker and its capabilities.
        factory: The class of the connection factory, whose constructor takes the client's URL.
        port: The usual port.
        url: Returns the client's URL for a host with port, and the options.
        forbidden: What a name of a destination must not contain: the client would interpret it.
        beans: The properties that are set on a factory that was made elsewhere, for what ``url`` has otherwise.
        tls_factory: The class of the factory for TLS, if it is another one.
        reads_files: True if its URL has the files of certificates; else the bridge reads them.
        address: The property of such a factory with its URL, which must not have the client's own fail-over.
        vendor: The beginning of the names of the vendor's own properties of messages, which the client knows.
        polls: True if a wait for a message may prefetch another one.
        hears_refusals: True if the client reports a refused send of a transaction as if its connection had failed.
        prefixes_topics: True if the client adds a prefix to the names of topics.
        asks_before_sends: True if each send of a producer without a destination first asks the broker about it.
        headers: The names in selectors of headers that the broker knows by another name.
        codes: The errors by the codes of the client, or by those at the beginning of its texts.
        texts: The errors by the beginning of the texts, for what has neither a code nor an exception of JMS.
        appends_returned: True if the broker keeps the order in which messages were returned; else the last returned one
            is the first again.
        changed: The codes for a shared subscription that exists with another topic or selector.
        remedies: The remedies by the codes.
        uri_options: The options of destinations ``queue://…?…``; None if names are not such URIs. The client ignores
            others without a word.
        xa_factory: The class of the factory of XA, with the same constructor; empty if its XA is not proven.
    """

    profile: BrokerProfile
    factory: str
    port: int
    url: Callable[[str, JavaOptions], str] | None
    forbidden: re.Pattern[str]
    beans: Mapping[str, str] = field(default_factory=dict[str, str])
    tls_factory: str = ""
    reads_files: bool = False
    address: str = ""
    vendor: str | None = None
    polls: bool = False
    hears_refusals: bool = False
    prefixes_topics: bool = False
    asks_before_sends: bool = False
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    values: Mapping[str, EngineValues] = field(default_factory=dict[str, EngineValues])
    codes: Mapping[str, type[JMSError]] = field(default_factory=dict[str, type[JMSError]])
    texts: Mapping[str, type[JMSError]] = field(default_factory=dict[str, type[JMSError]])
    appends_returned: bool = False
    changed: tuple[str, ...] = ()
    remedies: Mapping[str, str] = field(default_factory=dict[str, str])
    uri_options: frozenset[str] | None = None
    xa_factory: str = ""

    @property
    def flags(self) -> int:
        """The properties that the bridge must know, as bits."""
        return self.polls + 2 * self.hears_refusals + 4 * self.prefixes_topics + 8 * self.asks_before_sends

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
            InvalidDestinationError: It has a wildcard, options that do not exist, or a list.
        """
        if not of.temporary and self.forbidden.search(of.name):
            raise InvalidDestinationError(f"{self.profile.name} would interpret the name of {of}: use another one.")
        _, mark, options = of.name.partition("?")
        if mark and self.uri_options is not None:
            known = {name.lower(): name for name in self.uri_options}
            for name in (pair.partition("=")[0] for pair in options.split("&")):
                if name not in self.uri_options:
                    hint = did_you_mean(name.lower(), known)
                    raise InvalidDestinationError(
                        f"{self.profile.name} would ignore the option {name!r} of {of} {hint}."
                    )


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
        f"&consumerWindowSize=0&callTimeout={milliseconds}{_artemis_tls(options) if options.tls else ''}"
    )


def _artemis_tls(options: JavaOptions) -> str:
    if options.key_file:
        raise InvalidOptionError("java+core:// has no option key_file: put the key into the file of certificate_file.")
    files = {"trustStore": ("PEMCA", options.ca_file), "keyStore": ("PEM", options.certificate_file)}
    given = [f"&{store}Type={kind}&{store}Path={quote(file)}" for store, (kind, file) in files.items() if file]
    return f"&sslEnabled=true&verifyHost=true{''.join(given)}"


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
    asks_before_sends=True,
    reads_files=True,
    beans={
        "reconnectAttempts": "0",
        "initialConnectAttempts": "1",
        "useTopologyForLoadBalancing": "false",
        "consumerWindowSize": "0",
        "callTimeout": "{timeout}",
    },
    headers={
        "JMSMessageID": MESSAGE_ID,
        "JMSDeliveryMode": "AMQDurable",
        "JMSPriority": "AMQPriority",
        "JMSTimestamp": "AMQTimestamp",
    },
    values={"JMSDeliveryMode": EngineValues(lambda mode: _DELIVERY_MODES.get(mode, ""), tuple(_DELIVERY_MODES))},
    codes=dict.fromkeys(_CHANGED, IllegalStateError),
    changed=_CHANGED,
    xa_factory="org.apache.activemq.artemis.jms.client.ActiveMQXAConnectionFactory",
)


_ACTIVEMQ_BEANS = {
    "prefetchPolicy.queuePrefetch": "0",
    "prefetchPolicy.topicPrefetch": "0",
    "prefetchPolicy.durableTopicPrefetch": "0",
    "redeliveryPolicy.initialRedeliveryDelay": "0",
    "redeliveryPolicy.redeliveryDelay": "0",
    "redeliveryPolicy.maximumRedeliveries": "-1",
}


def _activemq_url(address: str, options: JavaOptions) -> str:
    scheme = "ssl" if options.tls else "tcp"
    return f"{scheme}://{address}?{'&'.join(f'jms.{name}={value}' for name, value in _ACTIVEMQ_BEANS.items())}"


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
    beans=_ACTIVEMQ_BEANS,
    tls_factory="org.apache.activemq.ActiveMQSslConnectionFactory",
    address="brokerURL",
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
    return f"amqp{'s' if options.tls else ''}://{address}?{options_of_jms}&jms.requestTimeout={milliseconds}"


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
"""The clients that are tested with their brokers, by the schemes of URLs."""

# What every client has, or refuses loudly.
_OF_JMS = Capabilities(
    transacted_receive=True,
    transacted_send=True,
    atomic=True,
    give_back="counted",
    units="receive",
    selectors=True,
    browse=True,
    durable=True,
    shared=True,
    client_ids=True,
    temporary=True,
    shared_between_processes=True,
    structured=True,
)

OTHER = Client(
    BrokerProfile("This broker", "an unknown client of Java", "0", _OF_JMS),
    "",
    0,
    None,
    re.compile(r"[*#>?]|::"),
)

_ANY_QPID = replace(
    OTHER,
    profile=BrokerProfile("This broker", "AMQP 1.0 through Qpid JMS", "0", replace(_OF_JMS, exact_credit=True)),
    factory=QPID.factory,
    beans={"prefetchPolicy.all": "0", "forceSyncSend": "true", "requestTimeout": "{timeout}"},
    address="remoteURI",
    hears_refusals=True,
    headers=QPID.headers,
)

_TLS_REMEDY = "Correct WMQ_SSL_CIPHER_SUITE, which must fit the channel's SSLCIPH, or the stores of certificates."
_NAME_REMEDY = "Correct the name of the queue, or define it."
_MQ_REASONS: dict[int, tuple[type[JMSError], str]] = {
    2009: (ConnectionLostError, "The server ended the connection: does a queue manager listen at this port?"),
    2030: (ResourceAllocationError, "Raise MAXMSGL of the queue, or send a smaller message."),
    2031: (
        ResourceAllocationError,
        "Raise MAXMSGL of the queue manager and of the channel, or send a smaller message.",
    ),
    2035: (JMSSecurityError, LOGIN_REMEDY),
    2042: (ResourceAllocationError, "The queue is in exclusive use: end its other consumer, or define it SHARE."),
    2053: (ResourceAllocationError, "The queue is full: raise MAXDEPTH, or start its consumers."),
    2056: (ResourceAllocationError, "There is no space on the queue manager's disk."),
    2058: (ConfigurationError, "Correct QueueManager: another queue manager answers at this address."),
    2059: (ConnectionLostError, "Start the queue manager and its listener, or correct host, port and channel."),
    2063: (JMSSecurityError, LOGIN_REMEDY),
    2082: (InvalidDestinationError, "The alias refers to a queue that does not exist."),
    2085: (InvalidDestinationError, _NAME_REMEDY),
    2152: (InvalidDestinationError, _NAME_REMEDY),
    2161: (ConnectionLostError, "The queue manager is stopping."),
    2162: (ConnectionLostError, "The queue manager is stopping."),
    2203: (ConnectionLostError, "The queue manager is stopping."),
    2278: (
        ConfigurationError,
        "Correct CCDTURL: the file is missing or damaged, or has no channel for this queue manager.",
    ),
    2393: (ConfigurationError, _TLS_REMEDY),
    2397: (ConfigurationError, _TLS_REMEDY),
    2400: (ConfigurationError, _TLS_REMEDY),
    2495: (ConfigurationError, "TransportType=0 needs IBM MQ on this machine: use 1, a client on the network."),
    2537: (ConnectionLostError, "Start the channel, or raise its MAXINST."),
    2538: (ConnectionLostError, "Nothing listens there: start the queue manager's listener, or correct host and port."),
    2540: (ConfigurationError, "Correct Channel: the queue manager has no server-connection channel of this name."),
}
_MQ_URI_OPTIONS = (
    "CCSID alternateUserId brokerCCDurSubQueue brokerDurSubQueue brokerPubQueue brokerPubQueueManager brokerVersion"
    " encoding expiry failIfQuiesce mdMessageContext mdReadEnabled mdWriteEnabled messageBody multicast persistence"
    " priority putAsyncAllowed readAheadAllowed readAheadClosePolicy receiveCCSID receiveConversion replyToStyle"
    " targetClient unmappableAction unmappableReplacement wildcardFormat"
)

IBM_MQ = Client(
    BrokerProfile("IBM MQ", "its own client of Java", "0", replace(_OF_JMS, delivery_count=True)),
    "com.ibm.mq.{jakarta}jms.MQConnectionFactory",
    1414,
    None,
    re.compile(r"[#+*]"),
    beans={"clientReconnectOptions": "33554432"},  # disabled
    vendor="JMS_IBM_",
    codes={"JMSCC0005": InvalidDestinationError, **{str(code): kind for code, (kind, _) in _MQ_REASONS.items()}},
    remedies={str(code): remedy for code, (_, remedy) in _MQ_REASONS.items()},
    uri_options=frozenset(_MQ_URI_OPTIONS.split()),
)

_DETECTED = (ARTEMIS, ACTIVEMQ, _ANY_QPID, IBM_MQ, OTHER)
"""The clients that a factory shows by its class; the last one is any other."""

_FACTORIES = {
    *(client.factory for client in _DETECTED),
    "com.ibm.mq.jakarta.jms.MQConnectionFactory",
    "com.ibm.mq.jms.MQConnectionFactory",
    "com.solacesystems.jms.SolConnectionFactoryImpl",
    "com.sun.messaging.ConnectionFactory",
    "com.tibco.tibjms.TibjmsConnectionFactory",
    "org.apache.activemq.ActiveMQSslConnectionFactory",
}
_CONTEXTS = {
    "com.solacesystems.jndi.SolJNDIInitialContextFactory",
    "com.sun.jndi.fscontext.RefFSContextFactory",
    "com.swiftmq.jndi.InitialContextFactoryImpl",
    "com.tibco.tibjms.naming.TibjmsInitialContextFactory",
    "org.apache.activemq.artemis.jndi.ActiveMQInitialContextFactory",
    "org.apache.activemq.jndi.ActiveMQInitialContextFactory",
    "org.apache.qpid.jms.jndi.JmsInitialContextFactory",
    "org.wildfly.naming.client.WildFlyInitialContextFactory",
    "weblogic.jndi.WLInitialContextFactory",
}


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a connection of a URL is made.

    Args:
        options: The options of jmsjca.
        clients: The clients that it may turn out to be.
        factory: The class of the factory; empty if the factory is looked up.
        lookup: The name of the factory in JNDI; None if there is a class.
        url: The argument of the factory's constructor; None if it has no argument.
        settings: The bean properties of the factory, or the environment of JNDI.
        destinations: The names in JNDI of destinations, by their kinds (1 for a queue, 2 for a topic) and names.
        encrypted: True if passwords certainly go over TLS.
        xa_factory: The class of the factory of XA; empty if it is the same one, or there is none.
        tls_files: The files of the authority, the certificate and its key, for the bridge.
    """

    options: JavaOptions
    clients: tuple[Client, ...]
    factory: str = ""
    lookup: str | None = None
    url: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    destinations: Mapping[str, str] = field(default_factory=dict[str, str])
    encrypted: bool = False
    xa_factory: str = ""
    tls_files: tuple[str | None, str | None, str | None] = (None, None, None)

    @property
    def secrets(self) -> list[str]:
        """The values of settings that no log may show."""
        return [value for name, value in self.settings.items() if value and _SECRET.search(name)]


_SECRET = re.compile("password|secret|credential|passphrase", re.IGNORECASE)
_REMOTE = re.compile(r"(?:^|[\s,;(])(?:ldaps?|rmi|iiop(?:name)?|corba(?:loc|name)|dns|nis):", re.IGNORECASE)
_WITH_SCHEME = re.compile(r"\s*[a-z][\w+.\-]*:", re.IGNORECASE)
_CLASSES_OF_JNDI = re.compile(r"java\.naming\.factory\.")
_DESTINATION = re.compile(r"lookup\.(queue|topic)\.(.+)", re.DOTALL)
_OWN = {option.name for option in fields(JavaOptions)}


def recipe_of(url: ConnectionURL) -> Recipe:
    """Return how the connection of a URL is made. Nothing is connected.

    Raises:
        InvalidURLError: It names no host, class or object.
        InvalidOptionError: An option is unknown, or its value is invalid; or it names a class or a kind of look-up that
            is not allowed.
    """
    if url.protocol in CLIENTS:
        return _recipe_of_broker(url, CLIENTS[url.protocol])
    own, others = ({k: v for k, v in url.query.items() if (k in _OWN) is wanted} for wanted in (True, False))
    options = JavaOptions.parse(replace(url, query=own))
    return {"java": _recipe_of_class, "jndi": _recipe_of_lookup, "wmq": _recipe_of_ibm_mq}[url.protocol](
        url, options, others
    )


def _recipe_of_broker(url: ConnectionURL, client: Client) -> Recipe:
    options = JavaOptions.parse(url)
    if not url.host:
        raise InvalidURLError(f"{url} names no host.")
    address = f"{url.host}:{url.port or client.port}"
    _check_effects(url, "" if options.tls else "tls=true")
    return Recipe(
        options,
        (replace(client, factory="", beans={}, address=""),),
        (options.tls and client.tls_factory) or client.factory,
        url=client.url(address, options) if client.url else None,
        encrypted=options.tls,
        xa_factory=client.xa_factory,
        tls_files=(None, None, None) if client.reads_files else _files(options),
    )


_FILES = ("ca_file", "certificate_file", "key_file")


def _files(options: JavaOptions) -> tuple[str | None, str | None, str | None]:
    return options.ca_file, options.certificate_file, options.key_file


def _check_effects(url: ConnectionURL, tls: str) -> None:
    """Raise an error for options of other network brokers that would have no effect.

    Args:
        url: The URL.
        tls: What the options of certificates need that the URL does not have; empty if they have an effect.

    Raises:
        InvalidOptionError: There is one.
    """
    reasons: dict[str, str] = dict.fromkeys(("heartbeat", "management_url"), "leave it out")
    reasons |= dict.fromkeys(_FILES, f"it needs {tls}") if tls else {}
    reasons |= {} if url.protocol in CLIENTS else {"tls": "TLS is SSLCipherSuite, or a property of the factory"}
    for name in url.query:
        if name in reasons:
            raise InvalidOptionError(f"Option {name} of {url} would have no effect: {reasons[name]}.")


def _recipe_of_class(url: ConnectionURL, options: JavaOptions, beans: Mapping[str, str]) -> Recipe:
    if not url.host or url.path or url.others:
        raise InvalidURLError(f"{url} needs one class: java://com.example.ConnectionFactory?property=value.")
    _check_effects(url, _OF_FACTORY)
    _check_classes([url.host], _FACTORIES, options, str(url))
    if given := [name for name in beans if name.lower() in {"user", "username", "password"}]:
        raise InvalidOptionError(
            f"{url}: the login is not a property of the factory. Leave {given[0]} out, and give it as credentials."
        )
    return Recipe(options, _DETECTED, url.host, settings=beans)


def _recipe_of_lookup(url: ConnectionURL, options: JavaOptions, given: Mapping[str, str]) -> Recipe:
    _check_effects(url, _OF_FACTORY)
    found = {name: _DESTINATION.fullmatch(name) for name in given}
    destinations = {f"{1 if m[1] == 'queue' else 2}{m[2]}": given[name] for name, m in found.items() if m}
    environment = {name: value for name, value in given.items() if not found[name]}
    factories = {key: value for key, value in environment.items() if key.lower() in _FACTORY_OPTIONS}
    environment = {key: value for key, value in environment.items() if key not in factories}
    name = unquote(f"{url.host}{url.path}" if url.host else url.path.removeprefix("/"))
    names = {name, *factories.values()} - {""}
    if len(names) != 1 or url.others:
        raise InvalidURLError(
            f"{url} needs the name of one connection factory, for queues and topics: jndi://jms/ConnectionFactory?…, or"
            " the option JMSJCA.UnifiedCF."
        )
    (name,) = names
    if not environment.get(_INITIAL):
        raise InvalidOptionError(f"{url} needs the option {_INITIAL}: the class by which JNDI begins.")
    classes = [c for key, value in environment.items() if _CLASSES_OF_JNDI.match(key) for c in value.split(":")]
    _check_classes(classes, _CONTEXTS, options, str(url))
    remote = [key for key, value in environment.items() if _REMOTE.search(value)]
    remote += [each for each in (name, *destinations.values()) if _WITH_SCHEME.match(each)]
    if remote and not options.allow_remote_lookups:
        raise InvalidOptionError(
            f"{url}: {remote[0]!r:.200} makes JNDI ask a server that may answer with code. If you trust it, add the"
            " option allow_remote_lookups=true."
        )
    return Recipe(options, _DETECTED, lookup=name, settings=environment, destinations=destinations)


_OF_FACTORY = "a client that jmsjca configures; this factory has its own properties"
_INITIAL = "java.naming.factory.initial"
_FACTORY_OPTIONS = {"jmsjca.unifiedcf", "jmsjca.queuecf", "jmsjca.topiccf"}


def _check_classes(names: Iterable[str], known: set[str], options: JavaOptions, url: str) -> None:
    for name in names:
        if name not in known and name not in options.allow_classes.split(","):
            raise InvalidOptionError(
                f"{url} names the class {name!r:.200}, which is not a known one: its code would run. If you trust it,"
                f" add the option allow_classes={name:.200}."
            )


_MQ_NAMES = (
    "CCDTURL CCSID MQConnectionOptions SSLCipherSuite SSLFipsRequired SSLPeerName SSLResetCount appName"
    " asyncExceptions balancingApplicationType balancingOptions balancingTimeout brokerCCSubQueue"
    " brokerControlQueue brokerPubQueue brokerQueueManager brokerSubQueue brokerVersion certificateValPolicy"
    " channel cleanupInterval cleanupLevel cloneSupport connectionNameList description failIfQuiesce hdrCompList"
    " localAddress mapNameStyle maxBufferSize messageRetention messageSelection msgBatchSize msgCompList multicast"
    " optimisticPublication outcomeNotification pollingInterval processDuration providerVersion pubAckInterval"
    " queueManager receiveExit receiveExitInit receiveIsolation rescanInterval securityExit securityExitInit"
    " sendCheckCount sendExit sendExitInit shareConvAllowed sparseSubscriptions statusRefreshInterval"
    " subscriptionStore syncpointAllGets targetClientMatching tempQPrefix tempTopicPrefix temporaryModel"
    " tokenClientId tokenClientSecret tokenEndpoint transportType useConnectionPooling userAuthenticationMQCSP"
    " wildcardFormat"
)
_MQ_BEANS = {bean.lower(): bean for bean in _MQ_NAMES.split()}
_MQ_CONSTANTS = {  # those whose bean has another name
    "applicationname": "appName",
    "connectionmode": "transportType",
    "connectoptions": "MQConnectionOptions",
    "headercomp": "hdrCompList",
    "msgcomp": "msgCompList",
    "sslkeyresetcount": "SSLResetCount",
}
_MQ_CONSTANT = re.compile("WMQ_", re.IGNORECASE)


def _recipe_of_ibm_mq(url: ConnectionURL, options: JavaOptions, given: Mapping[str, str]) -> Recipe:
    """Return the recipe for IBM MQ, with JMSJCA's names of options: those of the factory's properties, or WMQ_…."""
    beans = {_mq_bean(name): value for name, value in given.items()}
    exits = [name for bean, value in beans.items() if bean.endswith("Exit") for name in value.split(",")]
    _check_classes(exits, set(), options, str(url))
    if url.host:
        beans = {"hostName": url.host.strip("[]"), "port": str(url.port or IBM_MQ.port), **beans}
        beans.setdefault("queueManager", f"QM_{url.host}")
    elif not {"CCDTURL", "connectionNameList"} & beans.keys() and beans.get("transportType") != "0":
        raise InvalidURLError(f"{url} names no host: wmq://host:1414?QueueManager=…, or wmq://?CCDTURL=file:///….")
    beans.setdefault("transportType", "1")
    encrypted = bool(beans.get("SSLCipherSuite"))
    has_table = "CCDTURL" in beans  # which may name a cipher suite
    _check_effects(url, "" if encrypted or has_table else "SSLCipherSuite")
    client = replace(IBM_MQ, factory="")
    return Recipe(options, (client,), IBM_MQ.factory, settings=beans, encrypted=encrypted, tls_files=_files(options))


def _mq_bean(name: str) -> str:
    key = _MQ_CONSTANT.sub("", name, 1).replace("_", "").lower()
    bean = _MQ_CONSTANTS.get(key) or _MQ_BEANS.get(key)
    if bean is None:
        raise InvalidOptionError(f"wmq:// has no option {name[:50]!r} {did_you_mean(key, _MQ_BEANS)}.")
    return bean


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


_OF_TLS = ("javax.net.ssl.SSLHandshake", "java.security.cert.", "sun.security.validator.")
_CERTIFICATE_REMEDY = (
    "Use the host name of the broker's certificate, name its authority with ca_file, and your own certificate with"
    " certificate_file if the broker wants one."
)


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
    if any(of.startswith("com.ibm.mq.") for of, _, _ in error.causes):  # from a factory that was looked up
        client = IBM_MQ
    codes = (code for _, text, own in error.causes for code in (own or "", text.partition(":")[0]))
    known = (kind for text, kind in client.texts.items() if any(told.startswith(text) for _, told, _ in error.causes))
    code = next((code for code in codes if code in client.codes), "")
    certificates = any(of.startswith(_OF_TLS) for of, _, _ in error.causes)
    if certificates and not code:
        return JMSSecurityError(f"Java's client cannot {doing}: {error.text}. {_CERTIFICATE_REMEDY}")
    kind = client.codes.get(code) or next(known, _KINDS.get(error.kind, default))
    reason = f" (reason {code})" if code.isdigit() else ""
    remedy = client.remedies.get(code) or (LOGIN_REMEDY if kind is JMSSecurityError else "")
    return kind(f"Java's client cannot {doing}: {error.text.removesuffix('.')}{reason}. {remedy}".rstrip())
