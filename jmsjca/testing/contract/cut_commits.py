"""A connection that breaks while a unit commits."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from jmsjca.destinations import Queue
from jmsjca.errors import JMSError, TransactionInDoubtError
from jmsjca.spi import Order, Unit
from jmsjca.testing.contract.cutting import DID_NOT_HAPPEN, Cuttable, connect, move, queues
from jmsjca.testing.contract.harness import PATIENCE, Harness
from jmsjca.testing.contract.wire import Moment, Wire

__all__ = ["TestCommitIsCut"]

_REACHED = 1.0  # seconds in which a busy broker gets all of a commit; its answer never comes


class TestCommitIsCut(Cuttable):
    """A commit whose answer does not come is in doubt: never success, never failure (JMS 3.1, section 6.2.7)."""

    def test_commit_that_does_not_reach_the_broker(self, harness: Harness, wire: Wire) -> None:
        """The client wrote it and cannot know that it did not arrive; neither part has happened."""
        harness.require("atomic")
        source, target = queues(harness, "a")
        unit, _ = move(harness, wire, source, target)
        wire.cut_at("commit", "before")
        with pytest.raises(TransactionInDoubtError):
            unit.commit()
        assert wire.sprung
        harness.expect(source, "a")
        harness.expect(target)

    def test_commit_whose_answer_is_lost(self, harness: Harness, wire: Wire) -> None:
        """The broker has committed, the client cannot know; both parts have happened."""
        harness.require("atomic")
        source, target = queues(harness, "a")
        unit, _ = move(harness, wire, source, target)
        wire.cut_at("commit", "unanswered")
        with pytest.raises(TransactionInDoubtError):
            unit.commit()
        assert wire.sprung
        harness.expect(source)
        harness.expect(target, "moved")

    def test_commit_whose_answer_is_late(self, harness: Harness, wire: Wire) -> None:
        """When the caller's time is over the outcome is not known, whatever comes later."""
        harness.require("atomic")
        source, target = queues(harness, "a")
        unit, _ = move(harness, wire, source, target)
        wire.cut_at("commit", "never")
        with pytest.raises(TransactionInDoubtError):
            unit.commit(timeout=_REACHED)
        assert wire.sprung
        harness.expect(target, "moved")

    def test_commit_ends_at_its_timeout_wherever_it_waits(self, harness: Harness, wire: Wire) -> None:
        """If the broker falls silent at the first frame, the outcome is known or in doubt, but never success."""
        unit, _ = move(harness, wire, *queues(harness, "a"))
        wire.cut_at("any", "never")
        with pytest.raises((TransactionInDoubtError, *DID_NOT_HAPPEN)):
            unit.commit(timeout=0.05)

    def test_commit_that_was_answered_has_happened(self, harness: Harness, wire: Wire) -> None:
        """What breaks afterwards is no business of the unit."""
        harness.require("atomic")
        source, target = queues(harness, "a")
        unit, lost = move(harness, wire, source, target)
        wire.cut_at("commit", "answered")
        unit.commit()
        assert lost.wait(PATIENCE)
        harness.expect(source)
        harness.expect(target, "moved")

    @pytest.mark.parametrize("moment", ["before", "unanswered"])
    def test_cut_at_every_frame_of_a_commit(self, harness: Harness, wire: Wire, moment: Moment) -> None:
        """Both parts have happened or neither, and what the caller is told is true."""
        harness.require("atomic")
        fates = list(_cut_at_every_frame(harness, wire, moment))
        assert len(fates) > 1
        for told, kept, moved in fates:
            assert (kept, moved) in _possible(told)

    @pytest.mark.parametrize(("moment", "arrived"), [("before", []), ("unanswered", ["a"]), ("never", ["a"])])
    def test_single_send_is_in_doubt(self, harness: Harness, wire: Wire, moment: Moment, arrived: list[str]) -> None:
        """Without transactions too, a message whose receipt is not confirmed is neither sent nor not sent."""
        harness.require_lack("transacted_send")
        queue = harness.queue()
        connection, _ = connect(harness, wire)
        unit = harness.unit(connection)
        harness.note(unit, queue, "a")
        wire.cut_at("send", moment)
        with pytest.raises(TransactionInDoubtError):
            unit.commit(timeout=0.5 if moment == "never" else None)
        harness.expect(queue, *arrived)

    def test_move_that_is_not_atomic_loses_nothing(self, harness: Harness, wire: Wire) -> None:
        """Sends are confirmed before anything is acknowledged: a cut may double a message, never lose it."""
        harness.require_lack("atomic")
        fates = list(_cut_at_every_frame(harness, wire, "before"))
        assert fates
        for told, kept, moved in fates:
            assert kept + moved >= 2
            assert moved == 0 or not isinstance(told, DID_NOT_HAPPEN)
            assert moved == 2 or told is not None


def _cut_at_every_frame(harness: Harness, wire: Wire, moment: Moment) -> Iterator[tuple[JMSError | None, int, int]]:
    """Move two messages in a unit, each time with a cut one frame later, until there is no such frame.

    Yields:
        What the commit told, how many messages are left in the source, and how many are in the target.
    """
    for frame in count():
        source, target = queues(harness, *"ab")
        unit, _ = move(harness, wire, source, target, 2)
        wire.cut_at("any", moment, skip=frame)
        told = _outcome(unit)
        if not wire.sprung:
            return
        wire.cut()
        yield told, *_fates(harness, source, target, 2)


def _outcome(unit: Unit) -> JMSError | None:
    try:
        unit.commit()
    except JMSError as error:
        return error
    return None


def _fates(harness: Harness, source: Queue, target: Queue, sent: int) -> tuple[int, int]:
    """How many messages are in each of two queues; in both together as many as were sent, or more."""
    connection = harness.connect()
    consumers = connection.consumer(source, order=Order.ANY), connection.consumer(target, order=Order.ANY)
    found = [0, 0]
    for _ in range(round(PATIENCE / 0.02)):
        for number, consumer in enumerate(consumers):
            found[number] += len(consumer.receive(10, 0.01))
        if sum(found) >= sent:
            break
    for number, (consumer, queue) in enumerate(zip(consumers, (source, target), strict=True)):
        found[number] += not harness.nothing_comes(consumer, queue)
    connection.close()
    return found[0], found[1]


def _possible(told: JMSError | None) -> list[tuple[int, int]]:
    """What may have become of two messages that were to be moved in one unit: how many are kept, how many moved."""
    if isinstance(told, DID_NOT_HAPPEN):
        return [(2, 0)]
    return [(0, 2), (2, 0)] if told else [(0, 2)]
