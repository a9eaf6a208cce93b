"""``ejb-jar.xml`` and its companions of Sun, WebLogic and JBoss: the activation specs of message-driven beans."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from xml.etree.ElementTree import Element

from jmsjca.config.activation_spec import ActivationSpec, field_of
from jmsjca.descriptors.migration import Report
from jmsjca.descriptors.xml_file import Descriptor, children
from jmsjca.errors import ConfigurationError, InvalidActivationSpecError

__all__ = ["Companion", "Companions", "MessageDrivenBean", "bean_name", "bean_names", "is_jboss", "read_bean"]

_PROPERTY = "activation-config-property"
_UNKNOWN = "jmsjca has no such property"
_KINDS = {"javax.jms.Queue": "queue", "javax.jms.Topic": "topic"}
_JBOSS = ("http://www.jboss.com/", "urn:jboss:")


@dataclass
class Companion:
    """The settings that the vendors' descriptors add to one bean.

    Attributes:
        properties: Activation properties. They override the properties in ``ejb-jar.xml``.
        defaults: Activation properties that apply if the bean does not set them, by the name of their element.
        names: Global names of the bean's references, by local name.
        resource_adapter: Name of the bean's resource adapter; empty if not set.
    """

    properties: dict[str, str] = field(default_factory=dict[str, str])
    defaults: dict[str, tuple[str, str]] = field(default_factory=dict[str, "tuple[str, str]"])
    names: dict[str, str] = field(default_factory=dict[str, str])
    resource_adapter: str = ""


@dataclass
class MessageDrivenBean:
    """A message-driven bean.

    Attributes:
        name: Name of the bean.
        spec: Activation spec of the bean.
        factories: Java interfaces of the referenced connection factories, by local name.
        destinations: Kinds of the referenced destinations, "queue" or "topic", by local name.
        names: Global names of the references, by local name.
    """

    name: str
    spec: ActivationSpec
    factories: dict[str, str] = field(default_factory=dict[str, str])
    destinations: dict[str, str] = field(default_factory=dict[str, str])
    names: dict[str, str] = field(default_factory=dict[str, str])


def is_jboss(descriptor: Descriptor) -> bool:
    """Return True for a ``jboss-ejb3.xml``. Its root element has the same name as in an ``ejb-jar.xml``."""
    return descriptor.namespace.startswith(_JBOSS)


def bean_names(jars: Iterable[Descriptor]) -> list[str]:
    """Return the unique names of the message-driven beans in ``ejb-jar.xml`` and ``jboss-ejb3.xml`` files."""
    beans = (each for jar in jars for each in children(jar.root, "enterprise-beans/message-driven"))
    return list(dict.fromkeys(map(bean_name, beans)))


def bean_name(element: Element) -> str:
    """Return the name of a bean without marking it as read."""
    return (element.findtext("ejb-name") or "").strip()


class Companions:
    """The settings that the vendors' descriptors add to the message-driven beans.

    Attributes:
        beans: The settings, by bean name.
        destinations: Global names of the destinations that a ``message-destination-link`` refers to.

    Args:
        names: Names of the message-driven beans.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self.beans = {name: Companion() for name in names}
        self.destinations: dict[str, str] = {}

    def read(self, descriptor: Descriptor) -> None:
        """Read a descriptor of any vendor."""
        if descriptor.root.tag == "ejb-jar":
            self._read_jar(descriptor)
        elif descriptor.root.tag == "weblogic-ejb-jar":
            self._read_weblogic(descriptor)
        else:
            self._read_sun(descriptor)

    def _beans(self, descriptor: Descriptor, path: str) -> Iterator[tuple[Element, Companion]]:
        for bean in children(descriptor.root, path):
            if companion := self.beans.get(bean_name(bean)):
                descriptor.text(bean, "ejb-name")
                yield bean, companion

    def _read_sun(self, descriptor: Descriptor) -> None:
        text = descriptor.text
        for bean, companion in self._beans(descriptor, "enterprise-beans/ejb"):
            adapter, login = bean.find("mdb-resource-adapter"), "mdb-connection-factory/default-resource-principal/"
            companion.properties |= _activation_properties(descriptor, adapter)
            companion.resource_adapter = text(adapter, "resource-adapter-mid") or companion.resource_adapter
            companion.defaults |= _found(
                ("destinationLookup", "jndi-name", text(bean, "jndi-name")),
                ("connectionFactoryLookup", "mdb-connection-factory", text(bean, "mdb-connection-factory/jndi-name")),
                ("UserName", "default-resource-principal name", text(bean, f"{login}name")),
                ("Password", "default-resource-principal password", text(bean, f"{login}password")),
                ("subscriptionName", _SUN_SUBSCRIPTION, text(bean, _SUN_SUBSCRIPTION)),
                ("endpointPoolMaxSize", "max-pool-size", text(bean, "bean-pool/max-pool-size")),
            )
            for kind in ("resource", "resource-env", "message-destination"):
                local = "res-ref-name" if kind == "resource" else f"{kind}-ref-name"
                companion.names |= _names(descriptor, bean, f"{kind}-ref", local, "jndi-name")
        for path in ("enterprise-beans/message-destination", "message-destination"):
            self.destinations |= _names(descriptor, descriptor.root, path, "message-destination-name", "jndi-name")

    def _read_weblogic(self, descriptor: Descriptor) -> None:
        text = descriptor.text
        for bean, companion in self._beans(descriptor, "weblogic-enterprise-bean"):
            driven = bean.find("message-driven-descriptor")
            adapter = text(driven, "resource-adapter-jndi-name")
            companion.resource_adapter = adapter or companion.resource_adapter
            companion.properties |= {"ClientId": client_id} if (client_id := text(driven, "jms-client-id")) else {}
            companion.defaults |= _found(
                ("destinationLookup", "destination-jndi-name", text(driven, "destination-jndi-name")),
                ("connectionFactoryLookup", _WEBLOGIC_FACTORY, text(driven, _WEBLOGIC_FACTORY)),
                ("endpointPoolMaxSize", "max-beans-in-free-pool", text(driven, "pool/max-beans-in-free-pool")),
            )
            for prefix, local in (("resource", "res-ref-name"), ("resource-env", "resource-env-ref-name")):
                companion.names |= _names(descriptor, bean, f".//{prefix}-description", local, "jndi-name")
        place = ("message-destination-descriptor", "message-destination-name", "destination-jndi-name")
        self.destinations |= _names(descriptor, descriptor.root, *place)

    def _read_jar(self, descriptor: Descriptor) -> None:
        """Read the common elements of an ``ejb-jar.xml``, and the bindings of JBoss."""
        for bean, companion in chain(
            self._beans(descriptor, "enterprise-beans/message-driven"), self._beans(descriptor, "enterprise-beans/ejb")
        ):
            companion.defaults |= _found(
                ("destinationLookup", "destination-jndi-name", descriptor.text(bean, "destination-jndi-name"))
            )
            for remote in ("mapped-name", "jndi-name", "lookup-name"):  # the last one wins
                for kind in ("resource", "resource-env", "message-destination"):
                    local = "res-ref-name" if kind == "resource" else f"{kind}-ref-name"
                    companion.names |= _names(descriptor, bean, f"{kind}-ref", local, remote)
        for remote in ("mapped-name", "jndi-name", "lookup-name"):
            place = ("assembly-descriptor/message-destination", "message-destination-name", remote)
            self.destinations |= _names(descriptor, descriptor.root, *place)
        for binding in children(descriptor.root, "assembly-descriptor/resource-adapter-binding"):
            name, adapter = descriptor.text(binding, "ejb-name"), descriptor.text(binding, "resource-adapter-name")
            for bound in self.beans if name == "*" else self.beans.keys() & {name}:
                self.beans[bound].resource_adapter = adapter


