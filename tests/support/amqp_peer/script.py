"""A conversation step by step, as the frames pass: ``script(LOGIN, expect(Open), reply(), expect(Attach), drop)``.

What comes must be what is expected. Only sessions, credit and settlement are taken for granted: a begin is agreed to, a
flow or disposition is passed over, unless the script expects it. After the last step the peer agrees to whatever ends
links and connection.
"""

from collections.abc import Iterable

from amqp_peer.answers import WINDOW, agree
from amqp_peer.frames import AMQP, SASL
from amqp_peer.line import Gone
from amqp_peer.performatives import Begin, Close, Detach, Disposition, End, Flow, Init, Mechanisms, Open
from amqp_peer.values import Symbol

__all__ = ["LOGIN", "OPEN", "credit", "drop", "expect", "offer", "reply", "reset", "script", "send", "silence"]


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
