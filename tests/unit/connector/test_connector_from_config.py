"""Connectors of a configuration file."""

import pytest

from jmsjca import Queue
from jmsjca.connector import Connector, DeliveryOutcome
from jmsjca.errors import ConfigurationError

seen = []


def collect(order):
    seen.append(order.get("id"))
    return DeliveryOutcome.SUCCEED


TEXT = """
[connectors.hub]
ConnectionFactoryName = "{url}"
InputDestination = "in;more"
PollQuantity = 2
error_destination = "errors"
collaboration = "{collaboration}"
[connectors.hub.ConfigurationMetaObject]
Order_Create = "InputFormat=Ord"
[connectors.hub.collaborations]
orders = "queue:out"
"""


@pytest.fixture
def file(tmp_path, url):
    def write(collaboration="queue:out", text=TEXT):
        path = tmp_path / "jmsjca.toml"
        path.write_text(text.format(url=url, collaboration=collaboration))
        return path

    return write


def test_a_queue_as_collaboration(file, session, messages):
    message = session.create_text_message('{"id": 1}')
    message.type = "Ord"
    session.create_producer(Queue("in")).send(message)
    with Connector.from_config(file()) as connector:
        connector.poll_for_events()
    assert len(messages("out")) == 1


def test_a_function_as_collaboration(file, session, monkeypatch, request):
    monkeypatch.setitem(__import__("sys").modules, "hub_functions", request.module)
    session.create_producer(Queue("more")).send('{"_type": "Order", "id": 7}')
    request.module.seen.clear()
    with Connector.from_config(file("hub_functions:collect"), "hub") as connector:
        connector.poll_for_events()
    assert request.module.seen == [7]


def test_a_named_collaboration_gets_events_that_ask_for_a_report(file, session, messages):
    text = TEXT.replace("InputFormat=Ord", "InputFormat=Ord;CollaborationName=orders")
    message = session.create_text_message('{"id": 1}', properties={"JMS_IBM_Report_PAN": 1})
    message.type, message.reply_to = "Ord", Queue("reports")
    session.create_producer(Queue("in")).send(message)
    with Connector.from_config(file("queue:elsewhere", text)) as connector:
        connector.poll_for_events()
    assert [len(messages(queue)) for queue in ("out", "elsewhere", "reports")] == [1, 0, 1]


@pytest.mark.parametrize(
    ("text", "name", "reason"),
    [
        ("", None, "no connector '' .it has: none"),
        (TEXT, "other", "no connector 'other' .it has: hub"),
        (TEXT + '[connectors.other]\nInputDestination = "in"', None, "it has: hub, other"),
        (TEXT.replace("PollQuantity = 2", "PollQuantity = 501"), "hub", "poll_quantity"),
        (TEXT.replace("PollQuantity", "Quantity"), "hub", r"jmsjca.toml: connectors.hub: .*: Quantity is unknown"),
        (TEXT.replace("{collaboration}", "nowhere:function"), "hub", "nowhere"),
        (TEXT[: TEXT.index("[connectors.hub.C")] + 'collaborations = "queue:out"', "hub", "collaborations is a table"),
    ],
)
def test_what_is_refused(file, text, name, reason):
    with pytest.raises(ConfigurationError, match=reason):
        Connector.from_config(file(text=text), name)
