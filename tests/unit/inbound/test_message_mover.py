"""Moved messages: failed moves, moves without a copy, and the data in dead letters."""

import logging
import queue

import pytest

from jmsjca import (
    ActivationSpec,
    BytesMessage,
    Hooks,
    Int,
    Limits,
    Message,
    Outcome,
    Queue,
    ResourceAdapter,
    TextMessage,
)
from jmsjca.errors import (
    ConnectionLostError,
    InvalidDestinationError,
    MessageFormatError,
    ResourceAllocationError,
    TransactionInDoubtError,
    TransactionRolledBackError,
)
from jmsjca.inbound.message_mover import MessageMover
from jmsjca.redelivery import Delete, RedeliveryPolicy
from tests.unit.inbound.deliveries import Breaks, Performance, depth, endpoint_of, put, terms, until
from tests.unit.inbound.listeners import PATIENCE, Inbox, send

MODES = ["serial", "sync", "cc"]
MOVES = RedeliveryPolicy.parse("1:move(queue:dlq)")


class Stubborn:
    """A handler that fails for so many times."""

    def __init__(self, failures=1):
        self.failures, self.got = failures, queue.Queue()

    def __call__(self, message):
        self.got.put(message.redelivery_count)
        if self.failures:
            self.failures -= 1
            raise ValueError("no")


def breaking(link, **errors):
    """Let calls of units that move something fail: those are the ones that send to the queue dlq."""
    open_unit, made = link.unit, []

    def unit(**kwargs):
        real = open_unit(**kwargs)
        broken = Breaks(real)
        send = real.send

        def noticing_send(message, to):
            if to == Queue("dlq"):
                made.append(message)
                broken.errors = {name: error for name, error in errors.items() if name != "send"}
                if "send" in errors:
                    raise errors["send"]
            send(message, to)

        real.send = noticing_send
        return broken

    link.unit = unit
    return made


def dead_letters(link):
    return link.admin().depth(Queue("dlq")).total


@pytest.mark.parametrize("mode", MODES)
def test_a_copy_that_cannot_be_sent_lets_the_message_be_delivered_with_a_warning(connected, mode, caplog):
    link, handler = connected(), Stubborn()
    tried = breaking(link, send=ResourceAllocationError("too large"))
    put(link, "a")
    performance = Performance(endpoint_of(handler, terms(mode, redelivery=MOVES)), link)
    assert [handler.got.get(timeout=30) for _ in range(2)] == [0, 1]
    until(lambda: depth(link).total == 0)
    performance.stop()
    assert (len(tried), dead_letters(link)) == (
        4,
        0,
    )  # the copy, the redirected one, the bytes with facts and without
    assert "it is delivered" in caplog.text


@pytest.mark.parametrize("mode", MODES)
def test_a_move_whose_commit_fails_with_every_copy_lets_the_message_be_delivered(connected, mode, caplog):
    link, handler = connected(), Stubborn()
    tried = breaking(link)
    open_unit = link.unit
    real_commits = []

    def unit(**kwargs):
        made = open_unit(**kwargs)
        commit = made._real.commit

        def failing_commit(**options):
            if tried and len(real_commits) < 4 and made._real._outgoing:
                real_commits.append(1)
                made._real.rollback()
                raise TransactionRolledBackError("the queue is full")
            commit(**options)

        made._real.commit = failing_commit
        return made

    link.unit = unit
    put(link, "a")
    performance = Performance(endpoint_of(handler, terms(mode, redelivery=MOVES)), link)
    assert [handler.got.get(timeout=30) for _ in range(2)] == [0, 1]
    until(lambda: depth(link).total == 0)
    performance.stop()
    assert (len(tried), dead_letters(link)) == (4, 0)
    assert "the message will be redelivered" in caplog.text


def commits_by(link, commit):
    """Let units of a connection do something else at their commit."""
    open_unit = link.unit

    def unit(**kwargs):
        made = open_unit(**kwargs)
        made.commit = lambda: commit(made)
        return made

    link.unit = unit


def rolled_back(cause=None):
    error = TransactionRolledBackError("it was rolled back")
    error.__cause__ = cause
    return error


class RefusedError(ConnectionLostError):
    """A refusal with which a broker ends the connection."""


