"""What the texts of ERROR frames are raised as, and whether a listener tries again."""

import pytest

from jmsjca.errors import (
    ConnectionLostError,
    InvalidClientIDError,
    InvalidDestinationError,
    InvalidSelectorError,
    JMSSecurityError,
    NotSupportedError,
)
from jmsjca.providers.stomp.errors import BrokerRefusedError, translating_errors
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
