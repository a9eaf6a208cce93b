"""What the log says of a failed delivery, and of a redelivery handling without an end."""

import logging
import traceback

import pytest

from jmsjca import ActivationSpec, Hooks, Message, Queue, Reject, Retry
from jmsjca.errors import ConfigurationError, MessageFormatError
from tests.unit.inbound.deliveries import Performance, depth, endpoint_of, put, terms, until


def inner():
    raise ValueError("no such article")


def failing(message: Message) -> None:
    inner()


async def failing_later(message: Message) -> None:
    inner()


class Around(Hooks):
    """A hook whose frames are in no traceback of a handler."""

    def around_delivery(self, endpoint, message, call_next):
        return call_next()


def of_handlers(caplog):
    return [record for record in caplog.records if hasattr(record, "handler")]


def failure(connected, caplog, handler, *hooks, mode="serial"):
    """The record of the first failure of a handler, and the endpoint."""
    link = connected()
    put(link, "a")
    endpoint = endpoint_of(handler, terms(mode), *hooks)
    endpoint.handler.open()
    performance = Performance(endpoint, link)
    until(lambda: of_handlers(caplog))
    performance.stop()
    endpoint.handler.close()
    return of_handlers(caplog)[0], endpoint


@pytest.mark.parametrize("mode", ["serial", "sync", "cc"])
def test_a_failure_names_the_message_and_the_handler(connected, caplog, mode):
    record, _ = failure(connected, caplog, failing, mode=mode)
    told = {
        "message_id": "ID:a",
        "destination": "queue:q",
        "delivery_count": 1,
        "handler": "failing",
        "endpoint": "test",
    }
    assert {name: getattr(record, name) for name in told} == told
    assert all(str(value) in record.getMessage() for value in told.values())
    assert record.levelno == logging.ERROR


@pytest.mark.parametrize("handler", [failing, failing_later])
def test_the_traceback_begins_at_the_handlers_own_frame(connected, caplog, handler):
    record, endpoint = failure(connected, caplog, handler, Around())
    _, error, trace = record.exc_info
    assert [frame.name for frame in traceback.extract_tb(trace)] == [handler.__name__, "inner"]
    assert str(error) == "no such article"
    assert endpoint.redelivery.find_encounter("ID:a").failure.stack_trace.count("File ") == 2


def test_an_error_of_a_hook_has_its_traceback(connected, caplog):
    class Broken(Hooks):
        def around_delivery(self, endpoint, message, call_next):
            inner()

    record, _ = failure(connected, caplog, failing, Broken())
    assert [frame.name for frame in traceback.extract_tb(record.exc_info[2])][-2:] == ["around_delivery", "inner"]


def test_a_retry_is_no_error(connected, caplog):
    caplog.set_level(logging.INFO, "jmsjca.inbound")

    def busy(message: Message) -> None:
        raise Retry("the shop is closed", delay=0.01)

    record, _ = failure(connected, caplog, busy)
    assert record.levelno == logging.INFO
    assert "the shop is closed" in record.getMessage()


def test_an_error_of_the_library_has_no_traceback(connected, caplog):
    def refusing(message: Message) -> None:
        raise MessageFormatError("it is no number")

    record, _ = failure(connected, caplog, refusing)
    assert record.exc_info is None
    assert "it is no number" in record.getMessage()


def test_a_message_without_id_is_told_by_its_content(connected, caplog):
    link = connected()
    unit = link.unit()
    unit.send(Message(), Queue("q"))
    unit.commit()
    performance = Performance(endpoint_of(failing, terms("serial")), link)
    until(lambda: of_handlers(caplog))
    performance.stop()
    assert of_handlers(caplog)[0].message_id.startswith("content:")
    assert depth(link).total == 1


def warnings(caplog):
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


@pytest.mark.parametrize("spec", [{}, {"concurrency_mode": "cc"}])
def test_the_default_redelivery_handling_is_warned_of_at_the_start(adapter, caplog, spec):
    """With a handling that has an end, to paste."""
    activation = adapter.activate(ActivationSpec(destination="orders", **spec), failing)
    activation.start()
    activation.stop()
    [text] = warnings(caplog)
    assert "queue:orders" in text
    assert 'redelivery_handling="3:25; 5:50; 10:100; 20:1000; 50:move(queue:dlq.$)"' in text


@pytest.mark.parametrize("handling", ["", "3:1000", "5:move(queue:dlq)", "1:delete"])
def test_a_redelivery_handling_of_ones_own_is_not_warned_of(adapter, caplog, handling):
    activation = adapter.activate(ActivationSpec(destination="orders", redelivery_handling=handling), failing)
    activation.start()
    activation.stop()
    assert warnings(caplog) == []


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Reject(7),
        lambda: Reject(None),
        lambda: Retry(5),
        lambda: Retry(delay=-1),
        lambda: Retry(delay="5"),
        lambda: Retry(delay=True),
        lambda: Retry(delay=float("nan")),
        lambda: Retry(delay=2_147_484),
    ],
)
def test_a_decision_with_a_wrong_argument_is_refused(wrong):
    with pytest.raises(ConfigurationError, match=r"Reject|Retry"):
        wrong()
