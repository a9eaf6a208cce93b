"""The connection settings of a listener: its URL, and the credentials that take precedence."""

from concurrent.futures import Executor
from dataclasses import replace
from typing import TYPE_CHECKING

from jmsjca.config.connection_url import ConnectionURL
from jmsjca.config.credentials import Login
from jmsjca.config.naming import LOOKUP, NamingContext
from jmsjca.errors import ConfigurationError
from jmsjca.outbound.factory import ConnectionFactory, look_up_factory
from jmsjca.reconnection import ConnectionSettings

if TYPE_CHECKING:
    from jmsjca.config.activation_spec import ActivationSpec

__all__ = ["check_executor", "factory_of_spec", "listener_settings"]


def listener_settings(
    spec: "ActivationSpec", factory: ConnectionFactory | None, defaults: ConnectionSettings
) -> ConnectionSettings:
    """Return the settings of a listener's connections.

    User name and password, always together, are those of the spec, else those of the factory that its URL refers to,
    else those in its URL, else those of the adapter (JMSJCA manual, "ConnectionURL").

    Args:
        spec: The activation spec, as the application wrote it.
        factory: The factory that the URL of the spec refers to; None for another URL.
        defaults: The URL in use, with the limits and the credentials of the adapter.
    """
    url = defaults.url
    if spec.connection_url and ConnectionURL.parse(url).user_name:  # the adapter's credentials are for another broker
        login = Login(url)
    else:
        login = Login(url, defaults.user_name, defaults.password, defaults.source)
    if factory:
        found = factory.login
        login = found if found.source else login.fill_in(found.user_name, found.password)
    login = login.fill_in(spec.user_name, spec.password.get_secret_value() if spec.password else None)
    return replace(
        defaults,
        user_name=login.user_name,
        password=login.password,
        source=login.source,
        client_id=spec.effective_client_id,
    )


def factory_of_spec(spec: "ActivationSpec", naming: NamingContext) -> ConnectionFactory | None:
    """Return the factory that the URL ``lookup://name`` of a spec refers to; None for another URL.

    Args:
        spec: The activation spec.
        naming: Where the name is looked up.

    Raises:
        NameNotFoundError: The name is not bound.
        ConfigurationError: The object is no connection factory.
    """
    url = spec.connection_url or ""
    return look_up_factory(url, naming) if url.startswith(LOOKUP) else None


def check_executor(spec: "ActivationSpec", executor: Executor | None) -> None:
    """Check that a listener with an executor of its own has a mode that uses it.

    Args:
        spec: The effective activation spec.
        executor: The executor; None for none.

    Raises:
        ConfigurationError: The mode is another one than "cc".
    """
    if executor is not None and spec.concurrency_mode != "cc":
        raise ConfigurationError(
            f"{spec.destination}: an executor is for concurrency_mode='cc', not {spec.concurrency_mode!r}."
        )
