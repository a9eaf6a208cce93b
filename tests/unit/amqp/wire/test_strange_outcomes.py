"""A discharge that is answered with a state that is no outcome of it: whether it happened nobody knows."""

import pytest
from amqp_peer import Broker
from amqp_peer.performatives import Accepted, Declared, Discharge, Transactional

from jmsjca.destinations import Queue
from jmsjca.errors import TransactionInDoubtError
from jmsjca.messages import TextMessage

STATES = {
    "transactional": lambda txn_id: Transactional(txn_id=txn_id, outcome=Accepted()),
    "declared": lambda txn_id: Declared(txn_id=txn_id),
}


@pytest.mark.parametrize("state", STATES)
def test_the_unit_is_in_doubt(stage, state):
    """This broker did commit: who believed in a rollback would send twice."""
    broker = Broker()

    def discharge(service, frame):
        txn_id = service._command(frame).txn_id
        service.store.end(txn_id, fail=False)
        service.agree(frame, state=STATES[state](txn_id))

    broker.instead[Discharge] = discharge
    unit = stage(broker).connect().unit()
    unit.send(TextMessage("x"), Queue("out"))
    with pytest.raises(TransactionInDoubtError):
        unit.commit()
    assert len(broker.store.queues["out"]) == 1
