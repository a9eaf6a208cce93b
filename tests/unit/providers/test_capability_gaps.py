"""Every capability that a broker lacks has evidence, and nothing else has."""

import re

import pytest
from capability_table import PROTOCOLS, missing

from jmsjca.errors import NotSupportedError
from tests.support.evidence import gaps_of

BROKERS = [
    pytest.param(broker, id=f"{broker.name}-{protocol}")
    for protocol, brokers in PROTOCOLS.items()
    for broker in brokers
]


@pytest.mark.parametrize("broker", BROKERS)
def test_exactly_what_is_missing_has_a_gap(broker):
    told = [gap.capability for gap in gaps_of(broker)]
    assert sorted(told) == sorted(missing(broker.capabilities))


@pytest.mark.parametrize("broker", BROKERS)
def test_a_gap_tells_what_was_seen_and_where_it_is_written(broker):
    for gap in gaps_of(broker):
        assert gap.observed.strip(), gap
        assert gap.reference.strip(), gap


@pytest.mark.parametrize("broker", BROKERS)
def test_a_broker_is_named_with_its_release(broker):
    assert broker.name
    assert broker.release[:1].isdigit()


@pytest.mark.parametrize("brokers", PROTOCOLS.values(), ids=PROTOCOLS)
def test_each_broker_is_told_once(brokers):
    names = [broker.name for broker in brokers]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("broker", BROKERS)
def test_exactly_what_is_missing_is_refused(broker):
    flags = [gap.capability for gap in gaps_of(broker) if gap.capability not in {"give_back", "units"}]
    for capability in flags:
        with pytest.raises(
            NotSupportedError, match=f"{re.escape(broker.name)} lacks the capability {capability} over "
        ):
            broker.require(capability)
        broker.require(capability, requested=False)
    broker.require("shared_between_processes")
