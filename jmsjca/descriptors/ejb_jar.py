"""``ejb-jar.xml`` and its companions of Sun and WebLogic: the activation specs of message-driven beans."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from xml.etree.ElementTree import Element

from jmsjca.config.activation_spec import ActivationSpec
from jmsjca.config.deployment_descriptor import is_known_property
from jmsjca.descriptors.migration import Report
from jmsjca.descriptors.xml_file import children, text_of
from jmsjca.errors import ConfigurationError, InvalidActivationSpecError

__all__ = ["Companion", "MessageDrivenBean", "read_beans", "read_sun_companion", "read_weblogic_companion"]

_PROPERTY = "activation-config-property"
_UNKNOWN = "there is no such property here"


@dataclass
class Companion:
    """The additions of the server's own descriptor to one bean.

    Attributes:
        properties: Activation properties, which override those of ``ejb-jar.xml``.
        names: The global names of the bean's references, by their local names.
        destination: The global name of the bean's destination; empty if none.
        resource_adapter: The name of the bean's resource adapter; empty if none.
        pool_size: The maximum number of beans; empty if none.
    """

    properties: dict[str, str] = field(default_factory=dict[str, str])
    names: dict[str, str] = field(default_factory=dict[str, str])
    destination: str = ""
    resource_adapter: str = ""
    pool_size: str = ""


@dataclass
class MessageDrivenBean:
    """A message-driven bean.

    Attributes:
        name: Its name.
        spec: Its activation spec.
        factories: The Java interfaces of the connection factories that it refers to, by their local names.
        destinations: The kinds of the destinations that it refers to, "queue" or "topic", by their local names.
        names: The global names of its references, by their local names.
    """

    name: str
    spec: ActivationSpec
    factories: dict[str, str] = field(default_factory=dict[str, str])
    destinations: dict[str, str] = field(default_factory=dict[str, str])
    names: dict[str, str] = field(default_factory=dict[str, str])


def read_beans(
    path: str, root: Element, companions: Mapping[str, Companion], report: Report
) -> Iterator[MessageDrivenBean]:
    """Yield the message-driven beans of an ``ejb-jar.xml``, and report what is not carried over.

    Args:
        path: The name of the file, for the report.
        root: Its root element.
        companions: The additions of the server's descriptors, by the name of the bean.
        report: Collects what is not carried over.

    Raises:
        ConfigurationError: A property of a bean is invalid.
    """
    attributes = dict(_transaction_attributes(root))
    for element in children(root, "enterprise-beans/message-driven"):
        name = text_of(element, "ejb-name")
        bean = _bean(path, element, companions.get(name, Companion()), attributes.get(name, ""), report)
        _report_bean(path, element, attributes.get(name, ""), report)
        yield bean
    for element in children(root, "enterprise-beans/*"):
        if element.tag != "message-driven":
            report.note(path, element.tag, text_of(element, "ejb-name"), "it is no message-driven bean")


def _transaction_attributes(root: Element) -> Iterator[tuple[str, str]]:
    for element in children(root, "assembly-descriptor/container-transaction"):
        for name in element.iter("ejb-name"):
            yield (name.text or "").strip(), text_of(element, "trans-attribute")


def _bean(path: str, element: Element, companion: Companion, attribute: str, report: Report) -> MessageDrivenBean:
    name = text_of(element, "ejb-name")
    where = f"message-driven {name}"
    given = _activation_properties(element) | companion.properties
    known = {key: value for key, value in given.items() if is_known_property(key)}
    for key in (key for key in given if key not in known):
        report.note(path, where, key, _UNKNOWN)
    _add_defaults(known, companion)
    if attribute == "NotSupported" or text_of(element, "transaction-type") == "Bean":
        known["transaction"] = "none"
    try:
        spec = ActivationSpec.from_properties(known, from_descriptor=True)
    except InvalidActivationSpecError as error:
        raise ConfigurationError(f"{path}: {where}: {error}") from None
    return MessageDrivenBean(
        name, spec, dict(_factory_references(element)), dict(_destination_references(element)), companion.names
    )


def _activation_properties(element: Element) -> dict[str, str]:
    return {
        text_of(each, f"{_PROPERTY}-name"): text_of(each, f"{_PROPERTY}-value")
        for each in children(element, f"activation-config/{_PROPERTY}")
    }


def _add_defaults(known: dict[str, str], companion: Companion) -> None:
    """Add the destination and the pool's size of the server's descriptor where the bean has none."""
    names = {key.lower() for key in known}
    if companion.destination and "destination" not in names:
        known["destination"] = f"lookup://{companion.destination}"
    if companion.pool_size and "endpointpoolmaxsize" not in names:
        known["endpointPoolMaxSize"] = companion.pool_size


def _factory_references(element: Element) -> Iterator[tuple[str, str]]:
    for each in children(element, "resource-ref"):
        interface = text_of(each, "res-type").replace("jakarta.jms.", "javax.jms.", 1)
        if interface.endswith("ConnectionFactory"):
            yield text_of(each, "res-ref-name"), interface


_KINDS = {"javax.jms.Queue": "queue", "javax.jms.Topic": "topic"}


def _destination_references(element: Element) -> Iterator[tuple[str, str]]:
    for prefix in ("message-destination", "resource-env"):
        for each in children(element, f"{prefix}-ref"):
            kind = _KINDS.get(text_of(each, f"{prefix}-type").replace("jakarta.jms.", "javax.jms.", 1)) or _KINDS.get(
                text_of(each, f"{prefix}-ref-type").replace("jakarta.jms.", "javax.jms.", 1)
            )
            if kind:
                yield text_of(each, f"{prefix}-ref-name"), kind


def _report_bean(path: str, element: Element, attribute: str, report: Report) -> None:
    where = f"message-driven {text_of(element, 'ejb-name')}"
    report.note(path, where, "ejb-class", f"{text_of(element, 'ejb-class')}: name its successor as handler")
    kind = text_of(element, "transaction-type")
    if kind == "Container":
        reason = f"{attribute or 'Required'}: receipt and sends of the session commit together (transaction = 'local')"
        report.note(path, where, "transaction-type", reason)
    elif kind:
        report.note(path, where, "transaction-type", f"{kind}: the receipt is not in a transaction of the handler")
    for entry in children(element, "env-entry"):
        report.note(path, where, text_of(entry, "env-entry-name"), "environment entries: pass them to your handler")
    for reference in children(element, "resource-ref"):
        if not text_of(reference, "res-type").endswith("ConnectionFactory"):
            report.note(path, where, text_of(reference, "res-ref-name"), "it is no connection factory of JMS")


def read_sun_companion(path: str, root: Element, report: Report) -> dict[str, Companion]:
    """Return what a ``sun-ejb-jar.xml`` (or ``glassfish-ejb-jar.xml``) adds, by the name of the bean."""
    return {
        text_of(bean, "ejb-name"): _sun_companion(path, bean, report) for bean in children(root, "enterprise-beans/ejb")
    }


def _sun_companion(path: str, bean: Element, report: Report) -> Companion:
    adapter = bean.find("mdb-resource-adapter")
    companion = Companion(
        properties=_activation_properties(adapter) if adapter is not None else {},
        names=dict(_names(bean, "resource-ref", "res-ref-name", "jndi-name")),
        destination="" if adapter is not None else text_of(bean, "jndi-name"),
        resource_adapter=text_of(adapter, "resource-adapter-mid"),
        pool_size=text_of(bean, "bean-pool/max-pool-size"),
    )
    companion.names |= dict(_names(bean, "message-destination-ref", "message-destination-ref-name", "jndi-name"))
    companion.names |= dict(_names(bean, "resource-env-ref", "resource-env-ref-name", "jndi-name"))
    read = {"ejb-name", "resource-ref", "resource-env-ref", "message-destination-ref", "mdb-resource-adapter"}
    _report_children(path, bean, read, report)
    return companion


def read_weblogic_companion(path: str, root: Element, report: Report) -> dict[str, Companion]:
    """Return what a ``weblogic-ejb-jar.xml`` adds, by the name of the bean."""
    return {
        text_of(bean, "ejb-name"): _weblogic_companion(path, bean, report)
        for bean in children(root, "weblogic-enterprise-bean")
    }


def _weblogic_companion(path: str, bean: Element, report: Report) -> Companion:
    driven = bean.find("message-driven-descriptor")
    companion = Companion(
        names=dict(_names(bean, ".//resource-description", "res-ref-name", "jndi-name")),
        destination=text_of(driven, "destination-jndi-name"),
        resource_adapter=text_of(driven, "resource-adapter-jndi-name"),
        pool_size=text_of(driven, "pool/max-beans-in-free-pool"),
    )
    companion.names |= dict(_names(bean, ".//resource-env-description", "resource-env-ref-name", "jndi-name"))
    if client_id := text_of(driven, "jms-client-id"):
        companion.properties["ClientId"] = client_id
    _report_children(path, bean, {"ejb-name", "message-driven-descriptor", "resource-description"}, report)
    read = {"destination-jndi-name", "resource-adapter-jndi-name", "pool", "jms-client-id"}
    if driven is not None:
        _report_children(path, driven, read, report)
    return companion


def _names(bean: Element, path: str, local: str, remote: str) -> Iterator[tuple[str, str]]:
    for each in bean.iterfind(path):
        yield text_of(each, local), text_of(each, remote)


def _report_children(path: str, element: Element, read: set[str], report: Report) -> None:
    where = f"{element.tag} {text_of(element, 'ejb-name')}".strip()
    for child in element:
        if child.tag not in read:
            report.note(path, where, child.tag, "it configures the Java server")
