"""Management requests: refused, unanswered, and answered in an unexpected form."""

import contextlib
import copy
import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from proton import Message as WireMessage

from jmsjca import errors
from jmsjca.config import DestinationSettings
from jmsjca.destinations import Queue, Subscription, TemporaryQueue, Topic
from jmsjca.errors import ConnectionLostError, JMSError, JMSSecurityError, TransactionInDoubtError
from jmsjca.messages import Message
from jmsjca.providers.amqp.admin import ManagementClient, ManagementResponse
from jmsjca.providers.brokers.artemis_amqp import ArtemisAdmin
from jmsjca.providers.brokers.qpid_amqp import QpidAdmin
from jmsjca.spi import Activity, Depth

GONE = object()
STRANGE = [GONE, None, True, -1, 10**30, 0.5, "", "strange", "7" * 5000, "²", [], ["a"], {}, {"a": 1}]

QUEUE, IDLE, SUBSCRIPTION = Queue("q"), Queue("idle"), Subscription(Topic("t"), "s", "c")
CALLS = {
    "destinations": lambda admin: admin.destinations(),
    "depth": lambda admin: admin.depth(QUEUE),
    "depth of a subscription": lambda admin: admin.depth(SUBSCRIPTION),
    "purge": lambda admin: admin.purge(QUEUE),
    "purge of a subscription": lambda admin: admin.purge(SUBSCRIPTION),
    "remove": lambda admin: admin.remove(IDLE),
    "activity": lambda admin: admin.activity(QUEUE),
    "activity of a subscription": lambda admin: admin.activity(SUBSCRIPTION),
}
TOLD = {
    "destinations": sorted([IDLE, QUEUE, Topic("t"), TemporaryQueue("made")], key=str),
    "depth": Depth(2, 1, 0),
    "depth of a subscription": Depth(3, 0, 0),
    "purge": 2,
    "purge of a subscription": 3,
    "remove": None,
    "activity": Activity(1, 5, 2),
    "activity of a subscription": Activity(0, 5, 2),
}


TRAFFIC = {"totalEnqueuedMessages": 5, "totalDequeuedMessages": 2}


class Artemis:
    """Answers as Artemis does, but for one place of what it says."""

    def __init__(self):
        self.rows = [
            self._row("q", "q", "ANYCAST", messages=3, held=1, consumers=1),
            self._row("idle", "idle", "ANYCAST"),
            self._row("made", "made", "ANYCAST"),
            self._row("c.s", "t", "MULTICAST", messages=3),
        ]
        self.tree = {
            "queues": {"data": self.rows, "count": 4},
            "addresses": {
                "data": [{"name": "made", "temporary": "true"}, {"name": "q", "temporary": "false"}],
                "count": 2,
            },
            "removed": {"q": 2, "c.s": 3},
        }
        self.failures = []  # what it says to the next requests instead of an answer
        self.admin = ArtemisAdmin(self, None)

    def request(self, request):
        operation = request.properties["_AMQ_OperationName"]
        if self.failures:
            return ManagementResponse({"_AMQ_OperationSucceeded": False}, json.dumps([self.failures.pop()]))
        name = request.properties["_AMQ_ResourceName"].removeprefix("queue.")
        found = {
            "listQueues": lambda: json.dumps(self.tree["queues"]),
            "listAddresses": lambda: json.dumps(self.tree["addresses"]),
            "removeAllMessages": lambda: self.tree["removed"].get(name),
            "destroyQueue": lambda: None,
            "createQueue": lambda: None,
        }
        return ManagementResponse({"_AMQ_OperationSucceeded": True}, json.dumps([found[operation]()]))

    @staticmethod
    def _row(name, address, routing, *, messages=0, held=0, consumers=0):
        numbers = {"messageCount": messages, "deliveringCount": held, "scheduledCount": 0, "consumerCount": consumers}
        numbers |= {"messagesAdded": 5, "messagesAcked": 2}
        texts = {"name": name, "address": address, "routingType": routing, "temporary": "false"}
        return {**texts, **{key: str(value) for key, value in numbers.items()}}


