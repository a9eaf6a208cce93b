"""What the contract needs of embedded brokers."""

from functools import partial

import pytest
from poisoning import poison_embedded


@pytest.fixture
def jms_poison(jms_broker_url):
    return partial(poison_embedded, jms_broker_url)
