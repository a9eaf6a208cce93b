"""A deployment: descriptors and configuration files, combined into one configuration and a report."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from jmsjca.config.activation_spec import ActivationSpec
from jmsjca.config.configuration_file import (
    AdapterSection,
    Configuration,
    DestinationSection,
    FactorySection,
    ListenerSection,
    read_configuration,
)
from jmsjca.config.naming import LOOKUP
from jmsjca.descriptors.ejb_jar import Companions, MessageDrivenBean, bean_name, bean_names, is_jboss, read_bean
from jmsjca.descriptors.migration import Report, ReportEntry
from jmsjca.descriptors.resource_adapter import ResourceAdapterFile, pool_options, read_resource_adapter
from jmsjca.descriptors.xml_file import Descriptor, children
from jmsjca.destinations import Destination
from jmsjca.errors import ConfigurationError, excerpt

__all__ = ["Deployment", "read"]


class Deployment:
    """The adapters, specs, factories and destinations of a set of files.

    `ResourceAdapter.from_configuration` builds an adapter from its configuration.

    Attributes:
        configuration: All settings, as sections of a configuration file.
        report: The properties that are not carried over, each with a reason.
    """

    def __init__(self, configuration: Configuration, report: Report) -> None:
        self.configuration = configuration
        self.report: list[ReportEntry] = report

    @property
    def adapters(self) -> Mapping[str, AdapterSection]:
        """The resource adapters by name."""
        return self.configuration.adapters

    @property
    def specs(self) -> Mapping[str, ActivationSpec]:
        """The activation specs, by bean or listener name."""
        return {name: listener.spec for name, listener in self.configuration.listeners.items()}

    @property
    def factories(self) -> Mapping[str, FactorySection]:
        """The connection factories by name."""
        return self.configuration.factories

    @property
    def destinations(self) -> Mapping[str, Destination]:
        """The administered queues and topics by name."""
        return {name: section.destination for name, section in self.configuration.destinations.items()}

    def __repr__(self) -> str:
        found = self.configuration
        return (
            f"<Deployment with {len(found.adapters)} adapters, {len(found.listeners)} specs, {len(found.factories)}"
            f" factories, {len(found.destinations)} destinations, {len(self.report)} remarks>"
        )


def read(*paths: str | Path) -> Deployment:
    """Read deployment descriptors and configuration files into one deployment.

    The root element identifies an XML file: ``ra.xml``, ``sun-ra.xml``, ``ejb-jar.xml``, ``sun-ejb-jar.xml`` (or the
    GlassFish version), ``weblogic-ejb-jar.xml`` and ``jboss-ejb3.xml``. All other files are read as TOML. The order of
    the files does not matter.

    Args:
        paths: The files.

    Returns:
        The deployment. Its report names each property and element of a descriptor that is not carried over.

    Raises:
        ConfigurationError: A file cannot be read, is refused, or holds an invalid value; or two files define the same
            name.
    """
    reader = _Reader()
    for path in map(Path, paths):
        reader.add(path)
    return reader.deployment()


class _Reader:
    """Sorts files by kind, and combines them once all are known."""

    def __init__(self) -> None:
        self._report = Report()
        self._configurations: list[Configuration] = []
        self._adapters: list[ResourceAdapterFile] = []
        self._pools: dict[str, dict[str, str]] = {}
        self._jars: list[Descriptor] = []
        self._companions: list[Descriptor] = []
        self._descriptors: list[Descriptor] = []

    def add(self, path: Path) -> None:
        """Read a file."""
        if path.suffix.lower() != ".xml":
            self._configurations.append(read_configuration(path))
            return
        descriptor = Descriptor(path)
        self._descriptors.append(descriptor)
        match descriptor.root.tag:
            case "connector":
                self._adapters.append(read_resource_adapter(path, descriptor, self._report))
            case "sun-connector":
                self._pools[path.name] = pool_options(descriptor, self._report)
            case "ejb-jar":
                self._jars.append(descriptor)
            case "sun-ejb-jar" | "glassfish-ejb-jar" | "weblogic-ejb-jar":
                self._companions.append(descriptor)
            case tag:
                raise ConfigurationError(f"{path}: <{excerpt(tag)}> is not a known descriptor.")

    def deployment(self) -> Deployment:
        """Combine all files into a deployment."""
        if len(self._adapters) == 1 and not self._configurations:
            self._adapters[0].rename("default")
        merged = Configuration()
        for configuration in (*self._configurations, *map(self._of_adapter, self._adapters)):
            merged = _merged(merged, configuration)
        self._report_pools()
        for configuration in self._beans(merged):
            merged = _merged(merged, configuration)
        self._report_lookups(merged)
        for descriptor in self._descriptors:
            self._report.note_unread(descriptor)
        return Deployment(merged, self._report)

    def _beans(self, known: Configuration) -> Iterator[Configuration]:
        companions = Companions(names := bean_names(self._jars))
        for descriptor in (*self._jars, *self._companions):
            companions.read(descriptor)
        for jar in self._jars:
            self._report_jar(jar, names)
        for name in names:
            adapter = self._adapter_of(name, companions.beans[name].resource_adapter, known)
            defaults = {
                key: value for file in self._adapters if file.name == adapter for key, value in file.defaults.items()
            }
            bean = read_bean(name, self._jars, companions, defaults, self._report)
            configuration = self._of_bean(bean, adapter, known)
            known = _merged(known, configuration)
            yield configuration

    def _report_jar(self, jar: Descriptor, names: list[str]) -> None:
        for each in children(jar.root, "enterprise-beans/*"):
            if bean_name(each) not in names:
                self._report.note(jar.name, each.tag, bean_name(each), "it is not a message-driven bean")
                jar.done(each)
        has_annotations = jar.root.get("version", "")[:1] in ("3", "4") and not is_jboss(jar)
        if has_annotations and jar.root.get("metadata-complete") != "true":
            reason = "annotations of the classes are not read: write their values into the descriptor"
            self._report.note(jar.name, jar.root.tag, "metadata-complete", reason)

    def _report_lookups(self, merged: Configuration) -> None:
        for name, listener in merged.listeners.items():
            for value, group in ((listener.destination, "destinations"), (listener.connection_url, "factories")):
                found = (value or "").partition(LOOKUP)[2]
                if self._jars and found and found not in getattr(merged, group):
                    reason = f"no descriptor defines it; name it under [{group}]"
                    self._report.note(self._jars[0].name, f"message-driven {name}", found, reason)

    def _of_adapter(self, file: ResourceAdapterFile) -> Configuration:
        alone = len(self._adapters) == 1
        pools = {name: value for options in self._pools.values() for name, value in options.items()}
        factories = {
            interface if alone else f"{file.name}#{interface}": factory.model_copy(
                update={"options": {**pools, **factory.options}}
            )
            for interface, factory in file.factories.items()
        }
        return Configuration(adapters={file.name: file.adapter}, factories=factories, destinations=file.destinations)

    def _report_pools(self) -> None:
        if self._adapters:
            return
        for name, options in self._pools.items():
            for option in options:
                self._report.note(name, "resource-adapter", option, "there is no ra.xml with its factories")

    def _of_bean(self, bean: MessageDrivenBean, adapter: str | None, known: Configuration) -> Configuration:
        listener = ListenerSection(**dict(bean.spec), adapter=adapter)
        factories = {
            name: found.model_copy()
            for name, interface in bean.factories.items()
            if name not in known.factories
            and (found := known.factories.get(bean.names.get(name, "")) or _factory_of(interface, adapter, known))
        }
        destinations = {
            name: DestinationSection.model_validate({kind: f"{LOOKUP}{bean.names[name]}"})
            for name, kind in bean.destinations.items()
            if name not in known.destinations and bean.names.get(name, name) != name
        }
        for name in bean.factories:
            if (remote := bean.names.get(name, name)) not in (name, *known.factories):
                reason = f"no descriptor defines {remote}: the factory of the adapter takes its place"
                self._report.note("ejb-jar.xml", bean.name, name, reason)
        for name in (name for name in bean.factories if name not in factories | known.factories):
            self._report.note("ejb-jar.xml", bean.name, name, "no adapter has a connection factory of this interface")
        for name in (name for name in bean.destinations if name not in destinations | known.destinations):
            self._report.note("ejb-jar.xml", bean.name, name, "no descriptor maps it; name it under [destinations]")
        return Configuration(listeners={bean.name: listener}, factories=factories, destinations=destinations)

    def _adapter_of(self, bean: str, wanted: str, known: Configuration) -> str | None:
        named = [name for name in known.adapters if wanted and (name == wanted or wanted.endswith(f"#{name}"))]
        if not named and wanted:
            self._report.note("ejb-jar.xml", bean, "resource-adapter", f"no file defines an adapter {wanted}")
        if not named and len(known.adapters) > 1:
            self._report.note("ejb-jar.xml", bean, "resource-adapter", "several adapters: name one in the TOML")
        return next(iter(named or known.adapters), None)


def _factory_of(interface: str, adapter: str | None, known: Configuration) -> FactorySection | None:
    kinds = {"javax.jms.QueueConnectionFactory": "queue", "javax.jms.TopicConnectionFactory": "topic"}
    kind = kinds.get(interface, "unified")
    return next((f for f in known.factories.values() if f.kind == kind and f.adapter == adapter), None)


def _merged(one: Configuration, other: Configuration) -> Configuration:
    sections: dict[str, Any] = {}
    for name in Configuration.model_fields:
        first, second = getattr(one, name), getattr(other, name)
        if twice := first.keys() & second.keys():
            raise ConfigurationError(f"Two files define {name}.{excerpt(min(twice))}; remove one.")
        sections[name] = first | second
    return Configuration.model_construct(**sections)  # the sections were validated before
