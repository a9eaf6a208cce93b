"""What is remembered of messages is bounded, however different they are."""

import gc
import pkgutil
import weakref
from importlib import import_module

from jmsjca.destinations import Queue, TemporaryQueue
from jmsjca.messages import Byte, TextMessage
from jmsjca.providers import amqp
from jmsjca.providers.amqp.codec import decoder
from jmsjca.providers.amqp.codec.addresses import ReceiveContext
from jmsjca.providers.amqp.codec.decoder import decode
from jmsjca.providers.amqp.codec.encoder import encode, template_for
from jmsjca.providers.amqp.codec.jms_mapping import MESSAGE_TYPE
from jmsjca.providers.common.amqp_types import Symbol, write
from tests.unit.amqp.wire.memory import MIB, growth_below

MOST = 4096
QUEUE = Queue("q")


def test_every_cache_has_a_bound():
    modules = [import_module(found.name) for found in pkgutil.walk_packages(amqp.__path__, f"{amqp.__name__}.")]
    bounds = {
        f"{module.__name__}.{name}": cached.cache_info().maxsize
        for module in modules
        for name, cached in vars(module).items()
        if hasattr(cached, "cache_info")
    }
    assert bounds
    assert {name: bound for name, bound in bounds.items() if bound is None or bound > MOST} == {}


def test_long_names_are_not_kept():
    """Strangers choose those of properties and of the queues for replies, and who passes a message on writes them."""
    with growth_below(16 * MIB):
        for number in range(20):
            name = f"p{number}" + MIB * "x"
            encode(TextMessage("a", properties={name: 1}, reply_to=Queue(name)), QUEUE, 0.0)
            template_for(Queue(name), "capability")


def annotated(**told):
    """A bytes message with annotations, the same for whoever delivers it and for whoever gets it."""
    annotations = {Symbol(name): value for name, value in told.items()}
    return b"".join(
        (
            b"\0\x53\x71",
            write(annotations),
            b"\0\x53\x72",
            write({Symbol(MESSAGE_TYPE): Byte(3), **annotations}),
            b"\0\x53\x73\x45\0\x53\x75\xa0\x01a",
        )
    )


def test_long_annotations_are_not_kept():
    with growth_below(16 * MIB):
        for number in range(20):
            assert decode(annotated(**{f"x{number}": MIB * "x"}), ReceiveContext(QUEUE)).body == b"a"


def test_of_how_messages_begin_only_a_short_one_is_kept():
    assert decode(annotated(x=100 * "x"), ReceiveContext(QUEUE)).body == b"a"
    kept = decoder._last_prefix[0][0]
    assert decode(annotated(x=200 * "x"), ReceiveContext(QUEUE)).body == b"a"
    assert decoder._last_prefix[0][0] == kept != b""


def test_a_connection_is_not_kept_for_its_temporary_destinations():
    class Connection:
        def remove(self, what):
            """Never called."""

    connection = Connection()
    known = weakref.ref(connection)
    own = TemporaryQueue("temporary", connection.remove)
    encode(TextMessage("a", reply_to=own), own, 0.0)
    del connection, own
    gc.collect()
    assert known() is None
