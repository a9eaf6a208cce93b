"""The provider of ``embedded://``, a broker inside the process on SQLite, and its capabilities."""

import uuid
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

from jmsjca.config import Clock, ConnectionURL, Credentials, Limits
from jmsjca.errors import InvalidOptionError, InvalidURLError, JMSError
from jmsjca.providers.embedded.connection import EmbeddedConnection
from jmsjca.providers.embedded.store.store import close_store, open_store
from jmsjca.spi import Capabilities

__all__ = ["CAPABILITIES", "EmbeddedProvider", "location_of"]


class EmbeddedProvider:
    """Opens ``embedded://name``, a broker in memory, or ``embedded:///folder/file.db``, a file that processes share."""

    @staticmethod
    def check_url(url: ConnectionURL) -> None:
        """Check a URL without a connection.

        Raises:
            ConfigurationError: As `location_of`.
        """
        location_of(url)

    def connect(
        self,
        url: ConnectionURL,
        credentials: Credentials | None,
        *,
        client_id: str | None,
        limits: Limits,
        clock: Clock,
        on_lost: Callable[[JMSError], None],
    ) -> EmbeddedConnection:
        """Connect to a broker in memory or in a file.

        Raises:
            InvalidURLError: The URL names neither a memory broker nor a usable file.
            InvalidOptionError: The URL has options; an embedded broker has none.
            InvalidClientIDError: Another connection has the client id.
            StoreError: The file cannot be used.
        """
        del credentials, on_lost  # the file's permissions decide, and there is no network connection to lose
        place = location_of(url)
        capabilities = (
            CAPABILITIES if isinstance(place, Path) else replace(CAPABILITIES, shared_between_processes=False)
        )
        connection_id = uuid.uuid4().hex
        with ExitStack() as stack:  # also for a signal handler's exception: no caller could close the connection
            stack.callback(close_store, connection_id)
            store = open_store(place, limits, clock, connection_id)
            connection = EmbeddedConnection(store, limits, capabilities, client_id, connection_id)
            stack.callback(connection.close)
            connection.register()
            stack.pop_all()
        return connection


def location_of(url: ConnectionURL) -> Path | str:
    """Return the file of a broker, or the name of a broker in memory.

    Raises:
        InvalidURLError: The URL names neither of them.
        InvalidOptionError: The URL has options; an embedded broker has none.
    """
    if url.query:
        raise InvalidOptionError(f"An embedded broker has no options in its URL, but {', '.join(url.query)} was given.")
    if url.others:
        raise InvalidURLError(f"{url} is a fail-over list; an embedded broker is in one place.")
    if url.port is not None:
        raise InvalidURLError(f"{url} names a port; an embedded broker has none.")
    if not url.path.strip("/"):
        return url.host
    if url.host:
        place = f"{url.host}{url.path}"
        raise InvalidURLError(
            f"{url} has one slash too few: a file is embedded:///{place}, or embedded:./{place} beside the program."
        )
    try:
        return Path(unquote(url.path)).resolve()
    except (OSError, RuntimeError, ValueError) as error:  # a NUL, a name that is too long, links that lead in a circle
        raise InvalidURLError(f"{url} names no file: {error}.") from error


CAPABILITIES = Capabilities(
    transacted_receive=True,
    transacted_send=True,
    atomic=True,
    give_back="uncounted",
    exact_credit=True,
    redelivery_delay=True,
    delivery_delay=True,
    delivery_count=True,
    counts_handovers=True,
    counts_lost=True,
    priority=True,
    selectors=True,
    exact_selectors=True,
    browse=True,
    browse_counts=True,
    durable=True,
    shared=True,
    volatile_reuse=True,
    subscription_lock=True,
    subscription_kinds=True,
    ends_at_close=True,
    client_ids=True,
    temporary=True,
    temporary_guarded=True,
    temporary_ends=True,
    no_local=True,
    durable_no_local=True,
    groups=True,
    groups_apart=True,
    structured=True,
    duplicate_detection=True,
    checks=True,
    admin=True,
    counts_held=True,
    lists_destinations=True,
    creates_queues=True,
    counts_consumers=True,
    counts_traffic=True,
    configurable=True,
    shared_between_processes=True,
)
