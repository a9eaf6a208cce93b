"""ERROR frames: the exceptions that they become, and ERROR frames without a receipt id."""

import pytest
from preemption import Preemption

from jmsjca.errors import (
    ConnectionLostError,
    InvalidClientIDError,
    InvalidDestinationError,
    InvalidSelectorError,
    JMSSecurityError,
    NotSupportedError,
)
from jmsjca.providers.stomp.errors import BrokerRefusedError, translating_errors
from jmsjca.providers.stomp.protocol import session
from jmsjca.providers.stomp.protocol.frames import Frame, FrameParser
from jmsjca.providers.stomp.protocol.session import FrameDispatcher
from jmsjca.reconnection import is_transient


@pytest.mark.parametrize(
    ("text", "error", "passes"),
    [
        ("User name [ann] or password is invalid.", JMSSecurityError, False),
        ("Security Error occurred: User name [ann] or password is invalid", JMSSecurityError, False),
        ("Bad CONNECT: Access refused for user 'ann'", JMSSecurityError, False),
        ("[BSS4020]: Header login is not specified for CONNECT !", JMSSecurityError, False),
        ("[BSS4020]: Header passcode is not specified for CONNECT !", JMSSecurityError, False),
        ("User anonymous is not authorized to write to: queue://q", JMSSecurityError, False),
        ("Supported protocol versions are 1.0,1.1,1.2", NotSupportedError, False),
        (
            "InvalidClientIDException: Client: c already connected from tcp://h:1",
            InvalidClientIDError,
            True,
        ),
        ("InvalidSelectorException: a ==", InvalidSelectorError, False),
        ("jakarta.jms.JMSException: Couldn't create TopicSubscription", InvalidSelectorError, False),
        ("InvalidDestinationException: Cannot create queue://q", InvalidDestinationError, True),
        ("No durable subscription exists for clientID: c", InvalidDestinationError, True),
        ("not_found: no queue 'q' in vhost '/'", InvalidDestinationError, True),
        ("Server shutting down", ConnectionLostError, True),
        ("no reason given", ConnectionLostError, True),
    ],
)
def test_what_a_refusal_means(text, error, passes):
    with pytest.raises(error, match=r"cannot try this|refused something") as told, translating_errors("try this"):
        raise BrokerRefusedError(text, None)
    assert text in str(told.value)
    assert is_transient(told.value) is passes


ERROR = Frame("ERROR", {"message": "no"}, b"", 20)


def refused(act, *arguments):
    try:
        act(*arguments)
    except BrokerRefusedError:
        return True
    return False


def test_somebody_is_told_of_it_whenever_it_comes(monkeypatch):
    for step in range(1, 10_000):
        preemption = Preemption(step, session.__file__)
        monkeypatch.setattr(session, "Lock", preemption.lock, raising=False)
        dispatcher = FrameDispatcher(FrameParser(1000), lambda: None)
        told = []
        hearing = dispatcher.deferring_errors()
        hearing.__enter__()
        halted = preemption.play(
            lambda: told.append(refused(dispatcher.on_error, ERROR)),  # noqa: B023
            lambda: told.append(refused(hearing.__exit__, None, None, None)),  # noqa: B023
        )
        if not halted:
            break
        assert sorted(told) == [False, True], f"halted before step {step}"
    assert step > 10
