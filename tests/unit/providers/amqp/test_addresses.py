"""Names that cannot be encoded are refused before a request is sent."""

import pytest

from jmsjca.destinations import Queue, Subscription, Topic
from jmsjca.errors import InvalidDestinationError, InvalidSelectorError

HALF = "half a pair: \ud800"
GOOD = Queue("q")
BAD = {
    HALF: r"\\ud800.* holds half of a surrogate pair",
    "q\0other": r"'.*q\\x00other'.* holds NUL .*leave it out",
    "\0": r"\\x00.* holds NUL",
}
ASK = {
    "consume": lambda connection, name: connection.consumer(Queue(name)),
    "subscribe": lambda connection, name: connection.consumer(Topic(name)),
    "durable": lambda connection, name: connection.consumer(Subscription(Topic("t"), name)),
    "unsubscribe": lambda connection, name: connection.remove(Subscription(Topic("t"), name)),
    "send": lambda connection, name: connection.check(Queue(name)),
    "publish": lambda connection, name: connection.check(Topic(name)),
    "browse": lambda connection, name: list(connection.browse(Queue(name))),
}


@pytest.mark.parametrize("name", BAD, ids=ascii)
@pytest.mark.parametrize("ask", ASK)
def test_a_name_that_cannot_be_written_is_refused(line, ask, name):
    line = line()
    line.open(client_id="c")
    with pytest.raises(InvalidDestinationError, match=BAD[name]):
        ASK[ask](line.connection, name)
    assert "begin" not in line.peer.order
    line.connection.check(GOOD)


def test_a_selector_with_half_of_a_surrogate_pair_is_refused(line):
    line = line()
    line.open(client_id="c")
    with pytest.raises(InvalidSelectorError, match=r"position \d+: it has half of a surrogate pair"):
        line.connection.consumer(GOOD, selector=f"a = '{HALF}'")
    assert "begin" not in line.peer.order
    line.connection.check(GOOD)
