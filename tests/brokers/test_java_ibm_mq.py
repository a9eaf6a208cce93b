"""IBM MQ's client without a queue manager, and a smoke test where ``JMSJCA_IBMMQ_URL`` names one."""

import json
import os
import socket
import threading
import uuid
from contextlib import closing, suppress
from pathlib import Path
from urllib.parse import urlencode

import pytest
from brokers import BROKERS
from certificate_authority import Authority
from jms_java.program import FILES, bind_in_folder, classpath, download

from jmsjca import ConnectionFactory, Message, Queue, TextMessage
from jmsjca.destinations import Topic
from jmsjca.errors import ConfigurationError, ConnectionLostError, InvalidDestinationError
from jmsjca.messages import Properties
from jmsjca.messages.properties import Int
from jmsjca.providers.java.codec import encode

PATIENCE = 30
SLOW = 300  # seconds: the client loads thousands of classes
QUEUE_MANAGER = os.environ.get("JMSJCA_IBMMQ_URL")


@pytest.fixture(scope="module")
def jars(supply):
    """Return the class path of the client. It may be downloaded for tests; jmsjca does not come with it."""
    return f"{supply(download, 'ibmmq')}/*"


def refused(jars, address="127.0.0.1:1", scheme="wmq", **options):
    """Return the error of an attempt to connect."""
    url = f"{scheme}://{address}?{urlencode({'class_path': jars, 'connect_timeout': str(SLOW)} | options)}"
    with pytest.raises((ConfigurationError, ConnectionLostError)) as caught:
        ConnectionFactory(url).create_connection()
    return caught.value


class Server:
    """Listens, remembers what it was sent first, and closes or answers."""

    def __init__(self, answer=b"", context=None):
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._context = context
        self._answer = answer
        self.port = self._listening.getsockname()[1]
        self.heard = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                peer, _ = self._listening.accept()
            except OSError:
                return
            with (
                suppress(OSError),
                self._context.wrap_socket(peer, server_side=True) if self._context else peer as talk,
            ):
                self.heard.append(talk.recv(100))
                talk.sendall(self._answer)

    def close(self):
        self._listening.close()


def table(folder, port, name="QM1"):
    """Return the URL of a client channel definition table."""
    places = [{"host": "127.0.0.1", "port": port}]
    channel = {"name": "APP", "type": "clientConnection"}
    channel |= {"clientConnection": {"connection": places, "queueManager": name}}
    file = folder / "ccdt.json"
    file.write_text(json.dumps({"channel": [channel]}))
    return file.as_uri()


class TestErrors:
    def test_nothing_listens(self, jars):
        error = refused(jars, QueueManager="QM1")
        assert isinstance(error, ConnectionLostError)  # for IBM it is an IllegalStateException
        assert "(reason 2538). Nothing listens there" in str(error)
        assert "QM1" in str(error)

    def test_server_that_is_not_a_queue_manager(self, jars):
        with closing(Server()) as server:
            error = refused(jars, f"127.0.0.1:{server.port}")
        assert isinstance(error, ConnectionLostError)
        assert "(reason 2009)" in str(error)
        assert server.heard[0].startswith(b"TSH ")

    @pytest.mark.parametrize(
        ("options", "reason"),
        [
            ({"TransportType": "0"}, 2495),
            ({"WMQ_SSL_CIPHER_SUITE": "NO_SUCH_SUITE"}, 2400),
        ],
    )
    def test_configuration(self, jars, options, reason):
        error = refused(jars, **options)
        assert isinstance(error, ConfigurationError)
        assert f"(reason {reason}). " in str(error)

    def test_tls_to_a_plain_port(self, jars):
        with closing(Server(b"HTTP/1.1 400 no\r\n\r\n")) as server:
            error = refused(jars, f"127.0.0.1:{server.port}", SSLCipherSuite="TLS_AES_256_GCM_SHA384")
        assert isinstance(error, ConfigurationError)
        assert "(reason 2397). Correct WMQ_SSL_CIPHER_SUITE" in str(error)

    @pytest.mark.parametrize("content", [None, "{", '{"channel": []}'])
    def test_table_that_cannot_be_used(self, jars, tmp_path, content):
        file = tmp_path / "ccdt.json"
        if content is not None:
            file.write_text(content)
        error = refused(jars, "", QueueManager="QM1", CCDTURL=file.as_uri())
        assert isinstance(error, ConfigurationError)
        assert "(reason 2278). Correct CCDTURL" in str(error)

    def test_number_that_is_none(self, jars):
        error = refused(jars, WMQ_StatusRefreshInterval="STRING")
        assert "the property statusRefreshInterval has the type int" in str(error)

    def test_no_file_is_written_into_the_working_directory(self, jars):
        refused(jars)
        assert not list(Path.cwd().glob("mqjms*"))


