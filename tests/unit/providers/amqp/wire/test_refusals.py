"""Links and messages that a broker refuses, and the errors that they become."""

import pytest
from amqp_peer import SECONDS, Broker
from amqp_peer.encoding import Described, Symbol, ULong
from amqp_peer.performatives import (
    RECEIVER,
    Accepted,
    Attach,
    Begin,
    Declare,
    Detach,
    Discharge,
    End,
    Error,
    Flow,
    Modified,
    Received,
    Rejected,
    Released,
    Transactional,
    Transfer,
)
from amqp_peer.script import OPEN, expect, reply, script, send

from jmsjca.destinations import Queue
from jmsjca.errors import (
    InvalidDestinationError,
    InvalidSelectorError,
    JMSError,
    JMSSecurityError,
    NotSupportedError,
    ResourceAllocationError,
    TransactionInDoubtError,
    TransactionRolledBackError,
)
from jmsjca.messages import TextMessage
from tests.unit.providers.amqp.wire.cut_account import encoded

QUEUE = Queue("in")
MEANINGS = {
    "amqp:not-found": InvalidDestinationError,
    "amqp:invalid-field": InvalidDestinationError,
    "amqp:unauthorized-access": JMSSecurityError,
    "amqp:not-implemented": NotSupportedError,
    "amqp:resource-limit-exceeded": ResourceAllocationError,
    "amqp:resource-locked": InvalidDestinationError,
}
UNTOLD = ("amqp:internal-error", "amqp:link:redirect", "vendor:own")


def error_of(condition):
    return Error(condition=condition, description="because", info={Symbol("network-host"): "127.0.0.1"})


def detach(condition):
    """A broker refuses: it attaches without a terminus, then says why."""

    def instead(service, frame):
        service.agree(frame, source=None, target=None)
        service.detach(frame, error_of(condition))

    return instead


def end(condition):
    """A broker refuses: it ends the session."""
    return lambda service, frame: service.end(frame, error_of(condition))


CALLS = {"consumer": lambda connection: connection.consumer(QUEUE), "check": lambda connection: connection.check(QUEUE)}


@pytest.mark.parametrize("how", [detach, end])
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("condition", [*MEANINGS, *UNTOLD])
def test_a_refused_link_says_why_and_leaves_the_connection(stage, call, how, condition):
    broker = Broker()
    here = stage(broker)
    connection = here.connect()
    broker.instead[Attach] = how(condition)
    otherwise = InvalidDestinationError if call == "check" else JMSError
    with pytest.raises(JMSError, match=f"{condition}: because") as told:
        CALLS[call](connection)
    assert type(told.value) is MEANINGS.get(condition, otherwise)
    broker.instead.clear()
    CALLS[call](connection)
    assert not here.told
    assert len(here.peer.lines) == 1  # no redirect is followed


def test_a_refused_selector(stage):
    broker = Broker("Apache Qpid Broker-J Core")
    broker.instead[Attach] = detach("amqp:invalid-field")
    with pytest.raises(InvalidSelectorError, match="because"):
        stage(broker).connect().consumer(QUEUE, selector="a = 1")


@pytest.mark.parametrize("condition", ["amqp:resource-deleted", "amqp:link:stolen", "amqp:link:detach-forced", None])
@pytest.mark.parametrize("last", [Detach, End])
def test_a_link_that_ends_later_says_why_at_the_next_receive(stage, condition, last):
    error = error_of(condition) if condition else None
    parting = send(Detach(handle=0, closed=True, error=error) if last is Detach else End(error=error))
    here = stage(script(OPEN, expect(Begin), reply(), expect(Attach(role=RECEIVER)), reply(), expect(Flow), parting))
    consumer = here.connect().consumer(QUEUE)
    with pytest.raises(JMSError, match=f"{condition}: because" if condition else "no reason"):
        consumer.receive(1, SECONDS)
    assert not here.told


REFUSALS = {
    "rejected": Rejected(error=error_of("amqp:precondition-failed")),
    "rejected without a reason": Rejected(),
    "released": Released(),
    "modified": Modified(delivery_failed=True, undeliverable_here=True),
}


@pytest.mark.parametrize("state", REFUSALS)
def test_a_refused_message_is_sent_by_nobody(stage, state):
    broker = Broker()
    connection = stage(broker).connect()
    broker.instead[Transfer] = lambda service, frame: service.agree(frame, state=REFUSALS[state])
    unit = connection.unit(atomic=False)
    unit.send(TextMessage("x"), QUEUE)
    with pytest.raises(TransactionRolledBackError, match="because" if state == "rejected" else None):
        unit.commit()


