"""Management beans: adapters and activations with the attributes and operations of JMSJCA's manual, found by name.

A bean exists as long as its adapter is referenced, so there is no registration. Attributes and operations have the
names of the manual (``NMessages``, ``getStatus``). Each is also a Python property or method (``n_messages``,
``get_status()``).
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from jmsjca import __version__
from jmsjca.adapter import ResourceAdapter, managed_adapters
from jmsjca.arguments import did_you_mean
from jmsjca.config.connection_url import ConnectionURL, is_url
from jmsjca.errors import ConfigurationError, NameNotFoundError, NotSupportedError, excerpt
from jmsjca.inbound import Activation, DistributedActivation
from jmsjca.management.insight import Insight
from jmsjca.outbound import ConnectionFactory

__all__ = ["ActivationBean", "AdapterBean", "Bean", "MBeanServer", "ServerBean"]

_SERVER_MANAGEMENT = ",servermgt=true"


class Bean:
    """Base class of all beans: attributes and operations by the names of the manual.

    Attributes:
        name: The name of the bean.
    """

    attribute_names: Sequence[str] = ()
    operation_names: Sequence[str] = ()

    def __init__(self, name: str) -> None:
        self.name = name

    def get_attribute(self, name: str) -> object:
        """Return the value of an attribute.

        Args:
            name: The name, for example "NMessages".

        Raises:
            NameNotFoundError: The bean has no such attribute.
        """
        return self._member(name, self.attribute_names, "attribute")

    def get_attributes(self) -> dict[str, object]:
        """Return all attributes by name."""
        return {name: self.get_attribute(name) for name in self.attribute_names}

    def invoke(self, name: str, *arguments: object) -> object:
        """Call an operation, and return its result.

        Args:
            name: The name, for example "getStatus".
            *arguments: The arguments of the operation.

        Raises:
            NameNotFoundError: The bean has no such operation.
            JMSError: The operation failed.
        """
        return self._member(name, self.operation_names, "operation")(*arguments)

    def _member(self, name: str, names: Sequence[str], kind: str) -> Any:
        if name not in names:
            raise NameNotFoundError(f"{self.name} has no {kind} {excerpt(name)!r} {_nearest(name, names)}")
        return getattr(self, _python_name(name))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


class ActivationBean(Bean):
    """The bean of an activation, by the name in its activation spec.

    Args:
        name: The name of the bean.
        activation: The activation.
        adapter: The adapter of the activation.
    """

    attribute_names = (
        *("ActivationSpec", "DeliveryMode", "NActiveEndpoints", "NConfiguredEndpoints", "NHighestActiveEndpoints"),
        *("NMessages", "NTotalEndpoints", "Paused", "ResourceAdapter", "Stats", "Suspended"),
    )
    operation_names = (
        *("start", "stop", "restart", "startService", "stopService", "resetStats", "getStatus", "getProperties"),
        *("getJMSServerMBean", "getJMSServerType", "isStartable", "isRestartable", "isStoppable"),
        *("pause", "resume", "resize"),
    )

    def __init__(self, name: str, activation: Activation, adapter: ResourceAdapter) -> None:
        super().__init__(name)
        self._activation = activation
        self._adapter = adapter

    @property
    def activation_spec(self) -> str:
        """A dump of the activation spec, without its password."""
        return self._activation.spec.dump()

    @property
    def delivery_mode(self) -> str:
        """The concurrency mode: "serial", "sync" or "cc"."""
        return self._activation.spec.concurrency_mode

    @property
    def n_active_endpoints(self) -> int:
        """Number of handlers that are active now."""
        return self._activation.stats.n_active_endpoints

    @property
    def n_configured_endpoints(self) -> int:
        """Number of endpoints that may exist; -1 without a connection."""
        return self._activation.stats.n_configured_endpoints

    @property
    def n_highest_active_endpoints(self) -> int:
        """Highest number of handlers that were active at the same time."""
        return self._activation.stats.n_highest_active_endpoints

    @property
    def n_messages(self) -> int:
        """Number of calls of the handler."""
        return self._activation.stats.n_messages

    @property
    def n_total_endpoints(self) -> int:
        """Number of endpoints that exist now."""
        return self._activation.stats.n_total_endpoints

    @property
    def paused(self) -> bool:
        """True between ``pause`` and ``resume``."""
        return self._activation.paused

    @property
    def resource_adapter(self) -> str | None:
        """Name of the adapter's bean; None if it has no bean."""
        return self._adapter.mbean_object_name

    @property
    def stats(self) -> str:
        """A snapshot of the performance figures, in the format of the manual."""
        return str(self._activation.stats)

    @property
    def suspended(self) -> bool:
        """True while the status is "Down"."""
        return self._activation.status == "Down"

    def start(self) -> None:
        """Start the delivery of messages."""
        self._activation.start()

    def stop(self) -> None:
        """Stop message delivery, and wait for active handlers."""
        self._activation.stop()

    def restart(self) -> None:
        """Stop, then start."""
        self._activation.restart()

    start_service, stop_service = start, stop

    def reset_stats(self) -> None:
        """Reset the counters of messages and commits, and the highest number of active handlers."""
        self._activation.reset_stats()

    def get_status(self) -> str:
        """Return "Up", "Down", "Connecting" or "Disconnecting"."""
        return self._activation.status

    def get_properties(self) -> str:
        """Return the configuration as lines ``name=value``, without settings that have no value."""
        return "\n".join(f"{name}={value}" for name, value in self.properties.items())

    @property
    def properties(self) -> Mapping[str, str]:
        """The configuration by the manual's names, without settings that have no value."""
        spec = self._activation.spec
        url = ConnectionURL.parse(spec.connection_url) if spec.connection_url else None
        found = {
            "destination.type": spec.destination_type,
            "destination.name": spec.destination,
            "subscriber.name": spec.subscription_name,
            "subscriber.durability": spec.subscription_durability if spec.destination_type == "topic" else None,
            "concurrency": spec.concurrency_mode,
            "url": url,
            "selector": spec.selector,
            "server": url.host if url is not None and not url.others else None,
            "port": url.port if url is not None and not url.others else None,
        }
        return {name: str(value) for name, value in found.items() if value not in (None, "")}

    def get_jms_server_mbean(self) -> str:
        """Return the name of the bean that manages the destinations of the broker."""
        return self.name + _SERVER_MANAGEMENT

    def get_jms_server_type(self) -> str:
        """Return the type of the broker: the protocol of its URL."""
        return _server_type(self._activation.spec.connection_url)

    def is_startable(self) -> bool:
        """Return True: an activation can be started."""
        return True

    is_restartable = is_stoppable = is_startable

    def pause(self) -> None:
        """Stop receiving messages, but keep the connection."""
        self._activation.pause()

    def resume(self) -> None:
        """Receive messages again."""
        self._activation.resume()

    def resize(self, size: int) -> None:
        """Change the maximum number of concurrent handlers.

        Args:
            size: The new maximum.
        """
        self._activation.resize(size)


