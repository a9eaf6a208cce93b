"""A unit that sends where nobody may."""

from __future__ import annotations

import pytest

from jmsjca.destinations import Destination
from jmsjca.errors import JMSError, TransactionInDoubtError, TransactionRolledBackError
from jmsjca.testing.contract.harness import Contract, Harness, bodies

__all__ = ["TestRefusedSends"]


class TestRefusedSends(Contract):
    """A move whose target the broker refuses: known at the commit, and then nothing has happened."""

    def test_refused_send_rolls_back(self, harness: Harness, jms_refused_destination: Destination) -> None:
        """`TransactionRolledBackError`, and what the unit took comes again."""
        source = harness.queue()
        harness.send(source, *"ab")
        unit = harness.holding(harness.gather(harness.connection.consumer(source), 1))
        harness.note(unit, jms_refused_destination, "refused")
        with pytest.raises(TransactionRolledBackError):
            unit.commit()
        harness.connection.close()
        harness.expect(source, "a", "b", ordered=False)  # the broker may have ended the connection, and clears up later

    def test_refused_send_takes_the_others_with_it(
        self, harness: Harness, jms_refused_destination: Destination
    ) -> None:
        """What else the unit sent was not sent (capability transacted_send)."""
        harness.require("transacted_send")
        target = harness.queue()
        unit = harness.unit()
        for to in (target, jms_refused_destination, target):
            harness.note(unit, to, "never")
        with pytest.raises(TransactionRolledBackError):
            unit.commit()
        harness.expect(target)

    def test_refused_send_without_transactions_is_honest(
        self, harness: Harness, jms_refused_destination: Destination
    ) -> None:
        """If some messages were sent already the unit did not roll back: the outcome is mixed, so it is in doubt."""
        harness.require_lack("transacted_send")
        target = harness.queue()
        unit = harness.unit()
        for to in (target, jms_refused_destination, target):
            harness.note(unit, to, "some")
        with pytest.raises((TransactionInDoubtError, TransactionRolledBackError)) as told:
            unit.commit()
        if told.type is TransactionRolledBackError:
            harness.expect(target)

    def test_unit_after_a_refused_one_commits(self, harness: Harness, jms_refused_destination: Destination) -> None:
        """The messages can be worked off in another way, on a connection that may be a new one."""
        source = harness.queue()
        harness.send(source, *"ab")
        connection = harness.connect()
        unit = harness.holding(harness.gather(connection.consumer(source), 1), connection)
        harness.note(unit, jms_refused_destination, "refused")
        with pytest.raises(TransactionRolledBackError):
            unit.commit()
        connection.close()
        harness.settle(again := harness.gather(harness.connection.consumer(source), 2))
        assert sorted(bodies(again)) == ["a", "b"]
        harness.connection.close()
        harness.expect(source)

    def test_refused_destination_fails_the_check(self, harness: Harness, jms_refused_destination: Destination) -> None:
        """An endpoint learns it when it starts, not with its first poison (capability checks)."""
        harness.require("checks")
        with pytest.raises(JMSError):
            harness.connection.check(jms_refused_destination)
