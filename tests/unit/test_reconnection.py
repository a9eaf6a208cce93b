"""Making and remaking connections: one attempt, the fail-over list, and when to retry."""

import logging

import pytest

from jmsjca import reconnection
from jmsjca.config import ConnectionURL, Credentials
from jmsjca.errors import (
    ConnectionLostError,
    InvalidClientIDError,
    InvalidSelectorError,
    InvalidURLError,
    JMSError,
    JMSSecurityError,
    NotSupportedError,
    ResourceAllocationError,
    StoreError,
)
from jmsjca.reconnection import ConnectionSettings, FailoverConnector, connect, is_transient

HIDDEN = "s3cr3t"


class Provider:
    """A provider that fails as it was told, then connects."""

    def __init__(self, *failures: JMSError | None) -> None:
        self.failures = list(failures)
        self.calls: list[tuple[ConnectionURL, Credentials | None, str | None]] = []

    def connect(self, url, credentials, *, client_id, **_):
        self.calls.append((url, credentials, client_id))
        failure = self.failures.pop(0) if self.failures else None
        if failure is not None:
            raise failure
        return "connected"

    @property
    def hosts(self) -> list[str]:
        return [str(url.addresses[0]) for url, _, _ in self.calls]


@pytest.fixture
def use(monkeypatch):
    """Registers a provider for every scheme."""

    def register(provider: Provider) -> Provider:
        monkeypatch.setattr(reconnection, "find_provider", lambda scheme: provider)
        return provider

    return register


SETTINGS = ConnectionSettings(f"fake://ann:{HIDDEN}@host", client_id="me")


def test_a_provider_gets_url_credentials_and_client_id_once(use):
    provider = use(Provider())
    assert connect(SETTINGS) == "connected"
    [(url, credentials, client_id)] = provider.calls
    assert (url.host, credentials, client_id) == ("host", Credentials("ann", HIDDEN), "me")


def test_one_attempt_that_fails(use):
    provider = use(Provider(ConnectionLostError("refused")))
    with pytest.raises(ConnectionLostError):
        connect(SETTINGS)
    assert len(provider.calls) == 1


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (ConnectionSettings("fake://host"), None),
        (ConnectionSettings("fake://ann:a@host"), Credentials("ann", "a")),
        (ConnectionSettings("fake://ann:a@host", "bob", "b"), Credentials("bob", "b")),
        (ConnectionSettings("fake://ann:a@host", "bob"), Credentials("bob", None)),
        (ConnectionSettings("fake://ann:a@host", None, "b"), Credentials("ann", "a")),
        (ConnectionSettings("fake://host", None, "b"), None),
    ],
)
def test_user_name_and_password_travel_together(use, settings, expected):
    provider = use(Provider())
    connect(settings)
    assert provider.calls[0][1] == expected


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (ConnectionLostError("x"), True),
        (StoreError("x"), True),
        (InvalidURLError("x"), False),
        (InvalidSelectorError("x"), False),
        (NotSupportedError("x"), False),
        (KeyError("x"), False),
        (KeyboardInterrupt(), False),
    ],
)
def test_which_errors_may_pass(error, passes):
    assert is_transient(error) is passes


LIST = ConnectionSettings(f"fake://ann:{HIDDEN}@a,b:1,c", client_id="me")
REFUSED = ConnectionLostError("refused")


@pytest.mark.parametrize("error", [REFUSED, ResourceAllocationError("full"), JMSError("not ready")])
def test_the_next_host_is_tried(use, error):
    provider = use(Provider(error, error))
    assert connect(LIST) == "connected"
    assert provider.hosts == ["a", "b:1", "c"]
    assert {call[1:] for call in provider.calls} == {(Credentials("ann", HIDDEN), "me")}


@pytest.mark.parametrize(
    "error",
    [JMSSecurityError("no"), NotSupportedError("no"), InvalidURLError("no"), InvalidClientIDError("taken")],
)
def test_what_another_host_shall_not_be_asked_for(use, error):
    """No login is tried from host to host, and no durable subscription is made twice."""
    provider = use(Provider(REFUSED, error))
    with pytest.raises(type(error)) as caught:
        connect(LIST)
    assert provider.hosts == ["a", "b:1"]
    assert caught.value.__notes__ == [f"Hosts that were tried, this one last: a: refused; b:1: {error}"]


