"""The embedded broker in memory keeps the provider contract. The plugin's ``jms_broker_url`` is such a broker."""

from jmsjca.testing.contract import *  # noqa: F403  # every case of the suite
from jmsjca.testing.contract.messages import TestPoison  # noqa: F401
