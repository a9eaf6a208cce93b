"""Temporary destinations that are removed: the connection remembers the last of them."""

from dataclasses import dataclass, field
from itertools import count

import pytest
from amqp_peer import Broker
from amqp_peer.performatives import Attach, Target

from jmsjca.errors import InvalidDestinationError
from jmsjca.providers.amqp import temporary_destinations


@dataclass
class Naming:
    """Names what is made, and notes what is asked for by its name."""

    numbers: count = field(default_factory=count)
    asked: list = field(default_factory=list)

    def __call__(self, service, frame):
        asked = frame.body.target
        if isinstance(asked, Target) and asked.dynamic:
            asked.fields["address"] = f"made {next(self.numbers)}"
        else:
            self.asked.append(asked.address)
        service.carry_out(frame)


def test_what_was_removed_is_refused_here_as_long_as_it_is_remembered(stage, monkeypatch):
    """Of more than so many the broker is asked: a connection may make new ones for years."""
    monkeypatch.setattr(temporary_destinations, "_MAX_REMOVED", 2)
    broker = Broker()
    broker.instead[Attach] = naming = Naming()
    connection = stage(broker).connect()
    removed = [connection.temporary("queue") for _ in range(4)]
    for each in removed:
        connection.remove(each)
    for each in removed[2:]:
        with pytest.raises(InvalidDestinationError, match="was deleted"):
            connection.check(each)
    for each in removed[:2]:
        connection.check(each)
    assert naming.asked == ["made 0", "made 1"]
