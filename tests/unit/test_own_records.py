"""A test sees log records of its own threads, and none of a thread that an earlier test left behind."""

import logging
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

TEXT = "its unit ended too late"


@pytest.fixture(scope="module")
def earlier():
    """A thread that is there before the test begins."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(int).result()
        yield thread


def log():
    logging.getLogger("jmsjca.inbound").warning(TEXT)


def test_a_record_of_an_earlier_thread_is_left_out(earlier, caplog):
    earlier.submit(log).result()
    assert caplog.messages == []


def test_a_record_of_its_own_threads_is_there(caplog):
    log()
    thread = threading.Thread(target=log)
    thread.start()
    thread.join()
    assert caplog.messages == [TEXT, TEXT]
