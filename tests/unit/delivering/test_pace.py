"""Handlers that become slow: nobody waits for one while others are free."""

import threading

import pytest

from jmsjca import ActivationSpec, Queue
from jmsjca.config import DestinationSettings
from tests.unit.inbound import PATIENCE, send


@pytest.mark.parametrize("mode", ["cc", "sync"])
def test_no_message_waits_for_a_slow_handler_that_was_quick_for_long(adapter, mode):
    """Quick ones are called one after the other; then three of them wait for each other."""
    quick = 500
    seen, met, done = [], threading.Barrier(3, timeout=PATIENCE), threading.Semaphore(0)

    def handle(message):
        seen.append(message.body)
        if message.body == "slow":
            met.wait()
        done.release()

    adapter.activate(ActivationSpec(destination=Queue("q"), concurrency_mode=mode, endpoint_pool_max_size=3), handle)
    send(adapter, *["quick"] * quick, *["slow"] * 9)
    adapter.start()
    for _ in range(quick + 9):
        assert done.acquire(timeout=PATIENCE)
    assert sorted(seen) == ["quick"] * quick + ["slow"] * 9


def test_what_was_to_be_in_a_failed_unit_does_not_wait_for_another_handler(adapter, connected):
    """Its worker is not needed any more by then, as the other one took messages since; but that one is slow."""
    begun, came = threading.Event(), threading.Event()

    def handle(message):
        if message.body == "fails" and not begun.is_set():
            send(adapter, "slow")
            assert begun.wait(PATIENCE)
            raise ValueError("as planned")
        if message.body == "slow":
            begun.set()
            assert came.wait(PATIENCE)
        if message.body == "comes":
            came.set()

    spec = ActivationSpec(destination=Queue("q"), concurrency_mode="cc", endpoint_pool_max_size=2, batch_size=2)
    adapter.activate(spec, handle)
    connected().admin().configure(Queue("q"), DestinationSettings(max_deliveries=1))  # so that it does not come again
    send(adapter, "fails", "comes")
    adapter.start()
    assert came.wait(PATIENCE)
