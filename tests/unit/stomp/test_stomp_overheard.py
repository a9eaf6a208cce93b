"""An ERROR that names no frame, and comes when what is waited for is confirmed, or just before, or just after."""

from preemption import Preemption

from jmsjca.providers.stomp.errors import BrokerRefusedError
from jmsjca.providers.stomp.protocol import session
from jmsjca.providers.stomp.protocol.frames import Frame, FrameParser
from jmsjca.providers.stomp.protocol.session import FrameDispatcher

ERROR = Frame("ERROR", {"message": "no"}, b"", 20)


def refused(act, *arguments):
    try:
        act(*arguments)
    except BrokerRefusedError:
        return True
    return False


def test_somebody_is_told_of_it_whenever_it_comes(monkeypatch):
    for step in range(1, 10_000):
        preemption = Preemption(step, session.__file__)
        monkeypatch.setattr(session, "Lock", preemption.lock, raising=False)
        dispatcher = FrameDispatcher(FrameParser(1000), lambda: None)
        told = []
        hearing = dispatcher.deferring_errors()
        hearing.__enter__()
        halted = preemption.play(
            lambda: told.append(refused(dispatcher.on_error, ERROR)),  # noqa: B023
            lambda: told.append(refused(hearing.__exit__, None, None, None)),  # noqa: B023
        )
        if not halted:
            break
        assert sorted(told) == [False, True], f"halted before step {step}"
    assert step > 10