_SUN_SUBSCRIPTION = "jms-durable-subscription-name"
_WEBLOGIC_FACTORY = "connection-factory-jndi-name"


def _found(*values: tuple[str, str, str]) -> dict[str, tuple[str, str]]:
    return {element: (name, value) for name, element, value in values if value}


def _names(descriptor: Descriptor, parent: Element, path: str, local: str, remote: str) -> dict[str, str]:
    pairs = [(each, (each.findtext(remote) or "").strip()) for each in children(parent, path)]
    return {descriptor.text(each, local): descriptor.text(each, remote) for each, value in pairs if value}


def _activation_properties(descriptor: Descriptor, element: Element | None) -> dict[str, str]:
    config = None if element is None else element.find("activation-config")
    return dict(descriptor.properties(config, _PROPERTY))


class _Sources:
    """The elements of one bean in ``ejb-jar.xml`` and in the JBoss files, which override it."""

    def __init__(self, name: str, jars: Iterable[Descriptor]) -> None:
        self.name = name
        self._jars = list(jars)
        self._elements = [
            (jar, each)
            for jar in sorted(self._jars, key=is_jboss)
            for each in children(jar.root, "enterprise-beans/*")
            if each.tag in ("message-driven", "ejb") and bean_name(each) == name
        ]
        self.file = self._elements[0][0].name

    def text(self, path: str) -> str:
        """Return the text at a path, from the last file that has one."""
        found = [jar.text(each, path) for jar, each in self._elements]
        return next((text for text in reversed(found) if text), "")

    def children(self, path: str) -> Iterator[tuple[Descriptor, Element]]:
        """Yield the elements at a path, each with its file."""
        for jar, element in self._elements:
            for each in children(element, path):
                yield jar, each

    def properties(self) -> Iterator[tuple[str, str]]:
        """Yield name and value of the activation properties in all files."""
        for jar, element in self._elements:
            yield from _activation_properties(jar, element).items()

    def transaction_attribute(self) -> str:
        """Return the transaction attribute of the method that receives messages. Timer methods have a separate one."""
        found = ""
        for jar in self._jars:
            for each in children(jar.root, "assembly-descriptor/container-transaction"):
                for method in children(each, "method"):
                    is_own, of = bean_name(method) in (self.name, "*"), (method.findtext("method-name") or "").strip()
                    if is_own and of in ("", "*", "onMessage"):
                        jar.text(method, "ejb-name")
                        jar.text(method, "method-name")
                        found = jar.text(each, "trans-attribute") or found
        return found


