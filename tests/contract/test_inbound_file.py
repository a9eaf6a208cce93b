"""Listeners to the embedded broker in a file keep the inbound contract."""

from pathlib import Path

import pytest

from jmsjca.testing.inbound import *  # noqa: F403  # every case of the suite


@pytest.fixture
def jms_broker_url(tmp_path: Path) -> str:
    return f"embedded://{tmp_path}/broker.db"
