"""The connection settings of a listener: its URL, and the credentials that take precedence."""

from typing import TYPE_CHECKING

from jmsjca.config.connection_url import ConnectionURL
from jmsjca.outbound.factory import ConnectionFactory
from jmsjca.reconnection import ConnectionSettings

if TYPE_CHECKING:
    from jmsjca.config.activation_spec import ActivationSpec

__all__ = ["listener_settings"]


def listener_settings(
    spec: "ActivationSpec", factory: ConnectionFactory | None, defaults: ConnectionSettings
) -> ConnectionSettings:
    """Return the settings of a listener's connections.

    The credentials are those of the spec, else those of the factory that its URL refers to, else those in its URL, else
    those of the adapter.

    Args:
        spec: The activation spec, as the application wrote it.
        factory: The factory that the URL of the spec refers to; None for another URL.
        defaults: The URL in use, with the limits and the credentials of the adapter.
    """
    url, limits = defaults.url, defaults.limits
    client_id = spec.effective_client_id
    if spec.user_name:
        password = spec.password.get_secret_value() if spec.password else None
        return ConnectionSettings(url, spec.user_name, password, client_id, limits)
    login = factory.login if factory else None
    if login and (login.user_name or login.source):
        return ConnectionSettings(url, login.user_name, login.password, client_id, limits, source=login.source)
    own = ConnectionURL.parse(url) if spec.connection_url else None
    if own and own.user_name:  # the spec's URL has its own credentials; the adapter's are for another broker
        return ConnectionSettings(url, client_id=client_id, limits=limits)
    return ConnectionSettings(url, defaults.user_name, defaults.password, client_id, limits, source=defaults.source)
