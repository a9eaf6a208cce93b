"""Listeners to the embedded broker in memory keep the inbound contract."""

from jmsjca.testing.inbound import *  # noqa: F403  # every case of the suite