def test_tls_trusts_the_authority_of_the_option_alone(jars, tmp_path):
    """And the queue manager is greeted over it."""
    authority = Authority(tmp_path)
    (tmp_path / "other").mkdir()
    with closing(Server(context=authority.server("IP:127.0.0.1"))) as server:
        options = {"SSLCipherSuite": "TLS_AES_256_GCM_SHA384", "ca_file": authority.file}
        assert "(reason 2009)" in str(refused(jars, f"127.0.0.1:{server.port}", **options))
        assert server.heard[0].startswith(b"TSH ")
        other = {**options, "ca_file": Authority(tmp_path / "other").file}
        assert "(reason 2397)" in str(refused(jars, f"127.0.0.1:{server.port}", **other))


def test_table_of_channels_names_the_host(jars, tmp_path):
    with closing(Server()) as server:
        error = refused(jars, "", QueueManager="QM1", CCDTURL=table(tmp_path, server.port))
    assert "(reason 2009)" in str(error)
    assert server.heard[0].startswith(b"TSH ")


def test_bindings_have_the_factory_and_its_queues(supply, jars, tmp_path):
    with closing(Server()) as server:
        everything = f"{jars}:{BROKERS['openmq']().install()}/lib/fscontext.jar"
        queue = ("orders", "com.ibm.mq.jakarta.jms.MQQueue", "BaseQueueName=ORDERS", "TargetClient=1", ".")
        where = ("HostName=127.0.0.1", f"Port={server.port}", "TransportType=1", "QueueManager=QM1")
        factory = ("CF", "com.ibm.mq.jakarta.jms.MQConnectionFactory", *where, ".")
        supply(bind_in_folder, everything, tmp_path.as_uri(), *factory, *queue)
        options = {"java.naming.factory.initial": FILES, "java.naming.provider.url": tmp_path.as_uri()}
        error = refused(everything, "CF", "jndi", **options, **{"lookup.queue.orders": "orders"})
        assert "'QM1'" in str(error)
        assert "(reason 2009). The server ended the connection" in str(error)
        assert server.heard[0].startswith(b"TSH ")
        assert "nowhere" in str(refused(everything, "CF", "jndi", **options, **{"lookup.queue.orders": "nowhere"}))


@pytest.fixture
def loopback(supply, jars):
    """Return a connection of IBM's factory, destinations and messages, without a queue manager."""
    classes = supply(classpath, "ibmmq", "ibmmq").partition(":")[0]
    options = {"class_path": f"{jars},{classes}", "allow_classes": "Loopback"}
    with ConnectionFactory(f"java://Loopback?{urlencode(options)}").create_connection() as connection:
        yield connection


def sent(connection, message, to):
    session = connection.create_session(transacted=True)
    with closing(session.create_consumer(to)) as consumer, closing(session.create_producer(to)) as producer:
        producer.send(message)
        session.commit()
        received = consumer.receive(PATIENCE)
        session.commit()
        return received


