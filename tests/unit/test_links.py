"""Making connections, in one attempt."""

import pytest

from jmsjca import links
from jmsjca.config import ConnectionURL, Credentials
from jmsjca.errors import ConnectionLostError, InvalidURLError, JMSError, NotSupportedError, StoreError
from jmsjca.links import ConnectionSettings, connect, may_pass

HIDDEN = "s3cr3t"


class Provider:
    """A provider that fails as it was told, then connects."""

    def __init__(self, *failures: JMSError) -> None:
        self.failures = list(failures)
        self.calls: list[tuple[ConnectionURL, Credentials | None, str | None]] = []

    def connect(self, url, credentials, *, client_id, **_):
        self.calls.append((url, credentials, client_id))
        if self.failures:
            raise self.failures.pop(0)
        return "connected"


@pytest.fixture
def use(monkeypatch):
    """Registers a provider for every scheme."""

    def register(provider: Provider) -> Provider:
        monkeypatch.setattr(links, "find_provider", lambda scheme: provider)
        return provider

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
