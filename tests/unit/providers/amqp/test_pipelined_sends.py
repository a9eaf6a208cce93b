"""Units that are committed without waiting: their order, their outcomes, and the links that they use."""

import threading

import pytest
from proton import Message

from jmsjca.destinations import Queue
from jmsjca.errors import IllegalStateError, TransactionInDoubtError, TransactionRolledBackError
from jmsjca.messages import TextMessage
from jmsjca.providers.amqp.links.link_pool import MAX_SENDER_LINKS
from tests.unit.providers.amqp.broker_behaviour import end_connection, refuse_link, reject

TARGET = Queue("target")


@pytest.fixture
def opened(line):
    """An open connection to a scripted broker."""
    each = line("ActiveMQ")
    each.open("reply_timeout=30")
    return each


def _start(line, body, to=TARGET):
    """Start to send a message; return the function that waits for its outcome."""
    unit = line.connection.unit(atomic=False)
    unit.send(TextMessage(body), to)
    return unit.start_commit()


def _outcomes(waits):
    """What each function says: None or the class of its error."""
    outcomes = []
    for wait in waits:
        try:
            outcomes.append(wait())
        except (TransactionInDoubtError, TransactionRolledBackError) as error:
            outcomes.append(type(error))
    return outcomes


class Held:
    """Transfers that the broker does not answer until it is told to."""

    def __init__(self, peer):
        self._peer, self._deliveries = peer, []
        peer.reactions["transfer"] = self._hold

    def _hold(self, event):
        self._deliveries.append(event.delivery)

    def answer(self, number, state):
        """Give the outcome of the transfer of this number."""

        def update():
            delivery = self._deliveries[number]
            delivery.update(state)
            delivery.settle()

        self._peer.do(update)


def test_messages_are_on_their_way_before_the_first_is_accepted(opened):
    held = Held(opened.peer)
    waits = [_start(opened, str(number)) for number in range(3)]
    opened.peer.wait_for("transfer", 3)
    for number in range(3):
        held.answer(number, 0x24)
    assert _outcomes(waits) == [None, None, None]
    assert opened.peer.sent == {"queue://target": ["0", "1", "2"]}


@pytest.mark.parametrize("first_state", [0x24, 0x25], ids=["accepted", "rejected"])
def test_commits_of_one_message_do_not_wait_for_each_other(opened, first_state):
    """Each thread waits for the outcome of its own message."""
    held, outcomes = Held(opened.peer), {}

    def commit(body):
        unit = opened.connection.unit(atomic=False)
        unit.send(TextMessage(body), TARGET)
        outcomes[body] = _outcomes([unit.commit])

    threads = [threading.Thread(target=commit, args=(body,)) for body in "ab"]
    threads[0].start()
    opened.peer.wait_for("transfer", 1)
    threads[1].start()
    opened.peer.wait_for("transfer", 2)
    held.answer(1, 0x24)
    threads[1].join()
    assert outcomes == {"b": [None]}
    held.answer(0, first_state)
    threads[0].join()
    assert outcomes["a"] == [None if first_state == 0x24 else TransactionRolledBackError]


def test_each_message_has_its_own_outcome(opened):
    held = Held(opened.peer)
    waits = [_start(opened, str(number)) for number in range(3)]
    opened.peer.wait_for("transfer", 3)
    for number, state in ((2, 0x24), (1, 0x25), (0, 0x24)):  # not in order
        held.answer(number, state)
    assert _outcomes(waits) == [None, TransactionRolledBackError, None]


def test_many_units_and_a_transaction_share_a_link(opened):
    waits = []
    for number in range(50):
        waits.append(_start(opened, f"{number}a"))
        unit = opened.connection.unit()
        unit.send(TextMessage(f"{number}b"), TARGET)
        unit.commit()
    assert _outcomes(waits) == [None] * 50
    assert opened.peer.sent["queue://target"] == [f"{number}{kind}" for number in range(50) for kind in "ab"]


def test_lost_connection_leaves_all_in_doubt(opened):
    Held(opened.peer)
    waits = [_start(opened, str(number)) for number in range(3)]
    opened.peer.wait_for("transfer", 3)
    opened.peer.do(opened.peer.cut)
    assert _outcomes(waits) == [TransactionInDoubtError] * 3


def test_silent_broker_leaves_all_in_doubt(line, impatient):
    each = line("ActiveMQ")
    each.open("reply_timeout=30")
    Held(each.peer)
    waits = [_start(each, str(number)) for number in range(2)]
    each.peer.wait_for("transfer", 2)
    impatient(each.peer)
    each.peer.stuck.set_result(None)
    assert _outcomes(waits) == [TransactionInDoubtError] * 2
    assert each.lost.wait(30)


def test_refused_destination_is_raised_at_once(opened):
    opened.peer.reactions["attach"] = refuse_link
    with pytest.raises(TransactionRolledBackError):
        _start(opened, "a")


def test_links_with_messages_in_flight_are_not_detached(opened):
    held = Held(opened.peer)
    first = _start(opened, "first")
    opened.peer.wait_for("transfer", 1)
    del opened.peer.reactions["transfer"]
    waits = [_start(opened, str(number), Queue(f"q{number}")) for number in range(MAX_SENDER_LINKS + 3)]
    held.answer(0, 0x24)
    assert _outcomes([first, *waits]) == [None] * (len(waits) + 1)


def test_unit_with_deliveries_is_refused_and_stays_open(opened):
    opened.peer.stock.append(Message(body="a").encode())
    unit = opened.connection.unit()
    unit.take(opened.connection.consumer(Queue("q"), window=1).receive(1, None))
    with pytest.raises(IllegalStateError, match="without waiting"):
        unit.start_commit()
    unit.commit()


def test_unit_without_messages_has_nothing_to_wait_for(opened):
    opened.connection.unit(atomic=False).start_commit()()


def test_unit_of_many_destinations_is_committed_at_once(opened):
    unit = opened.connection.unit(atomic=False)
    for name in "ab":
        unit.send(TextMessage(name), Queue(name))
    wait = unit.start_commit()
    assert opened.peer.sent == {"queue://a": ["a"], "queue://b": ["b"]}
    wait()


def test_rejection_by_the_end_of_the_connection_is_in_doubt(opened):
    opened.peer.reactions["transfer"] = end_connection
    assert _outcomes([_start(opened, "a")]) == [TransactionInDoubtError]


def test_rejected_message_is_not_sent(opened):
    opened.peer.reactions["transfer"] = reject
    assert _outcomes([_start(opened, "a")]) == [TransactionRolledBackError]
