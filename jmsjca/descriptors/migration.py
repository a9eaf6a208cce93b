"""The results of a migration: the configuration as TOML, and a report of the properties that TOML cannot hold."""

from typing import Any, NamedTuple, cast

from pydantic import BaseModel, SecretStr

from jmsjca.config.configuration_file import Configuration
from jmsjca.config.connection_url import ConnectionURL, is_url
from jmsjca.descriptors.xml_file import Descriptor
from jmsjca.errors import ConfigurationError

__all__ = ["Report", "ReportEntry", "to_toml"]


class ReportEntry(NamedTuple):
    """One property that was not carried over unchanged.

    Attributes:
        file: Name of the descriptor.
        where: Element that has the property, for example "message-driven mdbtest".
        name: Name of the property or element.
        reason: Why the property is not carried over, and what to do.
    """

    file: str
    where: str
    name: str
    reason: str

    def __str__(self) -> str:
        return f"{self.file}: {self.where}: {self.name}: {self.reason}"


class Report(list[ReportEntry]):
    """The entries of all descriptors, in file order."""

    def note(self, file: str, where: str, name: str, reason: str) -> None:
        """Append an entry, unless the report already has it."""
        entry = ReportEntry(file, where, name, reason)
        if entry not in self:
            self.append(entry)

    def note_unread(self, descriptor: Descriptor) -> None:
        """Append the elements of a descriptor that were not read."""
        for where, name in descriptor.unread():
            self.note(descriptor.name, where, name, _REASONS.get(name, _SERVER))


_SERVER = "nothing here depends on it; it configures the Java server"
_TEXT = "it is a text or a picture for people"
_ROLE = "there are no roles: what a handler may do depends on the process and on its login at the broker"
_HOOK = "register a hook, or call it in the handler"
_ARGUMENT = "pass it to your handler"
_FACTORY = "name it under [factories]"
_DESTINATION = "name it under [destinations]"
_CALLBACK = "call it where the program makes its handlers"
_TIMER = "there are no timers"
_REASONS = {
    "activationspec-class": "the activation spec is ActivationSpec",
    "administered-object": _DESTINATION,
    "application-exception": "every exception of a handler rolls back",
    "around-invoke": _HOOK,
    "around-timeout": _TIMER,
    "authentication-mechanism": "user name and password are used, as BasicPassword says",
    "connection-factory": _FACTORY,
    "connection-factory-resource-link": _FACTORY,
    "data-source": _ARGUMENT,
    "delivery": "a listener starts with its adapter; activation.stop() stops it",
    "description": _TEXT,
    "destination-resource-link": _DESTINATION,
    "display-name": _TEXT,
    "ejb": "it is not a message-driven bean of the ejb-jar.xml",
    "ejb-local-ref": _ARGUMENT,
    "ejb-ref": _ARGUMENT,
    "exclude-list": _ROLE,
    "icon": _TEXT,
    "interceptor-binding": _HOOK,
    "interceptors": _HOOK,
    "jms-connection-factory": _FACTORY,
    "jms-destination": _DESTINATION,
    "large-icon": _TEXT,
    "max-messages-in-transaction": "batch_size is the number of messages in one unit of work",
    "method-permission": _ROLE,
    "persistence-context-ref": _ARGUMENT,
    "persistence-unit-ref": _ARGUMENT,
    "post-construct": _CALLBACK,
    "pre-destroy": _CALLBACK,
    "provider-url": "connection_url of the adapter, or of a factory, is the URL of the broker",
    "reauthentication-support": "a connection keeps its login",
    "resourceadapter-class": "the URL's scheme selects the provider",
    "security-identity": _ROLE,
    "security-role": _ROLE,
    "security-role-ref": _ROLE,
    "service-ref": _ARGUMENT,
    "small-icon": _TEXT,
    "timeout-method": _TIMER,
    "timer": _TIMER,
    "transaction-support": "no XA: the broker commits last in a joined transaction",
    "weblogic-enterprise-bean": "it is not a message-driven bean of the ejb-jar.xml",
}


def to_toml(configuration: Configuration) -> str:
    """Return a configuration as TOML, with each secret replaced by a reference to an environment variable.

    Passwords, provider options, and connection URLs with a password or options count as secrets.

    Args:
        configuration: The configuration.

    Raises:
        ConfigurationError: tomli-w is not installed.
    """
    try:
        import tomli_w  # an extra
    except ImportError as error:
        raise ConfigurationError('Writing TOML needs tomli-w: pip install "jmsjca[descriptors]"') from error
    sections = {
        group: {name: _entries(section, f"{group}_{name}") for name, section in getattr(configuration, group).items()}
        for group in type(configuration).model_fields
    }
    return tomli_w.dumps({group: found for group, found in sections.items() if found}, multiline_strings=False)


def _entries(section: BaseModel, name: str) -> dict[str, Any]:
    """Return the fields of a section that differ from the defaults."""
    defaults = {key: field.get_default() for key, field in type(section).model_fields.items()}
    set_fields = {key: getattr(section, key) for key in defaults if key in section.model_fields_set}
    if "endpoint_pool_max_size" in set_fields:  # the default of max_outstanding depends on it
        defaults["max_outstanding"] = 10 * set_fields["endpoint_pool_max_size"]
    return {
        key: _value(key, value, name)
        for key, value in set_fields.items()
        if value not in (None, {}) and value != defaults[key]
    }


def _value(key: str, value: Any, name: str) -> Any:
    if isinstance(value, SecretStr) or (key == "connection_url" and _has_secret(value)) or _is_secret_login(key, value):
        return f"${{env:{_variable(f'{name}_{key}')}}}"
    if key == "options":
        options = cast("dict[str, str]", value)
        return {option: _option(option, text, name) for option, text in options.items()}
    return getattr(value, "value", value)


def _is_secret_login(key: str, value: Any) -> bool:
    return key == "user_name" and is_url(value)


def _has_secret(url: str) -> bool:
    parsed = ConnectionURL.parse(url)
    return bool(parsed.password or parsed.query)


def _option(option: str, text: str, name: str) -> str:
    return text if option.lower().startswith("jmsjca.") else f"${{env:{_variable(f'{name}_{option}')}}}"


def _variable(name: str) -> str:
    letters = (letter if letter.isascii() and letter.isalnum() else "_" for letter in name.upper())
    return f"JMSJCA_{''.join(letters)}"
