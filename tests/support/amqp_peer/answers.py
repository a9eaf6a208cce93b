"""What a broker says to a frame when it agrees: filled in from what it answers, unless a test says otherwise."""

from amqp_peer.composite import composed
from amqp_peer.performatives import (
    RECEIVER,
    SENDER,
    Accepted,
    Attach,
    Begin,
    Close,
    Declare,
    Declared,
    Detach,
    Discharge,
    Disposition,
    End,
    Init,
    Open,
    Outcome,
    Source,
    Transactional,
    Transfer,
)
from amqp_peer.values import Described, Symbol, decode

__all__ = ["TRANSACTION", "WINDOW", "address_in", "agree", "command_of", "consent"]

WINDOW = 2**31 - 1
TRANSACTION = b"transaction"
_AMQP_VALUE, _PROPERTIES = 0x77, 0x73
_TO = 2  # which of the properties it is


def agree(frame, **fields):
    """The performative that agrees to a frame, with some fields changed."""
    answer = _AGREE[type(frame.body)](frame)
    return type(answer)(**{**answer.fields, **fields})


def consent(frame):
    """The state of a transfer that was taken, or of a command to the coordinator that was carried out."""
    command = command_of(frame)
    if isinstance(command, Declare):
        return Declared(txn_id=TRANSACTION)
    state = frame.body.state
    taken = not isinstance(command, Discharge) and isinstance(state, Transactional)
    return Transactional(txn_id=state.txn_id, outcome=Accepted()) if taken else Accepted()


def command_of(frame):
    """What a transfer to the coordinator asks for; None for a message."""
    return composed(_section(frame.payload, _AMQP_VALUE))


def address_in(payload):
    """Where a message says that it goes."""
    return _section(payload, _PROPERTIES)[_TO]


def _section(payload, code):
    """The value of a section; None if there is none."""
    at = 0
    while at < len(payload):
        section, at = decode(payload, at)
        if isinstance(section, Described) and section.descriptor == code:
            return section.value
    return None


def _attach(frame):
    asked = frame.body
    source = asked.source or Source(address="known by its name")
    counted = {"initial_delivery_count": 0} if asked.role == RECEIVER else {}
    role = SENDER if asked.role == RECEIVER else RECEIVER
    return Attach(name=asked.name, handle=asked.handle, role=role, source=source, target=asked.target, **counted)


def _disposition(frame):
    number = frame.body.delivery_id
    return Disposition(role=RECEIVER, first=number, last=number, settled=True, state=consent(frame))


def _begin(frame):
    return Begin(remote_channel=frame.channel, next_outgoing_id=0, incoming_window=WINDOW, outgoing_window=WINDOW)


_AGREE = {
    Init: lambda frame: Outcome(code=0),
    Open: lambda frame: Open(container_id="peer", properties={Symbol("product"): "apache-activemq-artemis"}),
    Begin: _begin,
    Attach: _attach,
    Transfer: _disposition,
    Disposition: lambda frame: Disposition(
        role=SENDER, first=frame.body.first, last=frame.body.last, settled=True, state=frame.body.state
    ),
    Detach: lambda frame: Detach(handle=frame.body.handle, closed=frame.body.closed),
    End: lambda frame: End(),
    Close: lambda frame: Close(),
}