@pytest.mark.parametrize(
    ("errors", "told"),
    [
        ([rolled_back(ConnectionLostError("cut"))] * 4, True),
        ([rolled_back(BrokenPipeError("cut"))] * 4, True),
        ([rolled_back(ResourceAllocationError("the queue is full"))] * 4, True),
        ([rolled_back(ConnectionLostError("cut"))] * 5, False),
        ([rolled_back(RefusedError("too many properties"))], False),
        ([rolled_back()], False),
    ],
    ids=[
        "cuts",
        "cuts during a write",
        "a full queue",
        "too many cuts",
        "a refusal that ends the connection",
        "a refusal",
    ],
)
def test_only_a_refused_copy_is_tried_without_its_properties(connected, errors, told):
    """A cut or a full queue says nothing about the copy; a broker that ends the connection at each attempt does."""
    link, errors = connected(), list(errors)
    mover = MessageMover(endpoint_of(lambda message: None, terms("sync", redelivery=MOVES)), link)
    put(link, "a")
    consumer = link.consumer(Queue("q"))
    open_unit = link.unit

    def commit(unit):
        unit.rollback()
        raise errors.pop(0)

    commits_by(link, commit)
    for _ in list(errors):
        [delivery] = consumer.receive(1, 0)
        assert mover.execute(MOVES.action(1), delivery, 1) is Outcome.ROLLED_BACK
    link.unit = open_unit
    [delivery] = consumer.receive(1, 0)
    assert mover.execute(MOVES.action(1), delivery, 1) is Outcome.COMMITTED
    [[moved]] = link.browse(Queue("dlq"))
    assert ("JMS_Sun_JMSJCA_RedeliveryCount" in moved.message.properties) is told


def test_a_lost_connection_while_a_copy_is_made_lets_nobody_see_the_message(connected):
    link = connected()
    mover = MessageMover(endpoint_of(lambda message: None, terms("sync", redelivery=MOVES)), link)
    put(link, "a")
    [delivery] = link.consumer(Queue("q")).receive(1, 0)
    breaking(link, send=ConnectionLostError("cut"))
    with pytest.raises(ConnectionLostError):
        mover.execute(MOVES.action(1), delivery, 1)


def test_a_move_and_a_deletion_are_told_with_their_reason(connected, caplog):
    link, recorder = connected(), LetterRecorder()
    endpoint = endpoint_of(lambda message: None, terms("sync", redelivery=MOVES), recorder)
    put(link, "a", "b")
    first, second = link.consumer(Queue("q")).receive(2, 0)
    endpoint.remember_failure([first], ValueError("no such article"))
    mover = MessageMover(endpoint, link)
    mover.execute(MOVES.action(1), first, 3)
    mover.execute(Delete(), second, 4)
    moved, deleted = recorder.letters
    assert (moved.message_id, moved.source, moved.target, moved.count) == ("ID:a", Queue("q"), Queue("dlq"), 3)
    assert "ValueError: no such article" in moved.reason
    assert (deleted.message_id, deleted.target, deleted.copy_id) == ("ID:b", None, None)
    records = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert [(record.message_id, record.destination, record.delivery_count) for record in records] == [
        ("ID:a", "queue:q", 4),
        ("ID:b", "queue:q", 5),
    ]
    for record, letter in zip(records, recorder.letters, strict=True):
        for told in (letter.message_id, str(letter.source), str(letter.count), letter.reason):
            assert told in record.getMessage()


class LetterRecorder(Hooks):
    """Hooks that record dead letters."""

    def __init__(self):
        self.letters = []

    def dead_lettered(self, endpoint, letter):
        self.letters.append(letter)


def test_a_failed_move_is_not_counted_when_the_message_returns_before_anybody_is_told(connected):
    """With another receiver it may be there again while the commit has not returned yet."""
    link, returned = connected(), []
    endpoint = endpoint_of(lambda message: None, terms("sync", redelivery=MOVES))
    put(link, "a")
    [delivery] = link.consumer(Queue("q")).receive(1, 0)
    first = endpoint.redelivery.decide("ID:a", redelivered=True, delivery_count=2)

    def commit(_):
        returned.append(endpoint.redelivery.decide("ID:a", redelivered=True, delivery_count=3))
        returned.append(endpoint.redelivery.find_encounter("ID:a").move_failures)
        raise TransactionRolledBackError("the queue is full")

    commits_by(link, commit)
    assert MessageMover(endpoint, link).execute(first.action, delivery, first.count) is Outcome.ROLLED_BACK
    assert ([returned[0].count, returned[1]], first.count) == ([1, 1], 1)