class BrokerJ:
    """Answers as Broker-J does, but for one place of what it says."""

    def __init__(self):
        columns = ["identity", "name", "lifetimePolicy"]
        rows = [["1", "q", ""], ["2", "idle", ""], ["3", "made", "DELETE_ON_CREATING_LINK_CLOSE"]]
        self.tree = {
            "queues": {"attributeNames": columns, "results": [*rows, ["4", "qpidsub_/c_/s_/durable", ""]]},
            "exchanges": {"attributeNames": columns, "results": []},
            "topic": {"bindings": [{"bindingKey": "t"}]},
            "counts": {
                "q": {"queueDepthMessages": 3, "unacknowledgedMessages": 1, "consumerCount": 1, **TRAFFIC},
                "idle": {"queueDepthMessages": 0, "unacknowledgedMessages": 0, "consumerCount": 0, **TRAFFIC},
                "4": {"queueDepthMessages": 3, "unacknowledgedMessages": 0, "consumerCount": 0, **TRAFFIC},
            },
            "removed": {"4": 3},
        }
        self.admin = QpidAdmin(self)

    def request(self, request):
        told = request.properties
        where = told.get("key") or told.get("identity")
        found = {
            "QUERY": lambda: self.tree["exchanges" if "Exchange" in told.get("entityType", "") else "queues"],
            "READ": lambda: self.tree["topic"],
            "getStatistics": lambda: self.tree["counts"].get(where),
            "clearQueue": lambda: self.tree["removed"].get(where),
            "DELETE": lambda: None,
            "CREATE": lambda: None,
        }
        return ManagementResponse({"statusCode": 200}, found[told["operation"]]())

    def discard(self, queue, limit):
        return limit


@pytest.fixture(params=[Artemis, BrokerJ])
def management(request):
    return request.param


@pytest.mark.parametrize("call", CALLS)
def test_what_was_tested_is_understood(management, call):
    assert CALLS[call](management().admin) == TOLD[call]


def test_only_queues_with_a_name_of_the_callers_are_created(management):
    admin = management().admin
    admin.create(QUEUE)
    for what in (Topic("t"), TemporaryQueue("made")):
        with pytest.raises(errors.InvalidDestinationError, match="cannot be created here"):
            admin.create(what)


REMOVED = 'Cannot invoke "org.apache.activemq.artemis.core.server.Queue.isAutoCreated()" because "q" is null'


@pytest.mark.parametrize("call", ["destinations", "depth", "activity"])
def test_a_queue_that_is_removed_while_artemis_lists_its_queues_disturbs_nothing(call):
    """Such as the temporary queue of another request."""
    management = Artemis()
    management.failures = [REMOVED] * 3
    assert CALLS[call](management.admin) == TOLD[call]
    management.failures = endless = [REMOVED] * 1000
    with pytest.raises(JMSError, match="is null"):
        CALLS[call](management.admin)
    assert endless
    management.failures = ["AMQ229107: something else", "not asked for"]
    with pytest.raises(JMSError, match="not asked for"):
        CALLS[call](management.admin)


NAMELESS = {
    "a queue of Artemis": (Artemis, lambda tree: _add_row(tree, name="")),
    "an address of Artemis": (Artemis, lambda tree: _add_row(tree, address="", routingType="MULTICAST")),
    "a queue of Broker-J": (BrokerJ, lambda tree: tree["queues"]["results"].append(["9", "", ""])),
    "an exchange of Broker-J": (
        BrokerJ,
        lambda tree: tree["exchanges"]["results"].append(["9", "", "DELETE_ON_CREATING_LINK_CLOSE"]),
    ),
    "a binding of Broker-J": (BrokerJ, lambda tree: tree["topic"]["bindings"].append({"bindingKey": ""})),
}


def _add_row(tree, **fields):
    tree["queues"]["data"].append({**tree["queues"]["data"][0], **fields})


