"""The configuration file: ``jmsjca.toml``, or the table ``[tool.jmsjca]`` of ``pyproject.toml``.

::

    [adapters.default]
    connection_url = "amqp://broker.example:5672"
    user_name = "shop"
    password = "${env:BROKER_PASSWORD}"

    [listeners.orders]
    handler = "shop.handlers:on_order"
    destination = "lookup://jms/orders"
    concurrency_mode = "cc"

    [factories."jms/CF"]
    client_id = "shop-1"

    [destinations."jms/orders"]
    queue = "orders"
"""

import os
import re
import tomllib
import traceback
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, cast

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, model_validator

from jmsjca.arguments import did_you_mean
from jmsjca.config.activation_spec import ActivationSpec, NameText, Options, Seconds, URLText
from jmsjca.config.limits import FactoryKind
from jmsjca.config.naming import NamingContext
from jmsjca.destinations import Destination, Queue, Topic
from jmsjca.errors import ConfigurationError, excerpt
from jmsjca.log_records import one_line

__all__ = [
    "AdapterSection",
    "Configuration",
    "DestinationSection",
    "FactorySection",
    "ListenerSection",
    "declare_all",
    "import_problem",
    "load_handler",
    "read_configuration",
    "secret",
]

_REFERENCE = re.compile(r"\$\{env:([^}]*)\}")
_HANDLER = r"^[\w.]+:[\w.]+$"
_SECRETS = ("user_name", "password", "connection_url", "options")
_HIDDEN = ("missing", "value_error", "dict_type", "model_type")  # a text in place of a section may be a URL


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class AdapterSection(_Section):
    """The arguments of a `ResourceAdapter`."""

    connection_url: URLText | None = Field(default=None, repr=False)
    """The URL of the broker."""

    user_name: str | None = Field(default=None, repr=False)  # it may be a URL with a password
    """The user name."""

    password: SecretStr | None = None
    """The password of ``user_name``."""

    options: Options = Field(default_factory=dict[str, str], repr=False)
    """Options of JMSJCA and of the provider: a table, or text as in the manual."""

    mbean_object_name: str | None = None
    """The name of the adapter's management bean."""

    mbean_server_domain: str | None = None
    """The registry of the bean."""


