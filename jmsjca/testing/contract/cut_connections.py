"""A connection that breaks while no commit is under way."""

from __future__ import annotations

import threading

import pytest

from jmsjca.errors import ConnectionLostError, JMSError
from jmsjca.testing.contract.cutting import DID_NOT_HAPPEN, Cuttable, connect, move, queues
from jmsjca.testing.contract.harness import PATIENCE, Harness
from jmsjca.testing.contract.wire import Wire

__all__ = ["TestConnectionIsCut"]


class TestConnectionIsCut(Cuttable):
    """A connection that breaks while no commit is under way: what was open is lost, and all comes again."""

    def test_break_is_told_once(self, harness: Harness, wire: Wire) -> None:
        """``lost`` of `Provider.connect` is called when the connection breaks, with a `ConnectionLostError`."""
        told: list[JMSError] = []
        first, second = threading.Event(), threading.Event()

        def lost(error: JMSError) -> None:
            """Note what is told, and how often."""
            (second if told else first).set()
            told.append(error)

        connection = harness.connect(url=wire.url, lost=lost)
        wire.cut()
        assert first.wait(PATIENCE)
        connection.close()
        assert [type(error) for error in told] == [ConnectionLostError]
        assert not second.is_set()

    def test_own_end_is_not_told(self, harness: Harness, wire: Wire) -> None:
        """Closing a connection is no loss."""
        told: list[JMSError] = []
        harness.connect(url=wire.url, lost=told.append).close()
        wire.cut()
        assert not told

    def test_everything_says_so(self, harness: Harness, wire: Wire) -> None:
        """Every call raises `ConnectionLostError`; closing what is left does not."""
        queue = harness.queue()
        connection, _ = connect(harness, wire)
        consumer, unit = connection.consumer(queue), harness.unit(connection)
        wire.cut()
        with pytest.raises(ConnectionLostError):
            consumer.receive(1, PATIENCE)
        with pytest.raises(ConnectionLostError):
            connection.consumer(queue)
        with pytest.raises(ConnectionLostError):
            harness.note(unit, queue, "never")
        consumer.close()
        connection.close()

    def test_waiting_receive_ends(self, harness: Harness, wire: Wire) -> None:
        """A receive that would wait for ever ends with the connection."""
        connection, _ = connect(harness, wire)
        waiting = harness.in_background(connection.consumer(harness.queue()).receive, 1, None)
        wire.cut()
        assert isinstance(waiting.exception(PATIENCE), ConnectionLostError)

    def test_what_was_held_comes_again(self, harness: Harness, wire: Wire) -> None:
        """Taken by a unit or not, looked at or still on its way."""
        queue = harness.queue()
        harness.send(queue, *"abcde")
        connection, _ = connect(harness, wire)
        first, *_ = harness.gather(connection.consumer(queue), 2)
        harness.holding([first], connection)
        wire.cut()
        harness.expect(queue, *"abcde", ordered=False)  # some may come before the broker has noticed the cut

    def test_what_was_held_is_marked_redelivered(self, harness: Harness, wire: Wire) -> None:
        """Somebody may have seen it (JMS 3.1, section 3.4.7; capability counts_lost)."""
        harness.require("counts_lost")
        queue = harness.queue()
        harness.send(queue, "a")
        connection, _ = connect(harness, wire)
        harness.gather(connection.consumer(queue), 1)
        wire.cut()
        [again] = harness.gather(harness.connection.consumer(queue), 1)
        assert again.redelivered
        assert again.count in {2, None}

    def test_late_commit_did_not_happen(self, harness: Harness, wire: Wire) -> None:
        """Nothing was written before the cut, so the outcome is known: no `TransactionInDoubtError`."""
        source, target = queues(harness, "a")
        unit, lost = move(harness, wire, source, target)
        wire.cut()
        assert lost.wait(PATIENCE)
        with pytest.raises(DID_NOT_HAPPEN):
            unit.commit()
        harness.expect(source, "a")
        harness.expect(target)

    def test_late_rollback_needs_nothing(self, harness: Harness, wire: Wire) -> None:
        """The broker has taken back by itself what the unit took; whoever rolls back learns that it was lost."""
        source, target = queues(harness, "a")
        unit, lost = move(harness, wire, source, target)
        wire.cut()
        assert lost.wait(PATIENCE)
        with pytest.raises(ConnectionLostError):
            unit.rollback()
        harness.expect(source, "a")
        harness.expect(target)
