"""Making connections, in one attempt or in as many as it takes."""

import logging
import threading
from collections.abc import Callable

import pytest

from jmsjca import links
from jmsjca.config import ConnectionURL, Credentials
from jmsjca.errors import ConnectionLostError, InvalidURLError, JMSError, NotSupportedError, StoreError
from jmsjca.links import ConnectionSettings, connect, connect_persistently, may_pass

HIDDEN = "s3cr3t"


class Provider:
    """A provider that fails as it was told, then connects."""

    def __init__(self, *failures: JMSError) -> None:
        self.failures = list(failures)
        self.calls: list[tuple[ConnectionURL, Credentials | None, str | None]] = []
        self.on_failure: Callable[[], None] = lambda: None

    def connect(self, url, credentials, *, client_id, **_):
        self.calls.append((url, credentials, client_id))
        if self.failures:
            self.on_failure()
            raise self.failures.pop(0)
        return "connected"


@pytest.fixture
def use(monkeypatch):
    """Registers a provider for every scheme; waits between attempts take no time."""

    def register(provider: Provider) -> Provider:
        monkeypatch.setattr(links, "find_provider", lambda scheme: provider)
        return provider

    monkeypatch.setattr(links, "_FIRST_WAIT", 0)
    return register


SETTINGS = ConnectionSettings(f"fake://ann:{HIDDEN}@host", client_id="me")


def test_one_attempt(use):
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


def test_attempts_go_on_until_one_succeeds(use, caplog):
    provider = use(Provider(*(ConnectionLostError(f"attempt {n}") for n in range(3))))
    with caplog.at_level(logging.WARNING, "jmsjca.links"):
        assert connect_persistently(SETTINGS, threading.Event()) == "connected"
    assert len(provider.calls) == 4
    assert [f"attempt {n}" in record.message for n, record in enumerate(caplog.records)] == [True, True, True]
    assert HIDDEN not in caplog.text


@pytest.mark.parametrize("error", [InvalidURLError("wrong"), NotSupportedError("never")])
def test_attempts_end_when_trying_again_cannot_help(use, error):
    provider = use(Provider(error))
    with pytest.raises(type(error)):
        connect_persistently(SETTINGS, threading.Event())
    assert len(provider.calls) == 1


def test_attempts_end_when_told_to_stop(use):
    stopping = threading.Event()
    provider = use(Provider(*(ConnectionLostError("refused") for _ in range(100))))
    provider.on_failure = lambda: stopping.set() if len(provider.calls) == 3 else None
    assert connect_persistently(SETTINGS, stopping) is None
    assert len(provider.calls) == 3


def test_stopping_interrupts_a_long_wait(use, monkeypatch):
    """The wait is an hour; only the event can end it."""
    import tenacity

    monkeypatch.setattr(tenacity, "wait_random_exponential", lambda **_: tenacity.wait_fixed(3600))
    stopping, failed = threading.Event(), threading.Event()
    provider = use(Provider(ConnectionLostError("refused")))
    provider.on_failure = failed.set
    results: list[object] = []
    thread = threading.Thread(target=lambda: results.append(connect_persistently(SETTINGS, stopping)), daemon=True)
    thread.start()
    assert failed.wait(30)
    stopping.set()
    thread.join(30)
    assert results == [None]


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (ConnectionLostError("x"), True),
        (StoreError("x"), True),
        (InvalidURLError("x"), False),
        (NotSupportedError("x"), False),
        (KeyError("x"), False),
        (KeyboardInterrupt(), False),
    ],
)
def test_which_errors_may_pass(error, passes):
    assert may_pass(error) is passes


def test_settings_show_no_password():
    settings = ConnectionSettings(f"amqp://ann:{HIDDEN}@host", "bob", HIDDEN)
    assert HIDDEN not in f"{settings} {settings!r} {settings.credentials(ConnectionURL.parse(settings.url))!r}"
