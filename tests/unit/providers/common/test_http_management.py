"""Management over HTTP: hostile, strange and missing answers become errors, and no secret is shown."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import quote

import pytest

from jmsjca.config import Credentials
from jmsjca.destinations import Queue, Subscription, TemporaryQueue, Topic
from jmsjca.errors import (
    ConnectionLostError,
    IllegalStateError,
    InvalidDestinationError,
    InvalidOptionError,
    JMSError,
    JMSSecurityError,
)
from jmsjca.providers.brokers.activemq import ActiveMQAdmin
from jmsjca.providers.brokers.management import HTTPManagement
from jmsjca.providers.brokers.rabbitmq import RabbitMQHTTPAdmin
from jmsjca.providers.common.network import NetworkOptions

BROKER = "org.apache.activemq:type=Broker,brokerName=b"
SECRET = "hush-4711"  # noqa: S105  # of nobody


class Server:
    """Answers each request with what a function returns: a status and a body."""

    def __init__(self):
        self.answer, self.requests = lambda request: (200, {"status": 200, "value": {}}), []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or "null")
                outer.requests.append((self.path, dict(self.headers), body))
                status, found = outer.answer(body)
                content = found if isinstance(found, bytes) else json.dumps(found).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.send_header("Location", "http://127.0.0.1:1/elsewhere")
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_PUT = do_DELETE = do_POST  # noqa: N815  # names of the base class

            def log_message(self, *args):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/jolokia"
        self._thread = threading.Thread(target=self._server.serve_forever, args=[0.01])
        self._thread.start()

    def close(self):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.mark.parametrize("url", ["http://h:99999/", "http://h:x/", "http://[h/", "http://[::1", "http://h/\u00fc"])
def test_url_that_is_none(url):
    with pytest.raises(InvalidOptionError, match="management_url"):
        HTTPManagement(NetworkOptions(management_url=url), None)


@pytest.fixture
def server():
    running = Server()
    yield running
    running.close()


def management(server, credentials=None):
    options = NetworkOptions(management_url=server.url, allow_insecure_login=True)
    return HTTPManagement(options, credentials)


def test_the_user_is_named_and_the_request_is_json(server):
    assert management(server, Credentials("ann", SECRET)).post({"a": 1}) == {"status": 200, "value": {}}
    [(path, headers, body)] = server.requests
    assert (path, body, headers["Authorization"]) == ("/jolokia", {"a": 1}, "Basic YW5uOmh1c2gtNDcxMQ==")


@pytest.mark.parametrize(
    ("status", "body", "error", "text"),
    [
        (401, b"", JMSSecurityError, "refuses the user"),
        (403, b"", JMSSecurityError, "refuses the user"),
        (302, b"", JMSError, "status 302"),  # not followed: the password would go there
        (500, b"oops", JMSError, "status 500"),
        (200, b"<html>", JMSError, "no JSON"),
        (200, b"[" * 100_000, JMSError, "no JSON"),
    ],
)
def test_an_answer_that_is_none_is_an_error_without_the_password(server, status, body, error, text):
    server.answer = lambda request: (status, body)
    with pytest.raises(error, match=text) as caught:
        management(server, Credentials("ann", SECRET)).post({})
    assert SECRET not in f"{caught.value!r}{caught.value.__cause__!r}"
    assert len(server.requests) == 1


def test_a_long_answer_is_not_read_to_its_end(server, monkeypatch):
    monkeypatch.setattr("jmsjca.providers.brokers.management._RESPONSE_BYTES", 1000)
    server.answer = lambda request: (200, b" " * 100_000)
    with pytest.raises(JMSError, match="more than 1000 bytes"):
        management(server).post({})


def test_a_server_that_closes_is_a_lost_connection(server):
    def fail(request):
        raise ConnectionResetError

    server.answer = fail
    server._server.handle_error = lambda *args: None
    with pytest.raises(ConnectionLostError, match="cannot be reached"):
        management(server).post({})


CALLS = {
    "destinations": lambda admin: admin.destinations(),
    "depth": lambda admin: admin.depth(Queue("q")),
    "depth of a subscription": lambda admin: admin.depth(Subscription(Topic("t"), "s", "c")),
    "activity": lambda admin: admin.activity(Queue("q")),
    "create": lambda admin: admin.create(Queue("q")),
    "remove": lambda admin: admin.remove(Queue("q")),
}
STRANGE = [None, 7, "text", [], ["a"], {}, {"status": "200"}, {"status": 500, "error": "no"}, {"status": 403}]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("answer", STRANGE, ids=repr)
def test_a_strange_answer_is_an_error(server, call, answer):
    server.answer = lambda request: (200, answer)
    with pytest.raises(JMSError):
        CALLS[call](ActiveMQAdmin(management(server), None))


@pytest.mark.parametrize("size", ["7", -1, 0.5, True, None, [], {}])
def test_a_strange_number_is_an_error(server, size):
    def answer(request):
        found = [BROKER] if request["type"] == "search" else {"Name": "q", "QueueSize": size, "InFlightCount": 0}
        return 200, {"status": 200, "value": found}

    server.answer = answer
    with pytest.raises(JMSError, match="QueueSize,"):
        ActiveMQAdmin(management(server), None).depth(Queue("q"))


def rabbitmq(server):
    return RabbitMQHTTPAdmin(management(server), lambda source: source.name)


RABBITMQ_CALLS = {name: CALLS[name] for name in ("destinations", "depth", "activity")}
RABBITMQ_CALLS["purge"] = lambda admin: admin.purge(Queue("q"))


@pytest.mark.parametrize("call", RABBITMQ_CALLS)
@pytest.mark.parametrize("answer", [None, 7, "text", [7], [[]], [{"name": 7}], "[{}]"], ids=repr)
def test_a_strange_answer_of_rabbitmq_is_an_error(server, call, answer):
    if call == "purge" and isinstance(answer, list):
        pytest.skip("it counts the messages, and reads nothing of them")
    server.answer = lambda request: (200, answer)
    with pytest.raises(JMSError, match="Is the URL that of its API"):
        RABBITMQ_CALLS[call](rabbitmq(server))


@pytest.mark.parametrize("size", ["7", -1, 0.5, True, None, [], {}])
def test_a_strange_number_of_rabbitmq_is_an_error(server, size):
    server.answer = lambda request: (200, {"name": "q", "messages_ready": size, "message_stats": {"ack": size}})
    for call in ("depth", "activity"):
        with pytest.raises(JMSError, match="is invalid"):
            CALLS[call](rabbitmq(server))


@pytest.mark.parametrize("name", ["orders", "a/b", "..", "ä b?c#d%25", "a\r\nHost: x"])
def test_a_name_is_one_segment_of_the_path(server, name):
    server.answer = lambda request: (404, {})
    assert rabbitmq(server).depth(Queue(name)).total == 0
    [(path, _, _)] = server.requests
    assert path.startswith(f"/jolokia/queues/%2F/{quote(name, safe='')}?columns=name,")


def test_a_queue_that_is_in_use_when_it_is_deleted_stays(server):
    """The consumer came after the broker's last measurement."""
    server.answer = lambda request: (400 if "if-unused" in server.requests[-1][0] else 200, {"type": "classic"})
    with pytest.raises(IllegalStateError, match="still has consumers"):
        rabbitmq(server).remove(Queue("q"))


def test_only_queues_with_a_name_are_created_and_removed(server):
    for call in (rabbitmq(server).create, rabbitmq(server).remove):
        for what in (Topic("t"), TemporaryQueue("q")):
            with pytest.raises(InvalidDestinationError):
                call(what)
    assert server.requests == []
