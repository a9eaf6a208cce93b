"""The executor that handlers of mode cc run on."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from jmsjca import ActivationSpec, ResourceAdapter
from jmsjca.errors import ConfigurationError
from tests.unit.inbound import PATIENCE, Inbox, send, waiting


@pytest.fixture
def pools():
    made = [ThreadPoolExecutor(1, name) for name in ("adapters", "own")]
    yield made
    for pool in made:
        pool.shutdown()


def threads_of(adapter, send_to="q"):
    names, done = [], threading.Event()

    def handler(message):
        names.append(threading.current_thread().name)
        done.set()

    return handler, names, done


@pytest.mark.parametrize("how", ["listener", "activate", "adapter"])
def test_handlers_run_on_it(jms_broker_url, pools, how):
    general, own = pools
    adapter = ResourceAdapter(jms_broker_url, executor=general)
    handler, names, done = threads_of(adapter)
    if how == "activate":
        adapter.activate(ActivationSpec(destination="q", concurrency_mode="cc"), handler, own)
    else:
        adapter.listener("q", concurrency_mode="cc", executor=own if how == "listener" else None)(handler)
    send(adapter, "a")
    with adapter:
        assert done.wait(PATIENCE)
    assert names == ["adapters_0" if how == "adapter" else "own_0"]
    assert own.submit(int).result(PATIENCE) == 0  # it is still its owner's


def test_other_modes_leave_the_adapters_alone(jms_broker_url, pools):
    adapter = ResourceAdapter(jms_broker_url, executor=pools[0])
    handler, names, done = threads_of(adapter)
    adapter.listener("q")(handler)
    send(adapter, "a")
    with adapter:
        assert done.wait(PATIENCE)
    assert names[0].startswith("jmsjca")


@pytest.mark.parametrize("mode", ["serial", "sync"])
def test_one_of_their_own_is_refused(jms_adapter, pools, mode):
    with pytest.raises(ConfigurationError, match=f"concurrency_mode='cc', not '{mode}'"):
        jms_adapter.listener("q", concurrency_mode=mode, executor=pools[1])(Inbox())


def test_one_that_takes_no_work_is_no_loss(jms_broker_url, recorder, pools, caplog):
    _, own = pools
    own.shutdown()
    adapter = ResourceAdapter(jms_broker_url, hooks=[recorder])
    adapter.listener("q", concurrency_mode="cc", executor=own)(Inbox())
    send(adapter, "a")
    with adapter:
        recorder.await_status("Connecting", "Up", "Connecting")
    assert "does no work" in caplog.text
    assert waiting(adapter) == [("a", 0)]