@pytest.mark.parametrize("what", NAMELESS)
def test_what_has_no_name_hides_nothing_else(what):
    """Other clients can make such things."""
    kind, add = NAMELESS[what]
    management = kind()
    add(management.tree)
    assert CALLS["destinations"](management.admin) == TOLD["destinations"]


def places(tree, path=()):
    """Where something stands in a tree."""
    children = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, child in children:
        yield (*path, key)
        yield from places(child, (*path, key))


def put(tree, path, value):
    *before, last = path
    for key in before:
        tree = tree[key]
    if value is GONE:
        del tree[last]
    else:
        tree[last] = copy.deepcopy(value)


def is_ours(error):
    return isinstance(error, JMSError) and type(error).__name__ in errors.__all__ and len(str(error)) < 1000


@pytest.mark.parametrize("call", CALLS)
def test_what_is_strange_is_told_or_does_not_matter(management, call):
    """Each place of the answers in turn holds each of many strange things."""
    answered = [path for path in places(management().tree) if len(path) > 1]
    wrong = []
    for path in answered:
        for strange in STRANGE:
            each = management()
            put(each.tree, path, strange)
            try:
                CALLS[call](each.admin)
            except Exception as error:  # noqa: BLE001  # that is what is looked for
                if not is_ours(error):
                    wrong.append((path, str(strange)[:20], repr(error)[:100]))
    assert not wrong, wrong[:5]


STRANGE_BODIES = ["7", "null", "[]", '"text"', '{"a": 1}', "[1, 2]", "[[]]", "[{}]", '["7"]', '["[]"]', '["{}"]']


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("body", [*STRANGE_BODIES, "[" * 100_000, 7, b"bytes"])
def test_what_is_no_answer_of_artemis_is_an_error(body, call):
    class Strange:
        def request(self, request):
            return ManagementResponse({"_AMQ_OperationSucceeded": True}, body)

    with pytest.raises(JMSError, match="management") as told:
        CALLS[call](ArtemisAdmin(Strange(), None))
    assert is_ours(told.value)


@pytest.mark.parametrize("strange", STRANGE)
@pytest.mark.parametrize("field", ["maxDeliveryAttempts", "deadLetterAddress", "expiryAddress"])
def test_strange_settings_of_artemis_are_told_or_do_not_matter(field, strange):
    class Strange:
        def request(self, request):
            return ManagementResponse({"_AMQ_OperationSucceeded": True}, json.dumps([json.dumps(found)]))

    found = {"maxDeliveryAttempts": 3, "deadLetterAddress": "dead", "expiryAddress": "expired"}
    assert ArtemisAdmin(Strange(), None).settings(QUEUE) == DestinationSettings(3, Queue("dead"), Queue("expired"))
    put(found, [field], strange)
    with contextlib.suppress(JMSError):
        ArtemisAdmin(Strange(), None).settings(QUEUE)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("body", [None, 7, "text", [], ["a"], {}, {"attributeNames": ["name"]}, {"results": [[]]}])
def test_what_is_no_answer_of_broker_j_is_an_error(body, call):
    class Strange:
        def request(self, request):
            return ManagementResponse({"statusCode": 200}, body)

    with pytest.raises(JMSError, match="management") as told:
        CALLS[call](QpidAdmin(Strange()))
    assert is_ours(told.value)


def test_what_came_is_shown():
    management = Artemis()
    management.tree["queues"]["data"][0]["messageCount"] = "a lot"
    with pytest.raises(JMSError, match=r"messageCount.*a lot"):
        management.admin.depth(QUEUE)


def test_pages_that_hold_nothing_are_not_asked_for_without_end():
    management = Artemis()
    management.tree["queues"] = {"data": [], "count": 10**12}
    assert management.admin.depth(QUEUE) == Depth(0, 0, 0)