def read_bean(
    name: str, jars: Iterable[Descriptor], companions: Companions, defaults: Mapping[str, str], report: Report
) -> MessageDrivenBean:
    """Read a message-driven bean, and report the properties that are not carried over.

    Args:
        name: Name of the bean.
        jars: The ``ejb-jar.xml`` and ``jboss-ejb3.xml`` files.
        companions: Settings from the vendors' descriptors.
        defaults: Default activation properties of the bean's resource adapter.
        report: Collects what is not carried over.

    Raises:
        ConfigurationError: A property of the bean is invalid.
    """
    sources, companion = _Sources(name, jars), companions.beans[name]
    sources.text("ejb-name")
    links = {
        local: companions.destinations[link]
        for jar, each in sources.children("message-destination-ref")
        if (link := jar.text(each, "message-destination-link")) in companions.destinations
        and (local := jar.text(each, "message-destination-ref-name"))
    }
    attribute = sources.transaction_attribute()
    fields = _Fields(sources, companion, report)
    fields.add_defaults(companion.defaults)
    fields.add_defaults(_of_elements(sources, companions.destinations))
    fields.add_defaults({each: (each, value) for each, value in defaults.items()})
    if attribute == "NotSupported" or sources.text("transaction-type") == "Bean":
        fields.values["transaction"] = "transaction", "transaction-type", "none"
    bean = MessageDrivenBean(name, fields.spec(), names=links | companion.names)
    _read_references(bean, sources, report)
    _report_bean(sources, attribute, report)
    return bean


