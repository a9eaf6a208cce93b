"""Exceptions of signal handlers while a file is opened: this process, and others, can open it afterwards."""

import gc
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

import jmsjca
from jmsjca import ConnectionFactory
from jmsjca.errors import TransactionInDoubtError
from tests.support.interruptions import Interruption, TimeLimitError, each_moment

EMBEDDED = str(Path(jmsjca.__file__).parent / "providers" / "embedded")
USE_ELSEWHERE = """
import sys
import jmsjca
for url in sys.argv[1:]:
    with jmsjca.ConnectionFactory(url).create_context() as context:
        assert context.create_consumer(jmsjca.Queue("orders")).receive_body(str, timeout=0) == "a message"
"""


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # the garbage collector closes what nobody has had yet
def test_file_whose_opening_was_interrupted_can_be_opened(tmp_path):
    urls: list[str] = []

    def play(interruption: Interruption) -> None:
        urls.append(f"embedded://{tmp_path}/{interruption.left}.db")
        factory = ConnectionFactory(urls[-1])
        with interruption.planted(), suppress(TimeLimitError, TransactionInDoubtError):
            factory.create_connection().close()
        gc.collect()
        with factory.create_context() as context:
            context.create_producer().send(jmsjca.Queue("orders"), "a message")

    assert each_moment(play, TimeLimitError, EMBEDDED) > 200
    subprocess.run([sys.executable, "-c", USE_ELSEWHERE, *urls], check=True)