REFUSED_QUEUE = Queue("q")
REFUSED_CALLS = {
    "destinations": lambda admin: admin.destinations(),
    "depth": lambda admin: admin.depth(REFUSED_QUEUE),
    "depth of a subscription": lambda admin: admin.depth(Subscription(Topic("t"), "s", "c")),
    "purge": lambda admin: admin.purge(REFUSED_QUEUE),
    "remove": lambda admin: admin.remove(REFUSED_QUEUE),
}


class Refusing:
    """A management that gives every request the same answer."""

    def __init__(self, body=None, **properties):
        self._answer = ManagementResponse(properties, body)

    def request(self, request):
        return self._answer


@pytest.mark.parametrize("call", REFUSED_CALLS)
def test_no_permission_is_a_security_error(call):
    admin = QpidAdmin(Refusing(statusCode=403, statusDescription="Permission INVOKE is denied"))
    with pytest.raises(JMSSecurityError, match="Permission INVOKE is denied"):
        REFUSED_CALLS[call](admin)


@pytest.mark.parametrize("call", REFUSED_CALLS)
@pytest.mark.parametrize("status", [400, 409, 500])
def test_other_failures_are_none(call, status):
    admin = QpidAdmin(Refusing(statusCode=status, statusDescription="x" * 10_000))
    with pytest.raises(JMSError, match=r"refuses .*: x") as told:
        REFUSED_CALLS[call](admin)
    assert type(told.value) is JMSError
    assert len(str(told.value)) < 1000


@pytest.mark.parametrize("call", REFUSED_CALLS)
@pytest.mark.parametrize("properties", [{}, {"statusCode": "403"}, {"statusCode": None}])
def test_an_answer_without_a_status_is_an_error(call, properties):
    with pytest.raises(JMSError, match="without a status"):
        REFUSED_CALLS[call](QpidAdmin(Refusing(**properties)))


@pytest.mark.parametrize("body", ["no JSON", "[", "[]", "[null]", '["no JSON"]', 7])
def test_an_answer_of_artemis_that_is_none_is_an_error(body):
    with pytest.raises(JMSError, match="is invalid"):
        ArtemisAdmin(Refusing(body, _AMQ_OperationSucceeded=True), None).depth(REFUSED_QUEUE)


class Cut:
    """A connection that breaks when a request has been sent."""

    def temporary(self, kind):
        return Queue("answers")

    def consumer(self, source):
        return None

    def unit(self, *, atomic):
        return self

    def send(self, message, to):
        assert to == Queue("management")

    def commit(self):
        raise TransactionInDoubtError("Some messages may have been sent.")


def test_a_request_without_an_answer_may_have_been_done():
    with pytest.raises(ConnectionLostError, match="may have performed: Some messages may have been sent") as told:
        ManagementClient(Cut(), "management", 1.0).request(Message())
    assert isinstance(told.value.__cause__, TransactionInDoubtError)


class Garbling(Cut):
    """A connection over which bytes come that may be no message, and nothing else."""

    def __init__(self, encoded):
        self.encoded, self._left = encoded, [self]

    def consumer(self, source):
        return self

    def receive(self, limit, timeout):
        return [self._left.pop()] if self._left else []

    def take(self, deliveries):
        assert deliveries == [self]

    def commit(self):
        pass


@given(st.binary())
@example(b"x")
@example(bytes(WireMessage(body=None, correlation_id=None, properties={"a": 1}).encode())[:-1])
def test_an_answer_that_is_no_message_is_told(encoded):
    with pytest.raises(JMSError):
        ManagementClient(Garbling(encoded), "management", 1.0).request(Message())


class Unsettled(Garbling):
    """A connection whose broker refuses settlements."""

    is_closed = False

    def commit(self):
        raise TransactionInDoubtError("The acknowledgement was not confirmed.")

    def close(self):
        self.is_closed = True


def test_a_purge_that_fails_leaves_no_consumer_with_messages_behind():
    connection = Unsettled(b"")
    with pytest.raises(TransactionInDoubtError):
        ManagementClient(connection, "management", 1.0).discard(QUEUE, 2)
    assert connection.is_closed
