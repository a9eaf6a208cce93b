"""The embedded broker in a file keeps the provider contract."""

from pathlib import Path

import pytest

from jmsjca.testing.contract import *  # noqa: F403  # every case of the suite
from jmsjca.testing.contract.messages import TestPoison  # noqa: F401


@pytest.fixture
def jms_broker_url(tmp_path: Path) -> str:
    return f"embedded://{tmp_path}/broker.db"
