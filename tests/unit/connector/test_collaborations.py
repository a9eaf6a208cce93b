"""A queue or a topic as collaboration: business objects as messages, in the transaction that removes the event."""

from jmsjca import BytesMessage, Queue, Topic
from jmsjca.connector import BusinessObject, Connector, ConnectorConfig, ReturnCode
from jmsjca.connector.data_handlers import data_handler

BODY = '{"_type": "Order", "id": 1}'


def test_a_queue_gets_the_business_object_with_the_id_of_its_event(connector, session, messages):
    event = session.create_text_message(BODY)
    session.create_producer(Queue("in")).send(event)
    polling = connector(Queue("out"), archive_destination="archive")
    assert polling.poll_for_events() is ReturnCode.SUCCEED
    (sent,) = messages("out")
    order = data_handler("application/json").to_business_object(sent.body)
    assert (order, sent.properties["ObjectEventId"]) == (BusinessObject("Order", "Create", {"id": 1}), event.message_id)
    assert (len(messages("archive")), messages("in")) == (1, [])


def test_a_topic(connector, session):
    consumer = session.create_consumer(Topic("news"))
    session.create_producer(Queue("in")).send(BODY)
    connector(Topic("news")).poll_for_events()
    assert '"id": 1' in consumer.receive(60).body


def test_an_object_that_cannot_be_converted_fails(connector, session, messages):
    session.create_producer(Queue("in")).send("_type=Order\n_verb=Create\nid=1")
    rule = {"Order_Create": "InputDestination=in;DataHandlerMimeType=text/namevalue"}
    fields = {"definitions": {"Other": {"attributes": {}}}, "configuration_meta_object": rule}
    connector(Queue("out"), error_destination="errors", **fields).poll_for_events()
    assert (messages("out"), len(messages("errors"))) == ([], 1)


class UTF16:
    """A data handler of bytes."""

    def __init__(self):
        self.json = data_handler("application/json")

    def to_business_object(self, content, **options):
        return self.json.to_business_object(content, **options)

    def to_content(self, business_object):
        return self.json.to_content(business_object).encode("utf-16")


def test_a_data_handler_of_bytes_makes_bytes_messages(url, session, messages):
    session.create_producer(Queue("in")).send(BODY)
    config = ConnectorConfig(connection_url=url, input_destination="in")
    with Connector(config, Queue("out"), data_handler=UTF16()) as polling:
        polling.poll_for_events()
    (sent,) = messages("out")
    assert isinstance(sent, BytesMessage)
    assert '"id": 1' in sent.body.decode("utf-16")