def test_a_move_in_doubt_takes_no_failure_back_that_is_forgotten_already(connected):
    """It may be there again, and be delivered after too many failures, while the commit has not returned yet."""
    link, error = connected(), TransactionInDoubtError("no answer")
    endpoint = endpoint_of(lambda message: None, terms("sync", redelivery=MOVES))
    mover, move = MessageMover(endpoint, link), MOVES.action(1)
    put(link, "a")
    consumer = link.consumer(Queue("q"))
    [delivery] = consumer.receive(1, 0)
    errors = [*(TransactionRolledBackError("the queue is full") for _ in range(3)), error]
    elsewhere = []

    def commit(unit):
        if errors[0] is error:
            elsewhere.append(mover.execute(move, delivery, 1))
        unit.rollback()
        raise errors.pop(0)

    commits_by(link, commit)
    for _ in range(3):
        assert mover.execute(move, delivery, 1) is Outcome.ROLLED_BACK
        [delivery] = consumer.receive(1, 0)
    with pytest.raises(TransactionInDoubtError):
        mover.execute(move, delivery, 1)
    assert (elsewhere, endpoint.redelivery.find_encounter("ID:a").move_failures) == ([None], 0)


@pytest.mark.parametrize("mode", MODES)
def test_a_move_in_doubt_ends_the_delivery_and_doubles_nothing(connected, mode):
    link, handler = connected(), Stubborn()
    error = TransactionInDoubtError("no answer")
    breaking(link, commit=error)
    put(link, "a")
    endpoint = endpoint_of(handler, terms(mode, redelivery=MOVES))
    performance = Performance(endpoint, link)
    assert performance.ends() is error
    link.close()
    other = connected()
    performance = Performance(endpoint, other)
    until(lambda: dead_letters(other) == 1)
    performance.stop()
    assert depth(other).total == 0
    assert handler.got.qsize() == 1


@pytest.mark.parametrize("mode", MODES)
def test_what_cannot_be_decoded_is_moved_as_it_came(connected, mode):
    """The ladder holds for it, too: it does not come again for ever."""
    link, handler = connected(), Stubborn(0)
    put(link, "a")
    with link._store.write() as cursor:
        cursor.execute("UPDATE message SET headers = '{'")
    performance = Performance(
        endpoint_of(handler, terms(mode, redelivery=RedeliveryPolicy.parse("3:move(queue:dlq)"))), link
    )
    until(lambda: dead_letters(link) == 1)
    performance.stop()
    [[moved]] = link.browse(Queue("dlq"))
    assert isinstance(moved.message, BytesMessage)
    assert handler.got.empty()
    assert depth(link).total == 0


@pytest.mark.parametrize("mode", MODES)
def test_a_target_that_takes_nothing_is_found_out_before_the_first_message(connected, mode):
    link, refusal = connected(), InvalidDestinationError("nobody may send to dlq")
    with pytest.raises(InvalidDestinationError) as told:
        Performance(endpoint_of(Stubborn(), terms(mode, redelivery=MOVES)), Breaks(link, check=refusal))
    assert told.value is refusal
    Performance(endpoint_of(Stubborn(), terms(mode)), Breaks(link, check=refusal)).stop()


@pytest.fixture
def moving(jms_broker_url):
    """Starts a listener that fails as often as is said, and is moved from at the second delivery."""
    adapters = []

    def begin(failing, options=None, query=""):
        adapter = ResourceAdapter(f"{jms_broker_url}{query}", options=options, limits=Limits(message_bytes=3000))
        adapters.append(adapter)
        moved = queue.Queue()
        adapter.activate(ActivationSpec(destination="q", redelivery_handling="1:move(queue:dlq)"), failing)
        adapter.activate(ActivationSpec(destination="dlq"), moved.put)
        adapter.start()
        return moved

    yield begin
    for adapter in adapters:
        adapter.stop()


SENT = {
    "correlation_id": "c-1",
    "type": "order",
    "reply_to": Queue("replies"),
    "properties": {"region": "EU", "n": Int(3)},
}