class AdapterBean(Bean):
    """The bean of a resource adapter.

    Args:
        name: The name of the bean.
        adapter: The adapter.
    """

    attribute_names = ("Activations", "ConnectionFactoriesInfo", "RAInfo")
    operation_names = (
        *("getRAInfo", "getConnectionFactoriesInfo", "getJMSServerMBean", "getJMSServerType", "getStatus"),
        *("getProperties", "start", "stop", "restart", "isStartable", "isRestartable", "isStoppable"),
    )

    def __init__(self, name: str, adapter: ResourceAdapter) -> None:
        super().__init__(name)
        self._adapter = adapter

    @property
    def activations(self) -> list[str]:
        """The display names of the activations."""
        return [each.name for each in self._adapter.activations]

    @property
    def ra_info(self) -> str:
        """The library, its version, and the adapter, without a password."""
        return f"jmsjca {__version__}: {self._adapter!r}"

    @property
    def connection_factories_info(self) -> str:
        """One line per connection factory: its kind, its attributes, and the counters of its sending pool."""
        return "\n".join(sorted(map(_describe, self._adapter.connection_factories)))

    def get_ra_info(self) -> str:
        """Return the attribute ``RAInfo``."""
        return self.ra_info

    def get_connection_factories_info(self) -> str:
        """Return the attribute ``ConnectionFactoriesInfo``."""
        return self.connection_factories_info

    def get_jms_server_mbean(self) -> str:
        """Return the name of the bean that manages the destinations of the broker."""
        return self.name + _SERVER_MANAGEMENT

    def get_jms_server_type(self) -> str:
        """Return the type of the broker: the protocol of its URL.

        Raises:
            InvalidActivationSpecError: The adapter has no connection URL.
        """
        return _server_type(self._adapter.connection_factory().login.url)

    def get_status(self) -> str:
        """Return "Up": an adapter that exists is up."""
        return "Up"

    def get_properties(self) -> str:
        """Return an empty text: the attribute ``RAInfo`` has the adapter's configuration."""
        return ""

    def start(self) -> None:
        """Raise an error, because each activation has its own bean.

        Raises:
            NotSupportedError: Always.
        """
        raise NotSupportedError(
            f"{self.name} is an adapter, which is not started or stopped here: use its activations."
        )

    stop = restart = start

    def is_startable(self) -> bool:
        """Return False: see `start`."""
        return False

    is_restartable = is_stoppable = is_startable


