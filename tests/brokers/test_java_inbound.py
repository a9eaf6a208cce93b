"""Listeners keep the inbound contract over clients of Java: a sample in every run, all with ``make torture``."""

import pytest
from brokers import JAVA_PAIRS

from jmsjca.testing.inbound import *  # noqa: F403  # every case of the suite


@pytest.fixture(scope="module", params=JAVA_PAIRS)
def pair(request):
    return request.param


@pytest.fixture(scope="module")
def jms_broker_url(pair, broker_url):
    return broker_url(pair)


@pytest.fixture
def jms_message_count():
    return 50