def told(message):
    """What a copy tells beside what was sent; properties of JMS are told by every one."""
    return [name for name in message.properties if "JMSX" not in name]


def sent_with(message):
    """What the sender of a message has set; a copy that tells of a failure has more properties."""
    properties = {name: message.properties[name] for name in told(message)}
    headers = {name: getattr(message, name) for name in SENT if name != "properties"}
    return {**headers, "properties": properties}


@pytest.mark.parametrize(
    "place", [{"options": {"JMSJCA.redeliveryredirect": "true"}}, {"query": "?JMSJCA.redeliveryredirect=true"}], ids=str
)
def test_because_an_option_says_so(moving, adapter, place):
    moved = moving(Inbox(KeyError()), **place)
    with adapter.connection_factory().create_connection() as connection, connection.create_session() as session:
        session.create_producer(Queue("q")).send(TextMessage("a", **SENT))
    message = moved.get(timeout=PATIENCE)
    assert (message.body, sent_with(message)) == ("a", SENT)


class Failing:
    """A handler that keeps the message, and fails."""

    def __init__(self):
        self.original = None

    def __call__(self, message):
        self.original = message
        raise KeyError


def test_the_copy_does_not_expire_with_the_message(moving, adapter):
    handler = Failing()
    moved = moving(handler)
    with adapter.connection_factory().create_connection() as connection, connection.create_session() as session:
        session.create_producer(Queue("q")).send(TextMessage("a"), time_to_live=3600)
    copy = moved.get(timeout=PATIENCE)
    recorded = copy.get_long_property("JMS_Sun_JMSJCA_OriginalExpiration")
    assert (copy.expiration, recorded) == (None, round(handler.original.expiration.timestamp() * 1000))


def test_the_copy_has_an_id_and_a_destination_of_its_own(moving, adapter):
    handler = Failing()
    moved = moving(handler)
    send(adapter, "a")
    copy = moved.get(timeout=PATIENCE)
    assert copy.message_id not in (None, handler.original.message_id)
    assert (handler.original.destination, copy.destination) == (Queue("q"), Queue("dlq"))


class Terse(Breaks):
    """A unit that takes no message which tells of a failure."""

    def send(self, message, to):
        if set(told(message)) - SENT["properties"].keys():
            raise MessageFormatError("There are more properties than this broker takes.")
        self._real.send(message, to)


def test_because_the_copy_cannot_be_sent(connected, caplog):
    link = connected()
    unit, message = link.unit(), TextMessage("a", **SENT)
    message.message_id = "ID:a"
    unit.send(message, Queue("q"))
    unit.commit()
    open_unit = link.unit
    link.unit = lambda **kwargs: Terse(open_unit(**kwargs))
    policy = RedeliveryPolicy.parse("1:move(queue:dlq)", "q", "queue")
    performance = Performance(endpoint_of(Inbox(KeyError()), terms("serial", redelivery=policy)), link)
    (delivery,) = connected().consumer(Queue("dlq")).receive(1, PATIENCE)
    assert (delivery.message.body, sent_with(delivery.message)) == ("a", SENT)
    assert "could not copy" in caplog.text
    performance.stop()


def test_what_cannot_be_moved_at_all_is_delivered(moving, adapter, caplog):
    inbox = Inbox(KeyError())
    moved = moving(inbox)
    send(adapter, "a" * 5000)
    assert [count for _, count in inbox.take(2)] == [1, 2]
    assert moved.empty()
    assert "could not move" in caplog.text


def test_it_reads_what_the_moved_copy_tells(adapter):
    read: queue.Queue[tuple[object, ...]] = queue.Queue()

    @adapter.listener("q", redelivery_handling="1:move(queue:dead)")
    def failing(message: Message) -> None:
        message.user_rollback_data["step"] = "parsing"
        raise KeyError("tea")

    @adapter.listener("dead")
    def reading(message: Message) -> None:
        names = ("ExceptionClass", "ExceptionMessage", "UserRollbackData.step")
        read.put(tuple(message.get_string_property(f"JMS_Sun_JMSJCA_{name}") for name in names))
        read.put((dict(message.user_rollback_data), message.redelivery_count))

    with adapter:
        send(adapter, "a")
        assert read.get(timeout=PATIENCE) == ("KeyError", "'tea'", "parsing")
        assert read.get(timeout=PATIENCE) == ({}, 0)