@pytest.mark.parametrize("before", [0, 1, 2])
@pytest.mark.parametrize("state", REFUSALS)
def test_a_message_refused_in_a_transaction_rolls_all_of_it_back(stage, state, before):
    broker = Broker()
    here = stage(broker)
    connection = here.connect()
    broker.store.put("in", encoded("x"))
    unit = _holding(connection, messages=3)
    taken = []

    def refuse(service, frame):
        if len(taken) == before:
            outcome = Transactional(txn_id=frame.body.state.txn_id, outcome=REFUSALS[state])
            service.agree(frame, state=outcome)
        else:
            service.carry_out(frame)
        taken.append(frame)

    broker.instead[Transfer] = refuse
    with pytest.raises(TransactionRolledBackError, match="because" if state == "rejected" else None):
        unit.commit()
    assert not broker.store.transactions
    here.close()
    assert len(broker.store.queues["in"]) == 1


NO_TRANSACTION = {
    "rejected": lambda service, frame: service.agree(frame, state=Rejected(error=error_of("amqp:internal-error"))),
    "accepted": lambda service, frame: service.agree(frame, state=Accepted()),
    "detached": lambda service, frame: service.detach(frame, error_of("amqp:not-implemented")),
}


@pytest.mark.parametrize("how", NO_TRANSACTION)
def test_a_transaction_that_is_not_declared_rolls_back(stage, how):
    broker = Broker()
    broker.instead[Declare] = NO_TRANSACTION[how]
    here = stage(broker)
    connection = here.connect()
    broker.store.put("in", encoded("x"))
    unit = _holding(connection)
    with pytest.raises(TransactionRolledBackError, match=None if how == "accepted" else "because"):
        unit.commit()
    here.close()
    assert len(broker.store.queues["in"]) == 1


NO_COMMIT = {
    "rejected": lambda service, frame: service.agree(
        frame, state=Rejected(error=error_of("amqp:transaction:rollback"))
    ),
    "released": lambda service, frame: service.agree(frame, state=Released()),
    "settled without a state": lambda service, frame: service.agree(frame, state=None),
    "settled as received": lambda service, frame: service.agree(
        frame, state=Received(section_number=0, section_offset=ULong(0))
    ),
    "detached as rolled back": lambda service, frame: service.detach(frame, error_of("amqp:transaction:rollback")),
    "detached": lambda service, frame: service.detach(frame, error_of("amqp:internal-error")),
}
UNTOLD_COMMIT = {"settled without a state": "no outcome", "settled as received": "no outcome", "detached": "because"}


@pytest.mark.parametrize("how", NO_COMMIT)
def test_a_commit_that_the_broker_refuses_is_never_success(stage, how):
    broker = Broker()
    broker.instead[Discharge] = NO_COMMIT[how]
    here = stage(broker)
    connection = here.connect()
    broker.store.put("in", encoded("x"))
    unit = _holding(connection)
    error = TransactionInDoubtError if how in UNTOLD_COMMIT else TransactionRolledBackError
    with pytest.raises(error, match=None if how == "released" else UNTOLD_COMMIT.get(how, "because")):
        unit.commit()
    here.close()
    assert len(broker.store.queues["in"]) == 1


UNTOLD = {
    "nothing": lambda state: None,
    "no fields": lambda state: Transactional(),
    "no list of fields": lambda state: Described(ULong(Transactional.CODE), None),
    "no outcome": lambda state: Transactional(txn_id=state.txn_id),
}


@pytest.mark.parametrize("before", [0, 1, 2])
@pytest.mark.parametrize("state", UNTOLD)
def test_a_message_whose_outcome_is_not_told_rolls_the_transaction_back(stage, state, before):
    broker = Broker()
    connection = stage(broker).connect()
    broker.store.put("in", encoded("x"))
    unit = _holding(connection, messages=3)
    taken = []

    def answer(service, frame):
        service.agree(frame, **({"state": UNTOLD[state](frame.body.state)} if len(taken) == before else {}))
        taken.append(frame)

    broker.instead[Transfer] = answer
    with pytest.raises(TransactionRolledBackError, match="no outcome"):
        unit.commit()
    assert not broker.store.transactions


def _holding(connection, messages=1):
    unit = connection.unit()
    unit.take(connection.consumer(QUEUE, window=0).receive(1, SECONDS))
    for _ in range(messages):
        unit.send(TextMessage("y"), Queue("out"))
    return unit