class _Fields:
    """The activation properties of a bean, by spec field: property name, element and value."""

    def __init__(self, sources: _Sources, companion: Companion, report: Report) -> None:
        self._file, self._where, self._report = sources.file, f"message-driven {sources.name}", report
        self._name = sources.name
        self.values: dict[str, tuple[str, str, str]] = {}
        found = {**dict(sources.properties()), **companion.properties}
        for name, value in sorted(found.items(), key=lambda each: each[0].lower().endswith("lookup")):
            known = field_of(name)
            if known is None:
                report.note(self._file, self._where, name, _UNKNOWN)
            elif name in companion.properties or known not in self.values:
                self.values[known] = name, name, value
            elif self.values[known][2] != value:
                self._note(name, known)

    def _note(self, element: str, known: str) -> None:
        self._report.note(self._file, self._where, element, f"{self.values[known][1]} counts instead")

    def add_defaults(self, defaults: Mapping[str, tuple[str, str]]) -> None:
        """Add properties, by element name, for the fields that have no value yet."""
        for element, (name, value) in defaults.items():
            known = field_of(name)
            if known is None:
                self._report.note(self._file, self._where, element, _UNKNOWN)
            elif known not in self.values or not self.values[known][2].strip():
                self.values[known] = name, element, value
            elif self.values[known][2] != value:
                self._note(element, known)

    def spec(self) -> ActivationSpec:
        """Build the activation spec."""
        if self.values.get("subscription_durability", ("", "", ""))[1:] == ("subscription-durability", "Durable"):
            self.add_defaults({"subscription-durability": ("subscriptionName", self._name)})  # EJB 2.0 has no name
        properties = {name: value for name, _, value in self.values.values()}
        try:
            return ActivationSpec.from_properties(properties, from_descriptor=True)
        except InvalidActivationSpecError as error:
            raise ConfigurationError(f"{self._file}: {self._where}: {error}") from None


def _of_elements(sources: _Sources, destinations: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return the properties that a bean sets through elements: EJB 2.0 elements, and EJB 2.1 links."""
    link = sources.text("message-destination-link")
    return _found(
        ("destinationType", "destination-type", sources.text("message-driven-destination/destination-type")),
        ("destinationType", "message-destination-type", sources.text("message-destination-type")),
        (
            "subscriptionDurability",
            "subscription-durability",
            sources.text("message-driven-destination/subscription-durability"),
        ),
        ("messageSelector", "message-selector", sources.text("message-selector")),
        ("acknowledgeMode", "acknowledge-mode", sources.text("acknowledge-mode")),
        ("destinationLookup", "message-destination-link", destinations.get(link, link)),
        ("destinationLookup", "mapped-name", sources.text("mapped-name")),
    )


def _read_references(bean: MessageDrivenBean, sources: _Sources, report: Report) -> None:
    where = f"message-driven {bean.name}"
    for jar, each in sources.children("resource-ref"):
        name, interface = jar.text(each, "res-ref-name"), _javax(jar.text(each, "res-type"))
        if interface.endswith("ConnectionFactory"):
            bean.factories[name] = interface
        elif name not in bean.factories:
            report.note(jar.name, where, name, "it is not a JMS connection factory")
            jar.done(each)
    for prefix in ("message-destination", "resource-env"):
        for jar, each in sources.children(f"{prefix}-ref"):
            name = jar.text(each, f"{prefix}-ref-name")
            types = jar.text(each, f"{prefix}-type"), jar.text(each, f"{prefix}-ref-type")
            kinds = [kind for kind in map(_KINDS.get, map(_javax, types)) if kind]
            if kinds:
                bean.destinations[name] = kinds[0]
            elif name not in bean.destinations:
                report.note(jar.name, where, name, "its type is neither javax.jms.Queue nor javax.jms.Topic")
                jar.done(each)


def _javax(interface: str) -> str:
    return interface.replace("jakarta.jms.", "javax.jms.", 1)


def _report_bean(sources: _Sources, attribute: str, report: Report) -> None:
    where, kind = f"message-driven {sources.name}", sources.text("transaction-type")
    if name := sources.text("ejb-class"):
        report.note(sources.file, where, "ejb-class", f"{name}: name its successor as handler")
    listener = _javax(sources.text("messaging-type"))
    if listener not in ("", "javax.jms.MessageListener"):
        report.note(sources.file, where, "messaging-type", f"{listener} is not the JMS message listener")
    if kind == "Container" or (attribute and not kind):
        reason = f"{attribute or 'Required'}: receipt and sends of the session commit together (transaction = 'local')"
        report.note(sources.file, where, "transaction-type", reason)
    elif kind:
        report.note(
            sources.file, where, "transaction-type", f"{kind}: the receipt is not in a transaction of the handler"
        )
    for jar, entry in sources.children("env-entry"):
        name = jar.text(entry, "env-entry-name")
        report.note(jar.name, where, name, "environment entries: pass them to your handler")
        jar.done(entry)