class FactorySection(_Section):
    """A connection factory. It is bound to the name of its section."""

    adapter: str | None = None
    """The name of the adapter that supplies the defaults; None for the only adapter."""

    kind: FactoryKind = "unified"
    """The messaging domains: "unified" for both, or "queue" or "topic" for one of them."""

    connection_url: str | None = Field(default=None, repr=False)
    """The URL of the broker; None for the adapter's URL. It may be ``lookup://name``."""

    user_name: str | None = Field(default=None, repr=False)  # it may be a URL with a password
    """The user name; None for the adapter's user name."""

    password: SecretStr | None = None
    """The password of ``user_name``."""

    client_id: str | None = None
    """The client id of the connections."""

    options: Options = Field(default_factory=dict[str, str], repr=False)
    """Options. They override the options of the adapter."""

    producer_pooling: bool | None = None
    """As for `ConnectionFactory`."""

    idle_timeout: Seconds | None = None
    """Seconds without a successful use after which a pooled connection is checked."""

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of `ResourceAdapter.connection_factory`, without those that are not set."""
        fields = {name: value for name, value in self if name != "adapter" and value is not None}
        return fields | {"password": secret(self.password)}


class ListenerSection(ActivationSpec):
    """An activation spec and its handler."""

    adapter: str | None = None
    """The name of the adapter; None for the only adapter."""

    handler: Annotated[str, Field(pattern=_HANDLER)] | None = None
    """The function, as ``module:function``; None for a spec that code activates."""

    @property
    def spec(self) -> ActivationSpec:
        """The activation spec."""
        fields = {name: value for name, value in self if name not in ("adapter", "handler")}
        return ActivationSpec(**fields)


class DestinationSection(_Section):
    """An administered destination. It is bound to the name of its section."""

    queue: NameText | None = Field(default=None, min_length=1)
    """The name of the queue at the broker."""

    topic: NameText | None = Field(default=None, min_length=1)
    """The name of the topic at the broker. Give either a queue or a topic."""

    @model_validator(mode="after")
    def _check_one(self) -> "DestinationSection":
        if (self.queue is None) == (self.topic is None):
            raise ValueError("it has either a queue or a topic")
        return self

    @property
    def destination(self) -> Destination:
        """The queue or topic."""
        return Queue(self.queue) if self.queue is not None else Topic(self.topic or "")


class Configuration(_Section):
    """The content of a configuration file: sections by name."""

    adapters: dict[str, AdapterSection] = Field(default_factory=dict[str, AdapterSection])
    """Resource adapters."""

    factories: dict[str, FactorySection] = Field(default_factory=dict[str, FactorySection])
    """Connection factories, by the name that they are bound to."""

    listeners: dict[str, ListenerSection] = Field(default_factory=dict[str, ListenerSection])
    """Activation specs with their handlers."""

    destinations: dict[str, DestinationSection] = Field(default_factory=dict[str, DestinationSection])
    """Administered queues and topics, by the name that they are bound to."""

    connectors: dict[str, dict[str, Any]] = Field(default_factory=dict[str, dict[str, Any]], repr=False)
    """The properties of event connectors. `jmsjca.connector.Connector.from_config` checks them."""

    def adapter_name(self, name: str | None = None) -> str:
        """Return the name of an adapter's section.

        Args:
            name: The name; None for the only adapter, or the adapter "default".

        Raises:
            ConfigurationError: There is no such adapter; or the name is None, and there are several adapters.
        """
        known = ", ".join(self.adapters) or "none"
        if name is None and len(self.adapters) == 1:
            return next(iter(self.adapters))
        if (name or "default") not in self.adapters:
            what = f"no adapter {excerpt(name)!r}" if name else "no adapter 'default'; name one"
            connectors = f"; connectors: {', '.join(self.connectors)}" if self.connectors else ""
            raise ConfigurationError(f"The configuration has {what} (it has: {known}{connectors}).")
        return name or "default"

    def listeners_of(self, adapter: str) -> Mapping[str, ListenerSection]:
        """Return the listeners of an adapter by name."""
        return {name: found for name, found in self.listeners.items() if self.adapter_name(found.adapter) == adapter}

    def factories_of(self, adapter: str) -> Mapping[str, FactorySection]:
        """Return the connection factories of an adapter by name. Factories that refer to others come last."""
        own = {name: found for name, found in self.factories.items() if self.adapter_name(found.adapter) == adapter}
        return dict(sorted(own.items(), key=lambda item: (item[1].connection_url or "").startswith("lookup://")))


def read_configuration(path: str | Path) -> Configuration:
    """Read a configuration file.

    Args:
        path: A TOML file; in a ``pyproject.toml`` the table ``[tool.jmsjca]``. In its texts ``${env:NAME}`` is replaced
            by an environment variable.

    Raises:
        ConfigurationError: The file cannot be read, a variable is not set, or sections are invalid; the message lists
            all problems, without secrets.
    """
    file, problem = Path(path), ""
    content: dict[str, Any] = {}
    try:
        content = tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be read: {error}.") from error
    except UnicodeDecodeError as error:
        problem = f"cannot be read: it is not UTF-8 text ({error.reason} at byte {error.start})."
    except tomllib.TOMLDecodeError as error:
        problem = f"is no TOML file: {error}"
    if problem:  # raised here, so that the chain has no exception with the content, which may hold a password
        raise ConfigurationError(f"{file} {problem}")
    if file.name == "pyproject.toml":
        tool = content.get("tool")
        content = cast("dict[str, Any]", tool).get("jmsjca", {}) if isinstance(tool, dict) else {}
    missing: list[str] = []
    filled = _filled(content, "", missing)
    if missing:
        raise ConfigurationError(f"{file}: {'; '.join(missing)}.")
    try:
        return Configuration.model_validate(filled)
    except ValidationError as error:
        problem = "; ".join(_problems(error))
    raise ConfigurationError(f"{file}: {problem}.")  # here, without the chain, which shows the input


def _filled(value: Any, where: str, missing: list[str]) -> Any:
    """Return a value with its environment variables replaced. Variables that are not set are added to ``missing``."""
    if isinstance(value, dict):
        table = cast("dict[str, Any]", value)
        return {name: _filled(inner, f"{where}.{name}".lstrip("."), missing) for name, inner in table.items()}
    if isinstance(value, list):
        return [_filled(inner, where, missing) for inner in value]  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(value, str):
        return value
    unset = (name for name in _REFERENCE.findall(value) if name not in os.environ)
    missing.extend(f"{where}: the environment variable {excerpt(name)!r} is not set" for name in unset)
    return _REFERENCE.sub(lambda found: os.environ.get(found[1], ""), value)


def _problems(error: ValidationError) -> Iterator[str]:
    for detail in error.errors(include_url=False):
        where = ".".join(map(str, detail["loc"]))
        if detail["type"] == "extra_forbidden":  # its value may be a secret under a misspelled name
            yield f"{where}: there is no such entry {_hint(detail['loc'])}"
            continue
        text = detail["msg"].removeprefix("Value error, ").removesuffix(".")
        hidden = detail["type"] in _HIDDEN or any(name in where for name in _SECRETS)
        yield f"{where}: {text}" + ("" if hidden else f" (given: {excerpt(detail['input'], 100)!r})")


_SECTIONS: Mapping[str, type[BaseModel]] = {
    "adapters": AdapterSection,
    "factories": FactorySection,
    "listeners": ListenerSection,
    "destinations": DestinationSection,
}


def _hint(place: tuple[int | str, ...]) -> str:
    model = Configuration if len(place) == 1 else _SECTIONS[str(place[0])]
    return did_you_mean(str(place[-1]).lower(), {name: name for name in model.model_fields})


def secret(value: SecretStr | None) -> str | None:
    """Return the text of a secret; None for None."""
    return None if value is None else value.get_secret_value()


def declare_all(
    configuration: "Configuration",
    name: str,
    naming: NamingContext,
    create_factory: Callable[..., object],
    activate: Callable[..., object],
) -> None:
    """Bind the destinations and factories of a configuration, and activate the listeners that have a handler.

    Args:
        configuration: The configuration.
        name: The name of the adapter's section.
        naming: The naming context of the adapter.
        create_factory: The adapter's `connection_factory`.
        activate: The adapter's method of this name.

    Raises:
        ConfigurationError: A handler cannot be imported.
        JMSError: As `ResourceAdapter.connection_factory` and `ResourceAdapter.activate`.
    """
    for bound, destination in configuration.destinations.items():
        naming.bind(bound, destination.destination)
    for bound, factory in configuration.factories_of(name).items():
        naming.bind(bound, create_factory(**factory.arguments))
    for listener in configuration.listeners_of(name).values():
        if listener.handler is not None:
            activate(listener.spec, load_handler(listener.handler))


def load_handler(reference: str) -> Callable[..., object]:
    """Return the function that ``module:function`` names.

    Raises:
        ConfigurationError: The text has another form, the module cannot be imported, or has no such function.
    """
    module, _, name = reference.partition(":")
    shown = f"The handler '{excerpt(reference, 100)}'"
    if not (module and name) or module.startswith("."):
        raise ConfigurationError(f"{shown} must be module:function.")
    try:
        found: Any = import_module(module)
        for part in name.split("."):
            found = getattr(found, part, None)
    except Exception as error:
        raise ConfigurationError(f"{shown}: {excerpt(module)} cannot be imported: {import_problem(error)}") from error
    if not callable(found):
        raise ConfigurationError(f"{shown}: {excerpt(module)} has no function {excerpt(name)!r}.")
    handler: Callable[..., object] = found
    return handler


def import_problem(error: Exception) -> str:
    """Return the error of a module's import in one line, with the place that raised it."""
    [*_, last] = traceback.extract_tb(error.__traceback__)
    at = "" if isinstance(error, ImportError | SyntaxError) else f" ({last.filename}, line {last.lineno})"
    return one_line(f"{type(error).__name__}: {error}{at}.")