def test_no_host_can_be_reached(use):
    provider = use(Provider(REFUSED, ConnectionLostError("silent"), ConnectionLostError("x" * 10_000)))
    with pytest.raises(ConnectionLostError, match=r"No host of fake://ann@a,b:1,c .*: a: refused; b:1: silent; c: x"):
        connect(LIST)
    assert provider.hosts == ["a", "b:1", "c"]


def test_the_errors_of_a_list_are_bounded_and_without_secrets(use):
    use(Provider(*[ConnectionLostError("x" * 10_000)] * 3))
    with pytest.raises(ConnectionLostError) as caught:
        connect(LIST)
    assert len(str(caught.value)) < 1100
    assert HIDDEN not in str(caught.value)


def test_the_error_of_one_host_is_that_of_the_provider(use):
    use(Provider(REFUSED))
    with pytest.raises(ConnectionLostError) as caught:
        connect(SETTINGS)
    assert caught.value is REFUSED


def test_every_connection_begins_with_the_first_host(use):
    provider = use(Provider(REFUSED))
    connect(LIST)
    connect(LIST)
    assert provider.hosts == ["a", "b:1", "a"]


def test_a_replacement_begins_behind_the_host_that_was_reached_last(use):
    provider = use(Provider(REFUSED, None, None, None, REFUSED, REFUSED, REFUSED))
    connector = FailoverConnector(LIST)
    for _ in range(3):
        connector.connect()
    with pytest.raises(ConnectionLostError):
        connector.connect()
    connector.connect()
    assert provider.hosts == ["a", "b:1", "c", "a", "b:1", "c", "a", "b:1"]


class Breaking(Provider):
    """A provider whose connections break before it has returned or refused them; `break_again` breaks the last one."""

    def connect(self, url, credentials, *, client_id, on_lost, **others):
        self.break_again = on_lost
        on_lost(ConnectionLostError(f"{url.addresses[0]} broke"))
        return super().connect(url, credentials, client_id=client_id, **others)


def test_nobody_hears_of_the_end_of_an_attempt_that_failed(use):
    """It is raised, or the next host is there: who heard of it would give that one up."""
    provider = use(Breaking(REFUSED, REFUSED, REFUSED, REFUSED))
    told = []
    with pytest.raises(ConnectionLostError):
        FailoverConnector(LIST).connect(told.append)
    provider.break_again(ConnectionLostError("late"))
    FailoverConnector(LIST).connect(told.append)
    assert list(map(str, told)) == ["b:1 broke"]


def test_a_connection_that_was_made_tells_of_its_end(use):
    provider = use(Breaking())
    told = []
    connect(SETTINGS, told.append)
    provider.break_again(REFUSED)
    assert list(map(str, told)) == ["host broke", "refused"]


def test_who_is_being_stopped_asks_no_further_host(use):
    provider = use(Provider(REFUSED, REFUSED))
    with pytest.raises(ConnectionLostError, match=r"a: refused$"):
        FailoverConnector(LIST).connect(should_continue=lambda: False)
    assert provider.hosts == ["a"]


def test_the_log_tells_which_host_it_is(use, caplog):
    caplog.set_level(logging.INFO, "jmsjca.reconnection")
    use(Provider(REFUSED))
    connect(LIST)
    connect(SETTINGS)  # there is no choice
    assert caplog.messages == ["Connected to fake://b:1."]


def test_an_embedded_broker_is_in_one_place():
    for url in ("embedded://a,b", "embedded://a,b/x.db"):
        with pytest.raises(InvalidURLError, match="fail-over list"):
            connect(ConnectionSettings(url))


def test_settings_show_no_password():
    settings = ConnectionSettings(f"amqp://ann:{HIDDEN}@host", "bob", HIDDEN)
    assert HIDDEN not in f"{settings} {settings!r} {settings.credentials(ConnectionURL.parse(settings.url))!r}"
