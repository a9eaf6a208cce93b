"""Options of endpoints that are no fields."""

import pytest

from jmsjca.config import InboundOptions
from jmsjca.errors import InvalidOptionError


def test_defaults():
    assert InboundOptions.of({}) == InboundOptions(
        redelivery_redirect=False,
        receive_timeout=10.0,
        minimal_reconnect_logging=False,
        minimal_reconnect_logging_ds=False,
    )


@pytest.mark.parametrize(("value", "on"), [("true", True), ("True", True), ("", False), ("1", False), ("yes", False)])
def test_only_true_is_true(value, on):
    assert InboundOptions.of({"JMSJCA.redeliveryredirect": value}).redelivery_redirect is on


@pytest.mark.parametrize(("value", "on"), [("1", True), ("", False), ("true", False), ("01", False)])
def test_only_one_is_one(value, on):
    assert InboundOptions.of({"JMSJCA.minimalreconnectlogging": value}).minimal_reconnect_logging is on
    assert InboundOptions.of({"JMSJCA.minimalreconnectloggingds": value}).minimal_reconnect_logging_ds is on


@pytest.mark.parametrize(
    ("value", "seconds"), [("0", 86400.0), ("1", 0.001), ("3000", 3.0), ("", 10.0), ("86400000", 86400.0)]
)
def test_receive_timeout(value, seconds):
    assert InboundOptions.of({"JMSJCA.receivetimeout": value}).receive_timeout == seconds


@pytest.mark.parametrize("value", ["-1", "1.5", "soon", "86400001", "9" * 5000, "٣"])
def test_wrong_receive_timeout(value):
    with pytest.raises(InvalidOptionError, match=r"JMSJCA\.receivetimeout") as caught:
        InboundOptions.of({"JMSJCA.receivetimeout": value})
    assert len(str(caught.value)) < 200