class ServerBean(Bean):
    """The bean that manages the destinations of a broker.

    Args:
        name: The name of the bean.
        insight: Reads and manages the broker.

    Attributes:
        insight: The service of this bean, also for messages, dead letters and changes.
    """

    attribute_names = ("Destinations",)
    operation_names = ("getDestinations",)

    def __init__(self, name: str, insight: Insight) -> None:
        super().__init__(name)
        self.insight = insight

    @property
    def destinations(self) -> list[str]:
        """Destinations of the broker, as ``queue:NAME`` or ``topic:NAME``.

        Raises:
            NotSupportedError: The broker does not list its destinations.
        """
        return [str(each.destination) for each in self.insight.destinations()]

    def get_destinations(self) -> list[str]:
        """Return the attribute ``Destinations``."""
        return self.destinations


class MBeanServer:
    """Finds the beans of this process by name.

    Args:
        domain: Finds the beans of adapters with this ``mbean_server_domain``; None finds the beans of adapters without
            a domain.
    """

    def __init__(self, domain: str | None = None) -> None:
        self._domain = domain or None

    @classmethod
    def default(cls) -> "MBeanServer":
        """Return the server for adapters without a domain."""
        return cls()

    def names(self) -> list[str]:
        """Return the names of all beans, sorted."""
        return sorted(name for name, _ in self._beans())

    def lookup(self, name: str) -> Bean:
        """Find a bean by name.

        Raises:
            NameNotFoundError: No bean has the name.
            ConfigurationError: Several beans have the name.
        """
        found = [make for known, make in self._beans() if known == name]
        if len(found) > 1:
            raise ConfigurationError(f"{len(found)} beans have the name {excerpt(name)!r}: give each a separate name.")
        if not found:
            raise NameNotFoundError(f"There is no bean {excerpt(name)!r} {_nearest(name, self.names())}")
        return found[0]()

    def _beans(self) -> Iterator[tuple[str, Callable[[], Bean]]]:
        for adapter in managed_adapters():
            if (adapter.mbean_server_domain or None) == self._domain:
                yield from _beans_of(adapter)


def _beans_of(adapter: ResourceAdapter) -> Iterator[tuple[str, Callable[[], Bean]]]:
    name = adapter.mbean_object_name
    if name:
        yield name, lambda: AdapterBean(name, adapter)
        yield name + _SERVER_MANAGEMENT, lambda: ServerBean(name + _SERVER_MANAGEMENT, Insight(adapter))
    for activation in _sides(adapter.activations):
        if activation.spec.mbean_name:
            yield from _beans_of_activation(activation.spec.mbean_name, activation, adapter)


def _beans_of_activation(
    name: str, activation: Activation, adapter: ResourceAdapter
) -> Iterator[tuple[str, Callable[[], Bean]]]:
    server = name + _SERVER_MANAGEMENT
    yield name, lambda: ActivationBean(name, activation, adapter)
    yield server, lambda: ServerBean(server, Insight(activation.connection_factory()))


def _sides(activations: Sequence[Activation]) -> Iterator[Activation]:
    for activation in activations:
        yield activation
        if isinstance(activation, DistributedActivation):
            yield activation.topic_side


def _describe(factory: ConnectionFactory) -> str:
    """Return a factory and its attributes as text, without passwords. Counters are shown once its pool was used."""
    attributes = {
        "user_name": factory.login.user_name if not is_url(factory.login.user_name) else None,
        "client_id": factory.client_id,
        "producer_pooling": factory.producer_pooling,
        "idle_timeout": factory.idle_timeout,
        **factory.pool_stats(),
    }
    shown = "; ".join(f"{name}={value}" for name, value in attributes.items() if value is not None)
    return f"{factory!r}: {shown}"


def _server_type(url: str | None) -> str:
    return ConnectionURL.parse(url).protocol if url else "unknown"


def _nearest(name: str, names: Sequence[str]) -> str:
    return did_you_mean(name.lower(), {each.lower(): each for each in names})


def _python_name(name: str) -> str:
    """Return the Python name: ``n_active_endpoints`` for "NActiveEndpoints", or ``get_status`` for "getStatus"."""
    words = re.sub("JMSServerMBean", "JmsServerMbean", name).replace("JMS", "Jms").replace("RAInfo", "RaInfo")
    return re.sub(r"(?<!^)(?=[A-Z])", "_", words).lower()