class TestMessages:
    PROPERTIES = {  # noqa: RUF012
        "JMS_IBM_Report_PAN": Int(1),
        "JMS_IBM_MsgType": Int(1),
        "JMS_IBM_Feedback": Int(275),
        "JMS_IBM_Format": "MQSTR   ",
        "JMS_IBM_MQMD_ApplIdentityData": "shop",
        "JMS_Other_Vendor": "kept",
        "size": Int(3),
    }

    def test_properties_of_ibm_keep_their_types(self, loopback):
        received = sent(loopback, TextMessage("x", properties=self.PROPERTIES), Queue("ORDERS"))
        found = {name: received.properties[name] for name in self.PROPERTIES}
        assert found == self.PROPERTIES
        assert {name: type(value) for name, value in found.items() if not isinstance(value, str)} == {
            name: Int for name, value in self.PROPERTIES.items() if not isinstance(value, str)
        }

    def test_bytes_of_the_mqmd_are_copied(self, loopback):
        """A dead letter has the properties of its original."""
        read = {"JMS_IBM_MQMD_MsgId": bytes(range(24)), "JMS_IBM_MQMD_BackoutCount": 5}
        copy = TextMessage("x")
        copy.properties = Properties(Properties.received(read))  # as for a dead letter
        received = sent(loopback, copy, Queue("ORDERS"))
        assert received.properties["JMS_IBM_MQMD_MsgId"] == bytes(range(24))

    def test_uris_of_queues_stay_and_plain_names_have_none(self, loopback):
        asked = Queue("queue:///ASK?targetClient=1")
        received = sent(loopback, TextMessage("x", reply_to=asked), Queue("ORDERS"))
        assert (received.destination, received.reply_to) == (Queue("ORDERS"), asked)
        assert sent(loopback, TextMessage("x", reply_to=Queue("ASK")), asked).reply_to == Queue("ASK")
        assert sent(loopback, TextMessage("x"), Topic("news")).destination == Topic("news")

    @pytest.mark.parametrize(
        "correlation_id", ["order 7", "ID:414d5120" + "ab" * 20, "ID:" + "0" * 50, "ID:no-digits-1"]
    )
    def test_correlation_ids_arrive_also_those_that_the_client_refuses(self, loopback, correlation_id):
        """Such as the ids of jmsjca's messages, which have no more than hexadecimal digits and a number."""
        received = sent(loopback, TextMessage("x", correlation_id=correlation_id), Queue("ORDERS"))
        assert received.correlation_id == correlation_id

    def test_wrong_type_of_a_property_is_told(self, loopback):
        with pytest.raises(Exception, match="JMS_IBM_Report_PAN"):
            sent(loopback, TextMessage("x", properties={"JMS_IBM_Report_PAN": "yes"}), Queue("ORDERS"))

    @pytest.mark.parametrize("name", ["x" * 60, "queue:///" + "x" * 49])
    def test_names_that_are_too_long_are_refused_at_once(self, loopback, name):
        with pytest.raises(InvalidDestinationError, match="JMSCC0005"):
            loopback.create_session().create_consumer(Queue(name))


def test_properties_of_a_vendor_are_hidden_from_other_clients():
    message = TextMessage("x", properties={"JMS_IBM_Feedback": 1})
    prefix = b"\x00\x00\x00\x10JMS_IBM_Feedback"
    assert prefix in encode(message, Queue("q"), "JMS_IBM_")
    assert prefix not in encode(message, Queue("q"))


@pytest.mark.skipif(not QUEUE_MANAGER, reason="JMSJCA_IBMMQ_URL names no queue manager")
class TestQueueManager:
    """The URL has a class_path, and a channel that may open temporary queues."""

    def test_units_and_counts(self):
        with ConnectionFactory(QUEUE_MANAGER).create_connection() as connection:
            session = connection.create_session(transacted=True)
            queue = session.create_temporary_queue()
            with closing(session.create_producer(queue)) as producer:
                producer.send(TextMessage(str(uuid.uuid4()), properties={"JMS_IBM_Report_PAN": Int(1), "size": Int(3)}))
                session.rollback()
                producer.send(TextMessage("x", properties={"JMS_IBM_Report_PAN": Int(1), "size": Int(3)}))
                session.commit()
            with closing(session.create_consumer(queue, "size = 3")) as consumer:
                assert consumer.receive(PATIENCE).body == "x"
                session.rollback()
                again = consumer.receive(PATIENCE)
                session.commit()
                assert isinstance(again, Message)
                assert (again.body, again.delivery_count, again.properties["JMS_IBM_Report_PAN"]) == ("x", 2, 1)
