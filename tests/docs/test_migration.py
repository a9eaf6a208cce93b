"""The programs of FastStream, Celery and dramatiq in the guides run on the brokers in memory of these libraries."""

import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

from tests.docs.migration_blocks import programs

FASTSTREAM = """
import asyncio
from faststream.rabbit import TestRabbitBroker

@broker.subscriber("invoices")
async def seen(invoice: Invoice) -> None:
    print(invoice)

async def main():
    async with TestRabbitBroker(broker):
        await broker.publish(Order(fruit="pear"), "orders")

asyncio.run(main())
"""
CELERY = """
app.conf.task_always_eager = True
upload()
print(resize.delay("dog.png", 7).get())
"""
DRAMATIQ_FIRST = """
import dramatiq
from dramatiq.brokers.stub import StubBroker
stub = StubBroker()
dramatiq.set_broker(stub)
"""
DRAMATIQ = """
worker = dramatiq.Worker(stub)
worker.start()
upload()
stub.join("default")
worker.stop()
"""


def printed(library, *parts):
    """Run a program, and return the text that it prints; it is skipped without the library, except in CI."""
    if find_spec(library) is None and not os.environ.get("CI"):
        pytest.skip(f"{library} is not installed: pip install --group test")
    command = [sys.executable, "-c", "\n".join(parts)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_program_of_faststream():
    [program] = programs("faststream")
    assert printed("faststream", program, FASTSTREAM) == "fruit='pear' price=4"


def test_the_program_of_celery():
    program, _ = programs("celery-and-dramatiq")
    assert printed("celery", program, CELERY) == "7"


def test_the_program_of_dramatiq():
    _, program = programs("celery-and-dramatiq")
    program = program.replace("60_000", "60")  # a test does not wait for a minute
    assert printed("dramatiq", DRAMATIQ_FIRST, program, DRAMATIQ) == "cat.png 100\nlater.png 100"


@pytest.mark.parametrize(
    ("page", "language"), [("stomp-py", "py"), ("proton", "py"), ("spring-jms", "java"), ("java-ee", "java")]
)
def test_each_other_guide_has_a_program(page, language):
    assert len(programs(page, language)) == 1  # tests/brokers/test_migration.py runs or compiles it
