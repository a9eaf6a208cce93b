"""``ra.xml`` and its companion ``sun-ra.xml``: the adapter, its connection factories and administered objects."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

from pydantic import ValidationError

from jmsjca.config.configuration_file import AdapterSection, DestinationSection, FactorySection
from jmsjca.config.connection_url import ConnectionURL, successor
from jmsjca.descriptors.migration import Report
from jmsjca.descriptors.xml_file import Descriptor, children
from jmsjca.errors import ConfigurationError, JMSError

__all__ = ["ResourceAdapterFile", "pool_options", "read_resource_adapter"]

_ADAPTER_FIELDS = {
    "ConnectionURL": "connection_url",
    "UserName": "user_name",
    "Password": "password",
    "MBeanObjectName": "mbean_object_name",
    "MBeanServerDomain": "mbean_server_domain",
    "Options": "options",
}
_FACTORY_FIELDS = {
    "ConnectionURL": "connection_url",
    "UserName": "user_name",
    "Password": "password",
    "ClientId": "client_id",
    "Options": "options",
    "ProducerPooling": "producer_pooling",
    "IdleTimeout": "idle_timeout",
}
_KINDS = {
    "javax.jms.ConnectionFactory": "unified",
    "javax.jms.QueueConnectionFactory": "queue",
    "javax.jms.TopicConnectionFactory": "topic",
}
_BLANK = "has no value"
_UNKNOWN = "jmsjca has no such property, and no counterpart of what it configures in Java"


class ResourceAdapterFile:
    """The content of one ``ra.xml``.

    Attributes:
        name: Display name of the adapter, or the stem of the file name.
        adapter: The adapter section.
        factories: Connection factories, by the Java interface that they implement.
        destinations: Administered objects that have a name, by name.
        defaults: Default properties of the activation specs (JCA 1.6).
    """

    def __init__(self, name: str, adapter: AdapterSection) -> None:
        self.name = name
        self.adapter = adapter
        self.factories: dict[str, FactorySection] = {}
        self.destinations: dict[str, DestinationSection] = {}
        self.defaults: dict[str, str] = {}

    def rename(self, name: str) -> None:
        """Rename the adapter, also in its factories."""
        self.name = name
        self.factories = {key: found.model_copy(update={"adapter": name}) for key, found in self.factories.items()}


def read_resource_adapter(path: Path, descriptor: Descriptor, report: Report) -> ResourceAdapterFile:
    """Read an ``ra.xml``, and report the properties that are not carried over.

    Args:
        path: The file, named in errors.
        descriptor: The parsed file.
        report: Collects what is not carried over.

    Raises:
        ConfigurationError: A value is invalid.
    """
    resource_adapter = descriptor.root.find("resourceadapter")
    if resource_adapter is None:
        raise ConfigurationError(f"{path} has no element 'resourceadapter': it is not a connector descriptor.")
    name = descriptor.text(descriptor.root, "display-name") or path.stem
    where = f"resourceadapter {name}"
    found = descriptor.properties(resource_adapter, "config-property")
    values = _values(found, _ADAPTER_FIELDS, (path.name, where), report)
    file = ResourceAdapterFile(name, _section(AdapterSection, values, f"{path}: {where}"))
    _report_family(path.name, where, values.get("connection_url"), report)
    for definition in children(resource_adapter, "outbound-resourceadapter/connection-definition"):
        _add_factory(file, path, definition, descriptor, report)
    for administered in children(resource_adapter, "adminobject"):
        _add_destination(file, administered, descriptor, report)
    for specification in resource_adapter.iter("activationspec"):
        _add_defaults(file, specification, descriptor, report)
    return file


def _add_defaults(file: ResourceAdapterFile, specification: Element, descriptor: Descriptor, report: Report) -> None:
    for name, value in descriptor.properties(specification, "config-property"):
        if value:
            file.defaults[name] = value
        else:
            report.note(descriptor.name, "activationspec", name, _BLANK)
    for required in children(specification, "required-config-property"):
        name = descriptor.text(required, "config-property-name")
        report.note(descriptor.name, "activationspec", name, "is required by each activation spec, as before")
        descriptor.done(required)


def _values(
    pairs: Iterable[tuple[str, str]], known: dict[str, str], place: tuple[str, str], report: Report
) -> dict[str, Any]:
    fields = {name.lower(): field for name, field in known.items()}
    values: dict[str, Any] = {}
    for name, value in pairs:
        field = fields.get(name.lower())
        if field and value:
            values[field] = _converted(field, value)
        else:
            report.note(*place, name, _BLANK if not value else _UNKNOWN)
    return values


def _converted(field: str, value: str) -> object:
    if field == "idle_timeout" and value.isdigit():
        return int(value) / 1000  # milliseconds in the manual, seconds here
    if field == "producer_pooling":
        return value.lower() == "true"
    return value


def _section(section: type[Any], values: dict[str, Any], where: str) -> Any:
    try:
        return section(**values)
    except (ValidationError, JMSError) as error:
        detail = error.errors()[0]["msg"] if isinstance(error, ValidationError) else error
    # Raised outside the except block: pydantic's exception holds the values, which may include a password.
    raise ConfigurationError(f"{where}: a value of {', '.join(values)} is invalid: {detail}")


def _add_factory(
    file: ResourceAdapterFile, path: Path, definition: Element, descriptor: Descriptor, report: Report
) -> None:
    interface = descriptor.text(definition, "connectionfactory-interface").replace("jakarta.jms.", "javax.jms.", 1)
    where = f"connection-definition {interface}"
    kind = _KINDS.get(interface)
    if kind is None:
        report.note(path.name, where, "connectionfactory-interface", "it is not a JMS connection factory")
        descriptor.done(definition)
        return
    found = descriptor.properties(definition, "config-property")
    values = _values(found, _FACTORY_FIELDS, (path.name, where), report)
    _report_family(path.name, where, values.get("connection_url"), report)
    file.factories[interface] = _section(
        FactorySection, {"adapter": file.name, "kind": kind, **values}, f"{path}: {where}"
    )


def _add_destination(file: ResourceAdapterFile, administered: Element, descriptor: Descriptor, report: Report) -> None:
    interface = descriptor.text(administered, "adminobject-interface").replace("jakarta.jms.", "javax.jms.", 1)
    where, kind = f"adminobject {interface}", interface.removeprefix("javax.jms.").lower()
    for name, value in descriptor.properties(administered, "config-property"):
        if kind not in ("queue", "topic"):
            report.note(
                descriptor.name, where, name, "the naming context of the program takes the place of this object"
            )
        elif not value:
            report.note(
                descriptor.name, where, name, "has no value: it is a template; name destinations under [destinations]"
            )
        elif name in ("Name", "PhysicalName"):
            file.destinations[value] = DestinationSection.model_validate({kind: value})
        else:
            report.note(descriptor.name, where, name, _UNKNOWN)


def _report_family(path: str, where: str, url: str | None, report: Report) -> None:
    if url and (advice := successor(ConnectionURL.parse(url).protocol)):
        report.note(path, where, "ConnectionURL", advice)


_POOL_ATTRIBUTES = {
    "max-pool-size": "JMSJCA.poolmaxsize",
    "steady-pool-size": "JMSJCA.poolminsize",
    "max-wait-time-in-millis": "JMSJCA.pooltimeout",
}


def pool_options(descriptor: Descriptor, report: Report) -> dict[str, str]:
    """Return the pool options of a ``sun-ra.xml``, and report its other attributes.

    Args:
        descriptor: The descriptor.
        report: Collects what is not carried over.
    """
    options: dict[str, str] = {}
    for element in descriptor.root.iter("resource-adapter"):
        for name, value in element.attrib.items():
            if name in _POOL_ATTRIBUTES:
                options[_POOL_ATTRIBUTES[name]] = value
            else:
                reason = "a pool's max_idle closes idle connections" if "idle" in name else _UNKNOWN
                report.note(descriptor.name, "resource-adapter", name, reason if value else _BLANK)
        for each in children(element, "property"):
            name = each.get("name") or descriptor.text(each, "property-name") or "property"
            report.note(descriptor.name, "resource-adapter", name, _UNKNOWN)
            descriptor.done(each)
    descriptor.text(descriptor.root, "resource-adapter")  # marks the element as read: only its attributes matter
    return options
