"""A conversation step by step, and the replies that fill in what a script leaves out."""

from collections.abc import Iterable

from amqp_peer.connection import Gone
from amqp_peer.encoding import Described, Symbol, composed, decode
from amqp_peer.frames import AMQP, SASL
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
    Flow,
    Init,
    Mechanisms,
    Open,
    Outcome,
    Source,
    Transactional,
    Transfer,
)

__all__ = [
    "LOGIN",
    "OPEN",
    "TRANSACTION",
    "WINDOW",
    "address_in",
    "agree",
    "command_of",
    "consent",
    "credit",
    "drop",
    "expect",
    "offer",
    "reply",
    "reset",
    "script",
    "send",
    "silence",
]

WINDOW = 2**31 - 1
TRANSACTION = b"transaction"
_AMQP_VALUE, _PROPERTIES = 0x77, 0x73
_DESCRIBED_VALUES = (bytes((0, 0x53, _AMQP_VALUE, 0)), bytes((0, 0x80, *bytes(7), _AMQP_VALUE, 0)))
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
    """What a transfer to the coordinator asks for; None for a message, which may hold anything."""
    described = frame.payload.startswith(_DESCRIBED_VALUES)
    return composed(_section(frame.payload, _AMQP_VALUE)) if described else None


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


class Scene:
    """Where a script is: its line, and the frame that was expected last."""

    def __init__(self, line, peer):
        self.line, self.peer, self.last = line, peer, None
        self.answered = ()  # what the client sends only because the script sent the same

    def unexpected(self, frame, wanted):
        log = "\n  ".join(self.line.log[-40:])
        return AssertionError(f"the script expects {wanted}, and this came: {frame}\n  {log}")


def script(*steps):
    """Answer a connection by these steps, in their order; tuples of steps are steps, too."""

    def converse(line, peer):
        scene = Scene(line, peer)
        for step in _flat(steps):
            step(scene)
        _agree_to_the_end(scene)

    return converse


def expect(wanted):
    """The next frame is one of this type, or of these fields: ``expect(Attach)``, ``expect(Attach(role=SENDER))``."""

    def step(scene):
        while not _matches(wanted, frame := scene.line.read()):
            if isinstance(frame, bytes) or not isinstance(frame.body, Begin | Flow | Disposition):
                raise scene.unexpected(frame, wanted)
            if isinstance(frame.body, Begin):
                scene.line.write(agree(frame), frame.channel)
        scene.last = frame

    return step


def reply(**fields):
    """Agree to the frame that was expected last; what is named here is said otherwise."""
    return lambda scene: scene.line.write(agree(scene.last, **fields), scene.last.channel)


def send(*bodies, payload=b"", times=1):
    """Write performatives on the channel of the last frame, or bytes as they are."""

    def step(scene):
        for body in bodies * times:
            scene.line.write(body, getattr(scene.last, "channel", 0), payload)
            scene.answered += {Detach: (Detach,), End: (Detach, End), Close: (Close,)}.get(type(body), ())

    return step


def credit(messages):
    """Let the client send so many messages on the link that it attached last."""

    def step(scene):
        flow = Flow(
            next_incoming_id=0,
            incoming_window=WINDOW,
            next_outgoing_id=0,
            outgoing_window=WINDOW,
            handle=scene.last.body.handle,
            delivery_count=0,
            link_credit=messages,
        )
        scene.line.write(flow, scene.last.channel)

    return step


def silence(scene):
    """Say nothing more; who waits for an answer may give up."""
    scene.peer.leave_unanswered()
    while True:
        scene.line.read()


def drop(scene):
    """End the connection in order."""
    scene.line.end()


def reset(scene):
    """End the connection without order."""
    scene.line.end(reset=True)


def offer(*mechanisms):
    """Begin the login: these mechanisms are offered."""
    return expect(SASL), send(SASL, Mechanisms(offered=[Symbol(name) for name in mechanisms]))


LOGIN = (offer("ANONYMOUS"), expect(Init), reply(), expect(AMQP), send(AMQP))
OPEN = (LOGIN, expect(Open), reply())


def _flat(steps):
    for step in steps:
        if isinstance(step, Iterable):
            yield from _flat(step)
        else:
            yield step


def _matches(wanted, frame):
    if isinstance(wanted, bytes) or isinstance(frame, bytes):
        return wanted == frame
    return isinstance(frame.body, wanted) if isinstance(wanted, type) else wanted.matches(frame.body)


def _agree_to_the_end(scene):
    while True:
        frame = scene.line.read()
        if isinstance(frame, bytes) or not isinstance(frame.body, Detach | End | Close | Flow | Disposition):
            raise scene.unexpected(frame, "the end")
        if isinstance(frame.body, Detach | End | Close) and not isinstance(frame.body, scene.answered):
            scene.line.write(agree(frame), frame.channel)
        if isinstance(frame.body, Close):
            raise Gone
